"""Is the confidence a probability? The share of right numbers of clusters at each fifth of it.

    python benchmarks/confidence.py [AutoClustering] [DPMeans] [--quick]

The sets are the public ones of `default_answer`, bootstrap resamples of them, and generated sets
and clouds that no constant was chosen on. A number of clusters is right if a reference labeling has
it. Every source counts equally, so that many resamples do not outweigh the sets themselves.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import countless
from default_answer import CLOUD_SEEDS, data_folder, read
from generated import draw_problem

EDGES = np.linspace(0, 1, 6)


class Answer(NamedTuple):
    """One number of clusters, how sure the estimator was of it, and whether it was right."""

    source: str
    confidence: float
    right: bool


def tables(
    paths: list[Path], n_resamples: int, seeds: range
) -> Iterator[tuple[str, np.ndarray, set[int]]]:
    """Yield source, rows and the numbers of clusters that are right."""
    for place, path in enumerate(paths):
        X, labelings = read(path)
        yield "public sets", X, {len(set(y[y > 0])) for y in labelings}
        for draw in range(n_resamples):
            rows = np.random.default_rng([place, draw]).integers(len(X), size=len(X))
            yield "resamples", X[rows], {len(set(y[rows][y[rows] > 0])) for y in labelings}
    for seed in seeds:
        X, y, _ = draw_problem(seed)
        k = len(np.unique(y[y > 0]))
        yield "clouds" if k == 1 else "generated sets", X, {k}


def report(name: str, answers: list[Answer]) -> None:
    """Print a table of the fifths, and the share of right answers by source."""
    confidence = np.array([answer.confidence for answer in answers])
    right = np.array([answer.right for answer in answers])
    source = np.array([answer.source for answer in answers])
    weight = np.array([1 / np.sum(source == one) for one in source])
    fifth = np.clip(np.digitize(confidence, EDGES) - 1, 0, 4)
    print(f"\n{name}\n\n| confidence | answers | mean confidence | k right |")
    print("| --- | --- | --- | --- |")
    for one in np.unique(fifth):
        inside = fifth == one
        means = [np.average(each[inside], weights=weight[inside]) for each in (confidence, right)]
        low, high = EDGES[one], EDGES[one + 1]
        print(f"| {low:.1f} to {high:.1f} | {inside.sum()} | {means[0]:.2f} | {means[1]:.2f} |")
    for one in dict.fromkeys(source.tolist()):
        inside = source == one
        print(
            f"{one}: {inside.sum()} answers, confidence {confidence[inside].mean():.2f}, "
            f"k right {right[inside].mean():.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("estimators", nargs="*", default=["AutoClustering", "DPMeans"])
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--resamples", type=int, default=1, help="of each public set")
    parser.add_argument("--generated", type=int, default=200, help="generated sets and clouds")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sets")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    paths, seeds = sorted(args.data.glob("*.csv.gz")), CLOUD_SEEDS[: args.generated]
    if args.quick:
        paths, seeds = paths[::10], seeds[::10]
    answers: dict[str, list[Answer]] = {name: [] for name in args.estimators}
    for source, X, known in tables(paths, args.resamples, seeds):
        for name in args.estimators:
            model = getattr(countless, name)().fit(X)
            sure = model.path_.confidence if name == "DPMeans" else model.confidence_
            answers[name].append(Answer(source, float(sure), model.n_clusters_ in known))
    for name, given in answers.items():
        report(name, given)


if __name__ == "__main__":
    main()
