"""Choose the constants by which `AutoClustering` chooses, on generated data sets.

    python benchmarks/auto_evidence.py                 # 675 sets to fit, 225 others to check
    python benchmarks/auto_evidence.py --sets 100 --check 50
    python benchmarks/auto_evidence.py --wide --check 100    # only check, on many columns

Prints the constants of src/countless/_auto/choice.py, and on the sets that took no part: the mean
adjusted mutual information (of the choice, and of the best candidate of each set), how often k is
right, and how often it is by confidence. To be run again when a candidate has changed.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_mutual_info_score

from countless._auto import choice
from countless._auto.candidates import FAMILIES, families_for, fit_candidates
from countless._auto.linked import are_directions, row_lengths
from countless._auto.merged import leading_components, neighbor_links
from generated import draw_problem, draw_wide_problem

NAMES = (*choice.Measurements._fields, *FAMILIES)
# Share of sets without clusters in which clusters may be found: of others 5 % at most then.
FALSE_ALARMS = 0.045
# The least significance is in this range: below it merged mixtures are cut by chance.
RANGE = (2.5, 4.0)
PENALTY = 1e-3  # on squared weights of standardized measurements
BONUS = 0.25  # what the right number of clusters is worth beside the adjusted mutual information


class Problem(NamedTuple):
    """The candidates of one data set that have several clusters."""

    comparison: choice.Comparison
    features: np.ndarray  # (n_candidates, n_weights)
    score: np.ndarray  # (n_candidates,) adjusted mutual information with the truth
    n_clusters: dict[str, int]  # of all candidates
    truth: int
    name: str


def pose(seed: int, *, wide: bool = False) -> Problem:
    """Fit the candidates to a generated data set, and measure them."""
    warnings.simplefilter("ignore")
    X, y, name = draw_wide_problem(seed) if wide else draw_problem(seed)
    families = FAMILIES
    if wide:
        is_directional = are_directions(row_lengths(X), X.shape[1])
        families = families_for(X.shape[1], is_directional=is_directional, is_sparse=False)
    links = neighbor_links(X, None)
    fitted = fit_candidates(
        families, lambda at: X if at is None else X[at], len(X), links=links, time_budget=None,
        settings={"random_state": 0},
    )  # fmt: skip
    every = np.arange(len(X))
    labels = {one.method: one.labels_at(every) for one in fitted if one.estimator is not None}
    return measure(X, y, name, links, labels)


def measure(X, y, name, links, labels) -> Problem:
    """Measure candidates whose truth is known."""
    truth, known = len(np.unique(y[y > 0])), y > 0
    mean, components = leading_components(X)
    comparison = choice.compare((X - mean) @ components.T, links, labels)
    features = [
        [*found, *(float(method == other) for other in FAMILIES)]
        for method, found in comparison.measured.items()
    ]
    score = [
        0.0 if truth == 1 else adjusted_mutual_info_score(y[known], labels[method][known])
        for method in comparison.measured
    ]
    n_clusters = {method: int(found.max()) + 1 for method, found in labels.items()}
    shape = (len(score), len(NAMES))
    rows = np.array(features, dtype=float).reshape(shape)
    return Problem(comparison, rows, np.maximum(score, 0.0), n_clusters, truth, name)


def least_significance(problems: list[Problem]) -> float:
    """Return the significance at which clusters are found in 4.5 % of the clouds."""
    clouds = [problem.comparison for problem in problems if problem.truth == 1]
    strongest = sorted(np.inf if found.apart else found.significance for found in clouds)
    allowed = int(FALSE_ALARMS * len(clouds))
    return float(np.clip(np.ceil(10 * strongest[-1 - allowed]) / 10, *RANGE))


def fit_weights(problems: list[Problem]) -> np.ndarray:
    """Maximise the expected score of a candidate drawn by the softmax of its evidence."""
    cases = [
        (problem.features, problem.score + BONUS * _right(problem))
        for problem in problems
        if problem.truth > 1 and problem.comparison.structure
    ]
    scale = np.vstack([features for features, _ in cases]).std(axis=0)
    scale[scale == 0] = 1.0

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros(len(NAMES))
        for features, value in cases:
            scaled = features / scale
            share = softmax(scaled @ weights)
            mean = share @ value
            total += mean
            slope += scaled.T @ (share * (value - mean))
        n = len(cases)
        return PENALTY * weights @ weights - total / n, 2 * PENALTY * weights - slope / n

    starts = np.random.default_rng(0).normal(scale=0.3, size=(8, len(NAMES)))
    runs = [minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts]
    weights = min(runs, key=lambda run: run.fun).x / scale
    weights[-len(FAMILIES) :] -= weights[-len(FAMILIES)]  # beside the first family's
    return weights


def _right(problem: Problem) -> np.ndarray:
    return np.array([problem.n_clusters[m] == problem.truth for m in problem.comparison.measured])


class Answer(NamedTuple):
    """What is chosen for a data set, and how good that is."""

    several: bool
    signs: np.ndarray
    right: bool
    score: float
    confidence: float


def answer(problem: Problem) -> Answer:
    """Choose as `AutoClustering` does."""
    comparison = problem.comparison
    best = comparison.best()
    signs = choice.signs(comparison, problem.n_clusters, best)
    sure = choice.confidence(comparison, problem.n_clusters, best)
    if best is None:
        right = problem.truth == 1
        return Answer(False, signs, right, float(right), sure)
    score = problem.score[list(comparison.measured).index(best)]
    return Answer(True, signs, problem.n_clusters[best] == problem.truth, float(score), sure)


def fit_confidence(answers: list[Answer], several: bool) -> tuple[float, ...]:
    """Return a constant and weights of signs, by logistic regression."""
    some = [one for one in answers if one.several == several]
    signs, right = np.array([one.signs for one in some]), np.array([one.right for one in some])
    return tuple(
        float(w) for w in LogisticRegression(C=10.0, fit_intercept=False).fit(signs, right).coef_[0]
    )


def report(what: str, problems: list[Problem]) -> None:
    """Print how good the choice is."""
    answers = [answer(problem) for problem in problems]
    mean = lambda values: float(np.mean(list(values)))  # noqa: E731
    pairs = list(zip(problems, answers, strict=True))
    sets = [(problem, one) for problem, one in pairs if problem.truth > 1]
    clouds = [one for problem, one in pairs if problem.truth == 1]
    print(
        f"{what}: {len(sets)} sets of two clusters or more: "
        f"AMI {mean(one.score for _, one in sets):.3f} "
        f"(best candidate {mean(problem.score.max(initial=0.0) for problem, _ in sets):.3f}), "
        f"k right {mean(one.right for _, one in sets):.2f}, "
        f"one cluster {mean(not one.several for _, one in sets):.2f}; "
        f"{len(clouds)} of one: one cluster {mean(not one.several for one in clouds):.3f}"
    )
    order = sorted(answers, key=lambda one: one.confidence)
    for fifth in np.array_split(np.arange(len(order)), 5):
        some = [order[i] for i in fifth]
        print(
            f"  confidence {some[0].confidence:.2f} to {some[-1].confidence:.2f}: "
            f"mean {mean(one.confidence for one in some):.2f}, "
            f"k right {mean(one.right for one in some):.2f}"
        )


def choose_constants(problems: list[Problem]) -> None:
    """Set the constants of `countless._auto.choice`, and print them."""
    choice.LEAST_SIGNIFICANCE = least_significance(problems)
    weights = [round(float(weight), 2) for weight in fit_weights(problems)]
    own = dict(zip(choice.Measurements._fields, weights, strict=False))
    family = dict(zip(FAMILIES, weights[len(own) :], strict=True))
    choice.WEIGHTS = choice.WEIGHTS._replace(**own, family=family)
    answers = [answer(problem) for problem in problems]
    rounded = {
        name: tuple(round(weight, 2) for weight in fit_confidence(answers, name == "several"))
        for name in ("several", "one")
    }
    choice.WEIGHTS = choice.WEIGHTS._replace(**rounded)
    print(f"LEAST_SIGNIFICANCE = {choice.LEAST_SIGNIFICANCE}\nWEIGHTS = Weights(")
    for name, weight in choice.WEIGHTS._asdict().items():
        print(f"    {name}={weight},")
    print(")")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=675)
    parser.add_argument("--check", type=int, default=225)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--wide", action="store_true", help="13 to 256 columns, present constants")
    args = parser.parse_args()
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        if args.wide:
            report("wide", list(pool.map(partial(pose, wide=True), range(args.check))))
            return
        problems = list(pool.map(pose, range(args.sets + args.check), chunksize=10))
    choose_constants(problems[: args.sets])
    report("fitted", problems[: args.sets])
    if args.check:
        report("check", problems[args.sets :])


if __name__ == "__main__":
    main()
