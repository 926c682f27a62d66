"""Choose the weights of the evidence by which `penalty_path` chooses k, on generated data sets.

    python benchmarks/path_evidence.py                 # 500 sets to fit, 100 others to check
    python benchmarks/path_evidence.py --trees --sets 110

Prints the constants of `Weights` in src/countless/_path/penalty.py, and on the sets that took no
part: the mean adjusted mutual information, how often k is right, and how often it is by confidence.
Sets of curves and other shapes, whose clusters DP-means cannot find, take part in the calibration
of the confidence alone. With ``--trees`` the weights stay, and the confidence of cuts of trees
(src/countless/_tree/gap.py) is calibrated, over five methods together.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_mutual_info_score

from countless import DivisiveClustering, LinkageClustering, penalty_path
from countless._path.penalty import Weights, measure
from generated import draw_problem

N_WEIGHTS = 4  # the others of `Weights` are those of the confidence
FALSE_ALARMS = 0.055  # share of sets without clusters in which clusters may be found
PENALTY = 1e-3  # on squared weights, which nothing else bounds

TREE_ROWS = 1200  # of each set, for trees
TREES = [
    *(LinkageClustering(method) for method in ("average", "complete", "single", "ward")),
    DivisiveClustering("diana"),
]


class Problem(NamedTuple):
    """The numbers of clusters that one data set may have, one first."""

    features: np.ndarray  # (n_candidates, n_weights)
    score: np.ndarray  # (n_candidates,) adjusted mutual information with the truth
    n_clusters: np.ndarray
    truth: int
    name: str


def pose(seed: int) -> Problem:
    """Follow the path of a generated data set."""
    warnings.simplefilter("ignore")
    X, y, name = draw_problem(seed)
    truth, known = len(np.unique(y[y > 0])), y > 0
    path = penalty_path(X)
    features, score, n_clusters = [np.zeros(N_WEIGHTS)], [float(truth == 1)], [1]
    measured = measure(path.judged.scores).T
    for plateau in path.plateaus:
        k = plateau.n_clusters
        if k == 1:
            continue
        features.append(measured[k - 2])
        right = 0.0
        if truth > 1:
            labels = path.labels_at(path.penalty_for(k))
            right = max(0.0, adjusted_mutual_info_score(y[known], labels[known]))
        score.append(right)
        n_clusters.append(k)
    return Problem(np.array(features), np.array(score), np.array(n_clusters), truth, name)


def is_round(problem: Problem) -> bool:
    """Tell whether DP-means can be right: clusters are blobs, or there is one."""
    return problem.truth == 1 or "blobs" in problem.name


def fit_weights(problems: list[Problem]) -> np.ndarray:
    """Maximise the expected score of a k drawn by the softmax of its evidence."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros(len(weights))
        for problem in problems:
            share = softmax(problem.features @ weights)
            mean = share @ problem.score
            total += mean
            slope += problem.features.T @ (share * (problem.score - mean))
        n = len(problems)
        return PENALTY * weights @ weights - total / n, 2 * PENALTY * weights - slope / n

    typical = np.array([-2.0, 0.0, 0.0, 0.0])
    starts = typical + np.random.default_rng(0).normal(scale=0.3, size=(8, N_WEIGHTS))
    runs = [minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts]
    return min(runs, key=lambda run: run.fun).x


def admit(problems: list[Problem], weights: np.ndarray) -> np.ndarray:
    """Shift the constant to where clusters are found in a stated share of clouds."""
    highest = [
        (problem.features @ weights)[1:].max(initial=-np.inf)
        for problem in problems
        if problem.truth == 1
    ]
    shifted = weights.copy()
    shifted[0] -= np.quantile(highest, 1 - FALSE_ALARMS, method="higher")
    return shifted


def choose(problem: Problem, weights: np.ndarray) -> tuple[int, float]:
    """Return which candidate is chosen, and the lead of its evidence."""
    evidence = problem.features @ weights
    best = int(evidence.argmax())
    lead = evidence[best] - np.delete(evidence, best).max(initial=-20.0)
    return best, lead


def calibrate_trees(n_sets: int) -> None:
    """Print the constants of the confidence of cuts of trees, and how often k is right by it."""
    leads, right = [], []
    for seed in range(n_sets):
        X, y, _ = draw_problem(seed)
        X, y = X[:TREE_ROWS], y[:TREE_ROWS]
        for model in TREES:
            best, *others = model.fit(X).path_.plateaus
            if others:
                leads.append(best.score - others[0].score)
                right.append(best.n_clusters == len(np.unique(y[y > 0])))
    lead, is_right = np.array(leads)[:, None], np.array(right)
    sure = LogisticRegression(C=1e3).fit(lead, is_right)
    print(f"intercept {sure.intercept_[0]:.2f}, slope {sure.coef_[0, 0]:.2f}")
    probability = sure.predict_proba(lead)[:, 1]
    for low in np.arange(0, 1, 0.2):
        here = (probability >= low) & (probability < low + 0.2)
        if here.any():
            print(
                f"  confidence {low:.1f} to {low + 0.2:.1f}: {here.sum():4} trees, "
                f"mean {probability[here].mean():.2f}, k right {is_right[here].mean():.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--check", type=int, default=100)
    parser.add_argument("--trees", action="store_true")
    args = parser.parse_args()
    if args.trees:
        warnings.simplefilter("ignore")
        calibrate_trees(args.sets)
        return
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        everything = list(pool.map(pose, range(args.sets + args.check), chunksize=8))
    problems, others = everything[: args.sets], everything[args.sets :]
    weights = admit(problems, fit_weights([p for p in problems if is_round(p)]))
    chosen = [choose(problem, weights) for problem in problems]
    lead = np.array([lead for _, lead in chosen])
    right = [p.n_clusters[best] == p.truth for p, (best, _) in zip(problems, chosen, strict=True)]
    sure = LogisticRegression(C=1e3).fit(lead[:, None], right)
    for name, value in zip(
        Weights._fields, [*weights, *sure.intercept_, *sure.coef_[0]], strict=True
    ):
        print(f"{name:12} {value:6.2f}")
    for what, some in (("fitted", problems), ("check", others)):
        report(what, some, weights, sure)


def report(what: str, problems: list[Problem], weights: np.ndarray, sure) -> None:
    """Print how good the choices are on some problems."""
    found = [choose(problem, weights) for problem in problems]
    one = np.array([best == 0 for best, _ in found])
    right = np.array(
        [p.n_clusters[b] == p.truth for p, (b, _) in zip(problems, found, strict=True)]
    )
    score = np.array([p.score[b] for p, (b, _) in zip(problems, found, strict=True)])
    cloud = np.array([problem.truth == 1 for problem in problems])
    blobs = np.array([is_round(problem) for problem in problems]) & ~cloud
    best = np.mean([p.score.max() for p, b in zip(problems, blobs, strict=True) if b])
    print(
        f"{what}: blobs {blobs.sum()}, AMI {score[blobs].mean():.3f} (best k {best:.3f}), "
        f"k right {right[blobs].mean():.2f}, one cluster {one[blobs].mean():.2f}; "
        f"clouds {cloud.sum()}, one cluster {one[cloud].mean():.3f}"
    )
    probability = sure.predict_proba(np.array([[lead] for _, lead in found]))[:, 1]
    for low in np.arange(0, 1, 0.2):
        here = (probability >= low) & (probability < low + 0.2 + 1e-9)
        if here.any():
            print(
                f"  confidence {low:.1f} to {low + 0.2:.1f}: {here.sum():4} sets, "
                f"mean {probability[here].mean():.2f}, k right {right[here].mean():.2f}"
            )


if __name__ == "__main__":
    main()
