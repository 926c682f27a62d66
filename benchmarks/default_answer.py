"""What a user gets who gives rows and nothing else, on public data sets and on clouds.

    python benchmarks/default_answer.py                               # all contestants
    python benchmarks/default_answer.py AutoClustering --seeds 3      # does the seed decide k?

The sets are those of M. Gagolewski's benchmark suite (SoftwareX 20, 101270, 2022) that are in a
folder, ``--data`` or ``$COUNTLESS_DATA/suite``: ``*.csv.gz`` with columns of numbers and one or
more columns ``class...``, whose 0 is noise. Of several known labelings the best counts; rows of
noise are left out, and a label of -1 is one more class. Clouds have no clusters: how often is that
the answer?
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.mixture import GaussianMixture

import countless
from generated import draw_problem

SHARED = Path(__file__).parents[2] / "shared" / "data"
MOST_COMPONENTS = 20  # of the mixture that is chosen by BIC
CLOUD_SEEDS = range(10_000, 10_400)  # no constant was chosen on these


class Answer(NamedTuple):
    """What one contestant says of one data set."""

    name: str
    ami: float
    exact: bool
    n_clusters: tuple[int, ...]  # for each seed
    seconds: float


def ours(name: str) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return a contestant: one of our estimators with its defaults."""
    return lambda X, seed: getattr(countless, name)(random_state=seed).fit(X).labels_


def mixture_by_bic(X: np.ndarray, seed: int) -> np.ndarray:
    """Fit Gaussian mixtures of 1 to 20 components and keep the one of lowest BIC."""
    components = range(1, min(MOST_COMPONENTS, len(X) // 5) + 1)
    fits = [GaussianMixture(k, random_state=seed).fit(X) for k in components]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


CONTESTANTS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    **{name: ours(name) for name in ("AutoClustering", "DPMeans", "SpectralDPMeans")},
    "HDBSCAN (scikit-learn)": lambda X, seed: HDBSCAN(copy=True).fit_predict(X),
    "Gaussian mixture by BIC": mixture_by_bic,
}


def data_folder() -> Path:
    """Return the folder of the public sets."""
    return Path(os.environ.get("COUNTLESS_DATA", SHARED)) / "suite"


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set, and its known labelings."""
    with gzip.open(path, "rt") as lines:
        names = lines.readline().strip().split(",")
        values = np.loadtxt(lines, delimiter=",", ndmin=2)
    known = np.array([name.startswith("class") for name in names])
    return values[:, ~known], values[:, known].T.astype(int)


def clouds() -> Iterator[np.ndarray]:
    """Yield generated rows without clusters."""
    for seed in CLOUD_SEEDS:
        X, y, _ = draw_problem(seed)
        if len(np.unique(y)) == 1:
            yield X


def ask(contestant, path: Path, n_seeds: int) -> Answer:
    """Cluster one set, and compare with what is known."""
    X, labelings = read(path)
    start = time.perf_counter()
    found = [np.asarray(contestant(X, seed)) for seed in range(n_seeds)]
    seconds = (time.perf_counter() - start) / n_seeds
    labels, n_clusters = found[0], tuple(len(set(one[one >= 0])) for one in found)
    ami = max(adjusted_mutual_info_score(y[y > 0], labels[y > 0]) for y in labelings)
    exact = n_clusters[0] in {len(set(y[y > 0])) for y in labelings}
    return Answer(path.name.removesuffix(".csv.gz"), ami, exact, n_clusters, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contestants", nargs="*", default=list(CONTESTANTS))
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--skip-clouds", action="store_true")
    parser.add_argument("--sets", action="store_true", help="print every set, too")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    paths = sorted(args.data.glob("*.csv.gz"))
    if not paths:
        parser.error(f"no data set in {args.data}: name a folder by --data or COUNTLESS_DATA")
    print("| with defaults | AMI | k exact | one cluster | clouds: one cluster | median s |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for name in args.contestants:
        contestant = CONTESTANTS.get(name) or ours(name)
        answers = [ask(contestant, path, args.seeds) for path in paths]
        one = "-"
        if not args.skip_clouds:
            alone = [len(set(contestant(X, 0).tolist())) == 1 for X in clouds()]
            one = f"{sum(alone)} of {len(alone)}"
        print(
            f"| {name} | {np.mean([a.ami for a in answers]):.3f} "
            f"| {np.mean([a.exact for a in answers]):.2f} "
            f"| {np.mean([a.n_clusters[0] == 1 for a in answers]):.2f} | {one} "
            f"| {np.median([a.seconds for a in answers]):.2f} |",
            flush=True,
        )
        differ = [a.name for a in answers if len(set(a.n_clusters)) > 1]
        if args.seeds > 1:
            print(f"k depends on the seed: {', '.join(differ) or 'never'}")
        if args.sets:
            for a in answers:
                print(f"  {a.name:28} k {a.n_clusters[0]:4}  AMI {a.ami:.3f}  {a.seconds:6.2f} s")


if __name__ == "__main__":
    main()
