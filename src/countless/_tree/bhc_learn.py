"""Empirical Bayes estimation of the concentration and the hyperparameters, through the tree.

The log of the sum over partitions has the gradient ``sum_k q_k grad log (alpha Gamma(n_k) p(rows of
k))``, where ``q_k`` is the probability that node k is a cluster: the chain rule, applied from the
root down the recursion, multiplies the probabilities of merges exactly as ``q_k`` does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._tree.bhc_tree import Evaluation, Leaves, Tree, evaluate, grow_tree, node_weights
from countless.models.hyper import Hyper, climb, join_hypers, make_hyper
from countless.models.protocol import BoundModel

# Logs of the smallest and the largest concentration.
LOWEST, HIGHEST = math.log(sys.float_info.min), math.log(sys.float_info.max)


class Fitted(NamedTuple):
    """A tree with the hyperparameters learned from it."""

    tree: Tree
    evaluation: Evaluation
    model: BoundModel
    alpha: float
    objective: float  # minus the log evidence and the log prior of the learned parameters


class Fit(NamedTuple):
    """The best tree found, and how."""

    best: Fitted
    history: list[float]  # the objective after each round; nonincreasing
    converged: bool


def fit_tree(
    model: BoundModel,
    alpha: float,
    leaves: Leaves,
    *,
    learn: bool,
    shares: Sequence[float] = (1.0,),
    max_iter: int = 20,
    tol: float = 1e-4,
    n_threads: int = 1,
    on_pass: OnPass = ignore_pass,
) -> Fit:
    """Grow a tree; learn from it and grow another, as long as the evidence increases.

    Parameters
    ----------
    model : BoundModel
    alpha : float
        The initial concentration, and the center of its prior on a log scale.
    leaves : Leaves
    learn : bool
        False grows one tree with the given parameters.
    shares : sequence of float
        As for `grow_tree`; after the first round, the first and that of the best tree.
    max_iter : int
        Maximum number of rounds of growing and learning.
    tol : float
        Stop when the gain of a round, per row, is less than this.
    n_threads : int
    on_pass : callable
        Called with the objective and the expected number of clusters after each round.
    """

    def one_round(model: BoundModel, now: float, shares: Sequence[float]) -> Fitted:
        tree = grow_tree(model, now, leaves, n_threads, shares)
        prior = 0.0
        if learn:
            model, now = learn_hyper(model, now, tree, alpha)
            hyper = _joint_hyper(model, now, alpha)
            prior = hyper.log_prior(hyper.value)
        evaluation = evaluate(model, now, tree)
        return Fitted(tree, evaluation, model, now, -evaluation.log_evidence - prior)

    best = one_round(model, alpha, shares)
    history, converged = [best.objective], not learn
    _report(best, on_pass)
    while not converged and len(history) < max_iter:
        kinds = [share for share in shares if share in (best.tree.share, shares[0])]
        found = one_round(best.model, best.alpha, kinds)
        gain = best.objective - found.objective
        best = found if gain > 0 else best  # a greedy tree may be worse than the previous one
        history.append(best.objective)
        converged = gain <= tol * leaves.n_rows
        _report(best, on_pass)
    return Fit(best, history, converged)


def _report(best: Fitted, on_pass: OnPass) -> None:
    weights = node_weights(best.tree, best.evaluation.log_odds)
    on_pass(best.objective, max(1, round(float(weights.sum()))))


def learn_hyper(
    model: BoundModel, alpha: float, tree: Tree, usual_alpha: float
) -> tuple[BoundModel, float]:
    """Return the model and the concentration that maximize the evidence of a given tree.

    The learned parameters have a prior: the model's own for its hyperparameters, and a normal one
    of standard deviation 1 for log alpha about the log of the given value.
    """
    hyper = _joint_hyper(model, alpha, usual_alpha)

    def log_evidence(value):
        return evidence_and_gradient(model.with_hyper(value[1:]), _exp(value[0]), tree)

    value = climb(hyper, log_evidence)
    return model.with_hyper(value[1:]), _exp(value[0])


def evidence_and_gradient(model: BoundModel, alpha: float, tree: Tree) -> tuple[float, np.ndarray]:
    """Return the log evidence and its gradient, by log alpha and then by each hyperparameter."""
    evaluation = evaluate(model, alpha, tree)
    weights = node_weights(tree, evaluation.log_odds)
    clusters = np.flatnonzero(weights > 1e-14)  # others hardly change gradients
    slopes = model.log_marginal_gradient(tree.statistics[clusters])
    by_alpha = weights.sum() - np.sum(alpha / (alpha + np.arange(tree.n_rows)))
    return evaluation.log_evidence, np.append(by_alpha, weights[clusters] @ slopes)


def _exp(log_alpha: float) -> float:
    """Return exp, limited to a finite positive concentration."""
    return math.exp(min(max(log_alpha, LOWEST), HIGHEST))


def _joint_hyper(model: BoundModel, alpha: float, usual_alpha: float) -> Hyper:
    """Return log alpha and the hyperparameters of the model as one vector with a prior."""
    of_alpha = make_hyper(["log alpha"], [math.log(usual_alpha)], [True])
    of_alpha = of_alpha._replace(value=np.array([math.log(alpha)]))
    return join_hypers([of_alpha, model.hyper])
