"""Choose the weights of the evidence by which `AutoClustering` chooses, on generated data sets.

    python benchmarks/auto_evidence.py                 # 400 sets to fit, 100 others to check
    python benchmarks/auto_evidence.py --sets 100 --check 50

Prints the constants of src/countless/auto/choice.py, and on the sets that took no part: the mean
adjusted mutual information (of the choice, and of the best candidate of each set), how often k is
right, and how often it is by confidence.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_mutual_info_score

from countless.auto.candidates import FAMILIES, fit_candidates
from countless.auto.choice import Evidence, measure
from countless.auto.merged import neighbor_links
from generated import draw_problem

NAMES = (*Evidence._fields, *FAMILIES)
FALSE_ALARMS = 0.05  # share of sets without clusters in which clusters may be found
PENALTY = 1e-4  # on squared weights, which nothing else bounds where a measurement decides alone


class Problem(NamedTuple):
    """The candidates of one data set, one cluster first."""

    features: np.ndarray  # (n_candidates, n_weights)
    score: np.ndarray  # (n_candidates,) adjusted mutual information with the truth
    n_clusters: np.ndarray
    truth: int
    name: str


def pose(seed: int) -> Problem:
    """Fit the candidates to a generated data set, and measure them."""
    X, y, name = draw_problem(seed)
    truth, known = len(np.unique(y[y > 0])), y > 0
    links = neighbor_links(X, None)
    fitted = fit_candidates(
        FAMILIES, lambda at: X if at is None else X[at], len(X), links=links, time_budget=None,
        settings={"random_state": 0},
    )  # fmt: skip
    every = np.arange(len(X))
    labels = {one.method: one.labels_at(every) for one in fitted if one.estimator is not None}
    features, score, n_clusters = [np.zeros(len(NAMES))], [float(truth == 1)], [1]
    for method, found in measure(X, links, labels).items():
        family = [float(method == other) for other in FAMILIES]
        features.append(np.array([*found, *family]))
        right = 0.0 if truth == 1 else adjusted_mutual_info_score(y[known], labels[method][known])
        score.append(max(0.0, right))
        n_clusters.append(int(labels[method].max()) + 1)
    return Problem(np.array(features), np.array(score), np.array(n_clusters), truth, name)


def fit_weights(problems: list[Problem]) -> np.ndarray:
    """Maximise the expected score of a candidate drawn by the softmax of its evidence."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros(len(NAMES))
        for problem in problems:
            share = softmax(problem.features @ weights)
            mean = share @ problem.score
            total += mean
            slope += problem.features.T @ (share * (problem.score - mean))
        n = len(problems)
        return PENALTY * weights @ weights - total / n, 2 * PENALTY * weights - slope / n

    starts = np.random.default_rng(0).normal(scale=0.3, size=(8, len(NAMES)))
    runs = [minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts]
    return min(runs, key=lambda run: run.fun).x


def admit(problems: list[Problem], weights: np.ndarray) -> np.ndarray:
    """Shift the constants of all families to where they find clusters in 5 % of clouds."""
    clouds = [problem for problem in problems if problem.truth == 1]
    highest = [(problem.features @ weights)[1:].max(initial=-np.inf) for problem in clouds]
    shift = np.sort(highest)[int(np.ceil((1 - FALSE_ALARMS) * len(clouds))) - 1]
    shifted = weights.copy()
    shifted[len(Evidence._fields) :] -= shift
    return shifted


def choices(problems: list[Problem], weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return the lead, the score and whether k is right, of the choice on each problem."""
    found: dict[str, list[Any]] = {"lead": [], "score": [], "right": [], "one": [], "truth": []}
    for problem in problems:
        evidence = problem.features @ weights
        best = int(evidence.argmax())
        rivals = evidence[problem.n_clusters != problem.n_clusters[best]]
        found["lead"].append(evidence[best] - rivals.max(initial=-np.inf))
        found["score"].append(problem.score[best])
        found["right"].append(problem.n_clusters[best] == problem.truth)
        found["one"].append(problem.n_clusters[best] == 1)
        found["truth"].append(problem.truth)
    return {name: np.array(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--check", type=int, default=100)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    problems = [pose(seed) for seed in range(args.sets)]
    weights = admit(problems, fit_weights(problems))
    found = choices(problems, weights)
    # A lead without any rival is as long as the longest.
    longest = found["lead"][np.isfinite(found["lead"])].max()
    lead = np.minimum(found["lead"], longest)
    sure = LogisticRegression(C=1e3).fit(lead[:, None], found["right"])
    for name, weight in zip(NAMES, weights, strict=True):
        print(f"{name:14} {weight:6.2f}")
    print(f"intercept      {sure.intercept_[0]:6.2f}\nslope          {sure.coef_[0, 0]:6.2f}")
    for what, seeds in (("fitted", None), ("check", range(args.sets, args.sets + args.check))):
        some = problems if seeds is None else [pose(seed) for seed in seeds]
        found = choices(some, weights)
        several = found["truth"] > 1
        best = np.mean([problem.score.max() for problem in some if problem.truth > 1])
        print(
            f"{what}: {len(some)} sets; "
            f"of two clusters or more: AMI {found['score'][several].mean():.3f} "
            f"(best candidate {best:.3f}), k right {found['right'][several].mean():.2f}, "
            f"one cluster {found['one'][several].mean():.2f}; "
            f"of one: one cluster {found['one'][~several].mean():.3f}"
        )
        probability = sure.predict_proba(np.minimum(found["lead"], longest)[:, None])[:, 1]
        for low in np.arange(0, 1, 0.2):
            here = (probability >= low) & (probability < low + 0.2 + 1e-9)
            if here.any():
                print(
                    f"  confidence {low:.1f} to {low + 0.2:.1f}: {here.sum():4} sets, "
                    f"mean {probability[here].mean():.2f}, "
                    f"k right {found['right'][here].mean():.2f}"
                )


if __name__ == "__main__":
    main()
