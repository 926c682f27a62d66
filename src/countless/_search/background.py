"""Background: rows that belong to no cluster, at a price that is the same for all.

The objective is ``sum_i w_i min(d(x_i, center of its cluster), price) + penalty * n_clusters``: a
row farther than the price from every center is background. It is lowered by two steps in turn:
which rows are background, given the centers; DP-means of the other rows, from their present
clusters. A row of weight 0 is the same as an absent one, so the second step is the usual search
with the weights of background rows set to 0, on every backend. No step raises the objective.

The price is computed from the distances (`countless._search.noise_model`) until it settles, and
fixed from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._data import Backend, Block
from countless._data.open import open_rows, reweigh
from countless._data.validate import round_weights
from countless._labels import NOISE
from countless._path.micro import CORESET, assign_to, sample_places
from countless._path.null_reference import CLOUDS
from countless._path.penalty import path_of
from countless._search.algorithm1 import Clustering
from countless._search.assignment import Assignment
from countless._search.dp_means import Resolved, best_of_runs, dp_means, resolve_penalty
from countless._search.noise_model import (
    NOISE_MODEL,
    Box,
    Nearest,
    likely_price,
    neighbor_distances,
    normal_scores,
    quantile_price,
    rank_scores,
    sparse_rows,
)
from countless.kernels.assign import distances_of


class FirstClusters(NamedTuple):
    """Clusters of the dense rows of a sample."""

    centers: np.ndarray
    box: Box  # of the sample


class Separated(NamedTuple):
    """Clusters of the rows that are not background."""

    clustering: Clustering  # its history is the whole objective, background included
    resolved: Resolved
    price: float  # a row farther than this from every center is background
    far_weight: float  # of the background
    scores: np.ndarray  # (n_rows,) p-values


def nearest(rows: Backend, centers: np.ndarray, weight: np.ndarray) -> tuple[Assignment, Nearest]:
    """Return the nearest center of every row, and the divergence from it."""
    assignment = assign_to(rows, centers)
    message = rows.fixed_point.centers(centers), rows.fixed_point.divergence.scale
    parts = rows.run(distances_block, assignment.state, message)
    label, distance = (np.concatenate(part) for part in zip(*parts, strict=True))
    return assignment, Nearest(label, distance, weight, len(centers))


def distances_block(block: Block, state, message) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of a block's rows, and the divergences from their centers."""
    form, scale = message
    distance = np.empty(block.n_rows)
    distances_of(block.form, state["labels"], form, distance)
    return state["labels"].copy(), distance / scale


def mark_background(assignment: Assignment, price: float) -> None:
    """Give the rows that are farther than the price from their centers the label of noise."""
    if not np.isfinite(price):
        return
    fixed_point = assignment.rows.fixed_point
    message = fixed_point.centers(assignment.centers), fixed_point.divergence.scale, price
    assignment.rows.run(mark_block, assignment.state, message)


def mark_block(block: Block, state, message) -> None:
    """Give the rows of a block beyond the price the label of noise."""
    *compared, price = message
    _, distance = distances_block(block, state, compared)
    state["labels"][distance > price] = NOISE


def first_clusters(rows: Backend, share: float | None) -> FirstClusters:
    """Return the clusters of the dense rows of a sample.

    With a share, the rows of least local density are left out, as many as that; else those that
    are more likely background than not.
    """
    divergence = rows.fixed_point.divergence
    size = max(min(NOISE_MODEL.sampled_rows, CORESET.item_values // rows.n_features), 2)
    sample = rows.pick(sample_places(rows, size, CLOUDS.seed, in_order=True))
    points = sample.points()
    box = Box.around(points)
    dense = np.arange(sample.n_rows)
    if divergence.is_metric and len(box.columns) and sample.n_rows > 2:
        own, probes = neighbor_distances(points, box)
        if share is None:
            dense = np.flatnonzero(~sparse_rows(own, probes))
        else:
            n_dense = sample.n_rows - int(share * sample.n_rows)
            dense = np.sort(np.argsort(own, kind="stable")[:n_dense])
    kept = sample.pick(dense)
    with open_rows(kept.values, kept.weight, divergence, rows.n_threads) as dense_rows:
        path = path_of(dense_rows)
        assignment = Assignment(dense_rows)
        assignment.set_labels(path.labels_at(path.penalty))
        return FirstClusters(assignment.centers, box)


def dp_means_with_background(
    rows: Backend,
    weight: np.ndarray,
    background: str | float,
    penalty: float | str,
    *,
    n_clusters: int | None,
    refine: bool,
    order: str,
    tol: float,
    max_iter: int,
    seeds: list[int],
    on_pass: OnPass = ignore_pass,
) -> Separated:
    """Cluster the rows that are not background, and find those that are.

    Parameters
    ----------
    rows : Backend
        The rows; their weights are changed.
    weight : ndarray of shape (n_rows,)
        The weights given.
    background : 'auto' or float
        What determines the price: the likelihood, or the largest share of the weight.
    penalty, n_clusters, refine, order, tol, max_iter, seeds, on_pass
        As in `best_of_runs`; a penalty of 'auto' is that of the rows outside the first background.
    """
    share = None if isinstance(background, str) else float(background)
    first = first_clusters(rows, share)

    def price_of(near: Nearest) -> float:
        return likely_price(near, first.box) if share is None else quantile_price(near, share)

    def report(objective: float, k: int) -> None:
        on_pass(objective + price_paid(price, weight, far), k)

    keep = n_clusters is not None
    search: dict[str, Any] = {"order": order, "tol": tol, "max_iter": max_iter, "on_pass": report}

    def first_fit(far: np.ndarray) -> tuple[Resolved, Clustering]:
        reweigh(rows, np.where(far, 0.0, weight))
        resolved = resolve_penalty(rows, penalty, n_clusters=n_clusters, refine=refine)
        found = best_of_runs(
            rows, resolved.penalty, seeds, start=resolved.start, refine=refine, keep=keep, **search
        )
        return resolved, found

    _, near = nearest(rows, first.centers, weight)
    price = price_of(near)
    far = near.distance > price
    resolved, found = first_fit(far)
    keep_after = keep or not refine  # Algorithm 1 opens no cluster after its own end

    def next_fit(start: Any) -> Clustering:
        return dp_means(
            rows, resolved.penalty, start=start, seed=seeds[0], keep=keep_after, **search
        )

    def next_price(near: Nearest, price: float, n_rounds: int) -> float:
        follows = share is not None or (np.isfinite(price) and n_rounds < NOISE_MODEL.price_rounds)
        return price_of(near) if follows else price

    found, near, price = alternate(
        rows, weight, found, far, price, resolved.penalty, next_fit, next_price
    )
    if np.isinf(price) and far.any():  # no background after all: the penalty is that of all rows
        far = np.zeros(len(weight), dtype=bool)
        resolved, found = first_fit(far)
        _, near = nearest(rows, found.centers, weight)
    far_weight = float(weight[near.distance > price].sum())
    scores = outlier_scores(rows, near, price, first.box)
    return Separated(found, resolved, price, far_weight, scores)


def alternate(
    rows: Backend,
    weight: np.ndarray,
    found: Clustering,
    far: np.ndarray,
    price: float,
    penalty: float,
    next_fit: Callable[[Any], Clustering],
    next_price: Callable[[Nearest, float, int], float] = lambda near, price, n_rounds: price,
) -> tuple[Clustering, Nearest, float]:
    """Decide which rows are background and cluster the others, in turn, until nothing changes.

    ``found`` are the clusters of the rows that are not ``far``. ``next_fit`` searches from labels,
    and does not raise the objective; ``next_price`` follows the distances. The history that is
    returned begins where the price changed last.
    """
    runs, n_iter, is_stable = [(found, far)], found.n_iter, False
    for n_rounds in range(NOISE_MODEL.most_rounds):
        _, near = nearest(rows, found.centers, weight)
        paid, price = price, next_price(near, price, n_rounds)
        if price != paid:
            # At an infinite price the last run, whose background is not empty, is no clustering.
            runs = [] if np.isinf(price) and far.any() else runs[-1:]
        before, far = far, near.distance > price
        if is_stable := np.array_equal(before, far):
            break
        reweigh(rows, np.where(far, 0.0, weight))
        start, _ = nearest(rows, found.centers, weight)
        start.drop_empty()
        found = next_fit(start.labels)
        n_iter += found.n_iter
        runs.append((found, far))
    history = [value + price_paid(price, weight, far) for run, far in runs for value in run.history]
    if not is_stable:  # the last centers decide
        _, near = nearest(rows, found.centers, weight)
        price = next_price(near, price, NOISE_MODEL.most_rounds)
        history = [near.cost(price) + penalty * near.n_clusters]
    found = found._replace(
        objective=history[-1],
        history=history,
        n_iter=n_iter,
        converged=is_stable and found.converged,
    )
    return found, near, price


def given_weight(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return the weight of each row as backends use it."""
    weight = round_weights(sample_weight, n_rows)
    return np.ones(n_rows) if weight is None else weight


def price_paid(price: float, weight: np.ndarray, far: np.ndarray) -> float:
    """Return what the background costs."""
    return float(price * weight[far].sum()) if far.any() else 0.0


def outlier_scores(rows: Backend, near: Nearest, price: float, box: Box) -> np.ndarray:
    """Return the p-value of each row's divergence from its nearest center."""
    if rows.fixed_point.divergence.is_shift_invariant and len(box.columns):
        return normal_scores(near, price, len(box.columns))
    return rank_scores(near, price)
