"""Choose the weights of the evidence by which `penalty_path` chooses k, on generated data sets.

    python benchmarks/path_evidence.py                 # 500 sets to fit, 100 others to check
    python benchmarks/path_evidence.py --trees --sets 110
    python benchmarks/path_evidence.py --spectra --sets 300
    python benchmarks/path_evidence.py --graphs --sets 200

Prints the constants of `Weights` in src/countless/_path/penalty.py, and on the sets that took no
part: the mean adjusted mutual information, how often k is right, and how often it is by confidence.
Sets of curves and other shapes, whose clusters DP-means cannot find, take part in the calibration
of the confidence alone. With the other options the weights stay, and the confidence is calibrated
of cuts of trees (src/countless/_tree/gap.py), over five methods together; of spectra and of necks
(src/countless/_spectral/); and of graphs of planted communities or none (src/countless/_graph/).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_mutual_info_score

from countless import (
    DivisiveClustering,
    GraphDPMeans,
    LinkageClustering,
    SpectralDPMeans,
    penalty_path,
)
from countless._path.evidence import Weights, measure
from countless._path.path import Calibration, Path
from generated import draw_problem

N_WEIGHTS = len(Weights._fields)
FALSE_ALARMS = 0.055  # share of sets without clusters in which clusters may be found
PENALTY = 1e-3  # on squared weights, which nothing else bounds

MOST_ROWS = 1200  # of each set, except for the path of rows
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
    measured = measure(path.statistics.scores).T
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


Case = tuple[float, bool]  # the lead, and whether k is right


def judge(path: Path, truth: int) -> list[Case]:
    """Return the lead of a path and whether its k is right, unless k was certain or unjudged."""
    return [(path.lead, path.n_clusters == truth)] if np.isfinite(path.lead) else []


def judge_trees(seed: int) -> dict[str, list[Case]]:
    warnings.simplefilter("ignore")
    X, y, _ = draw_problem(seed)
    X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    truth = len(np.unique(y[y > 0]))
    return {"trees": [case for model in TREES for case in judge(model.fit(X).path_, truth)]}


def judge_spectra(seed: int) -> dict[str, list[Case]]:
    warnings.simplefilter("ignore")
    X, y, _ = draw_problem(seed)
    X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    path = SpectralDPMeans(random_state=0).fit(X).path_
    kind = "spectrum" if path.necks is None else "necks"
    return {kind: judge(path, len(np.unique(y[y > 0])))}


def judge_graphs(seed: int) -> dict[str, list[Case]]:
    warnings.simplefilter("ignore")
    links, truth = draw_graph(seed)
    path = GraphDPMeans(null="degrees", random_state=0).fit(links).path_
    return {"graphs": judge(path, truth)}


def draw_graph(seed: int) -> tuple[sp.csr_array, int]:
    """Draw a connected graph, a quarter of them random, the others of planted communities."""
    rng = np.random.default_rng(seed)
    k = 1 if rng.random() < 0.25 else int(np.exp(rng.uniform(np.log(2), np.log(20))))
    n = int(np.exp(rng.uniform(np.log(max(60, 25 * k)), np.log(1500))))
    member = np.sort(rng.choice(k, n, p=rng.dirichlet(np.full(k, rng.choice([5.0, 50.0])))))
    popular = rng.pareto(3.0, n) + 1 if rng.random() < 0.5 else np.ones(n)
    share = rng.uniform(0.3, 0.95)  # of links within communities
    n_links = int(n * rng.uniform(2, 10))
    ends = rng.choice(n, n_links, p=popular / popular.sum())
    size = np.bincount(member, popular, minlength=k)
    other = rng.choice(n, n_links, p=popular / popular.sum())
    inside = np.flatnonzero(rng.random(n_links) < share)
    first = np.cumsum(size) - size
    at = first[member[ends[inside]]] + rng.random(len(inside)) * size[member[ends[inside]]]
    other[inside] = np.minimum(np.searchsorted(np.cumsum(popular), at), n - 1)
    apart = ends != other
    shape = (n, n)
    links = sp.coo_array((np.ones(apart.sum()), (ends[apart], other[apart])), shape=shape).tocsr()
    links = links + links.T
    links.data[:] = 1.0
    component = connected_components(links, directed=False)[1]
    largest = component == np.bincount(component).argmax()
    return links[largest][:, largest].tocsr(), len(np.unique(member[largest]))


def calibrate(judged: Callable[[int], dict[str, list[Case]]], n_sets: int) -> None:
    """Print the constants of the confidence, and how often k is right by it."""
    cases: dict[str, list[Case]] = {}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for found in pool.map(judged, range(n_sets), chunksize=4):
            for kind, some in found.items():
                cases.setdefault(kind, []).extend(some)
    for kind, some in cases.items():
        lead, right = (np.array(part) for part in zip(*some, strict=True))
        sure = LogisticRegression(C=1e3).fit(lead[:, None], right)
        found = Calibration(float(sure.intercept_[0]), float(sure.coef_[0, 0]))
        print(f"{kind}: intercept {found.intercept:.2f}, slope {found.slope:.2f}")
        probability = expit(found.intercept + found.slope * lead)
        print_by_confidence(probability, right, kind)


def print_by_confidence(probability: np.ndarray, right: np.ndarray, what: str) -> None:
    for low in np.arange(0, 1, 0.2):
        here = (probability >= low) & (probability < low + 0.2 + 1e-9)
        if here.any():
            print(
                f"  confidence {low:.1f} to {low + 0.2:.1f}: {here.sum():4} {what}, "
                f"mean {probability[here].mean():.2f}, k right {right[here].mean():.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--check", type=int, default=100)
    others = {"trees": judge_trees, "spectra": judge_spectra, "graphs": judge_graphs}
    for name in others:
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    for name, judged in others.items():
        if getattr(args, name):
            calibrate(judged, args.sets)
            return
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        everything = list(pool.map(pose, range(args.sets + args.check), chunksize=8))
    problems, checked = everything[: args.sets], everything[args.sets :]
    weights = admit(problems, fit_weights([p for p in problems if is_round(p)]))
    chosen = [choose(problem, weights) for problem in problems]
    lead = np.array([lead for _, lead in chosen])
    right = [p.n_clusters[best] == p.truth for p, (best, _) in zip(problems, chosen, strict=True)]
    sure = LogisticRegression(C=1e3).fit(lead[:, None], right)
    names = (*Weights._fields, *Calibration._fields)
    for name, value in zip(names, [*weights, *sure.intercept_, *sure.coef_[0]], strict=True):
        print(f"{name:12} {value:6.2f}")
    for what, some in (("fitted", problems), ("check", checked)):
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
    print_by_confidence(probability, right, "sets")


if __name__ == "__main__":
    main()
