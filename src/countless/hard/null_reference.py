"""What data without clusters shows, so that a number of clusters can be judged by it.

Any cloud of points, cut into k pieces, has a plateau at k, is more compact than the whole, and has
few points near some borders. Clouds of the data's kind and without clusters go through the same
tree and the same refinement (`countless.hard.levels`), and a figure of the data counts as far as it
exceeds theirs, in standard deviations:

* bells and boxes with the data's spread along its principal axes, the bells with its skewness;
* of discrete columns, the values that occur in them: the clouds are rounded to those, and others
  have all values of a column with the same probability;
* of directions, uniform ones and the directions of normal rows.

The draws are fixed: no seed decides how many clusters there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage

from countless._numbers import origin_of
from countless.hard.axes import Axes, principal_axes
from countless.hard.divergence import Divergence, get_divergence
from countless.hard.levels import (
    Figures,
    Points,
    Resolution,
    convex_gains,
    describe_levels,
    refine_levels,
    separation,
)
from countless.hard.ward import WardTree

SEED = 0
# Points of a cloud, clouds of each kind, and points that a level has at least for each cluster.
N_POINTS, N_CLOUDS, POINTS_A_CLUSTER = 400, 12, 10
MOST_LEVELS = N_POINTS // POINTS_A_CLUSTER
# Skewness that a simulated bell can have: from almost none to an exponential distribution's.
SKEWNESS = (0.02, 2.0)
# Widths are compared up to this error: at many clusters plateaus of clouds are so narrow that any
# other would stand out, and no user could name a penalty within it.
NARROW = 0.1
# A column is discrete if it has fewer different values than this share of the different rows, so
# that rows that differ share its values; or if this share of its values are one step apart.
SHARED, STEPPED = 0.5, 0.8


class NullReference(NamedTuple):
    """Mean and deviation of the figures at k = 2, 3, ... for each kind of cloud."""

    mean: np.ndarray  # (n_kinds, 3, n_levels)
    deviation: np.ndarray

    def standard_scores(self, figures: Figures) -> Figures:
        """Return by how many deviations figures exceed those of every kind of cloud.

        Above the levels that clouds have, the width alone is judged.
        """
        n_levels = len(figures.width)
        mean, deviation = self._at(n_levels)
        deviation[:, 0] = np.hypot(deviation[:, 0], NARROW)
        scores = ((np.array(figures) - mean) / deviation).min(axis=0)
        unknown = np.arange(n_levels) >= self.mean.shape[-1]
        return Figures(*np.where(unknown, scores[0], scores))

    def mean_widths(self, n_levels: int) -> np.ndarray:
        """Return the mean width of plateaus, of the kind of clouds that has the widest."""
        return self._at(n_levels)[0][:, 0].max(axis=0)

    def _at(self, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return means and deviations at k = 2, 3, ...; beyond the clouds' levels as at the last.

        But widths fall as 1/k.
        """
        k = np.arange(2, n_levels + 2)
        last = self.mean.shape[-1] + 1
        known = np.minimum(k, last) - 2
        mean, deviation = self.mean[..., known], self.deviation[..., known]
        shrink = np.minimum(last / k, 1.0)
        mean[:, 0] *= shrink
        deviation[:, 0] *= shrink
        return mean, deviation


def null_reference(clouds: Iterable[Iterable[Points]], resolution: Resolution) -> NullReference:
    """Describe clouds, kind by kind, at levels that have points enough."""
    return reference_of([_describe(cloud, resolution) for cloud in kind] for kind in clouds)


def reference_of(kinds: Iterable[list[Figures]]) -> NullReference:
    """Sum up the figures of clouds, kind by kind."""
    means, deviations = [], []
    for kind in kinds:
        values = np.array(kind)
        means.append(values.mean(axis=0))
        deviations.append(values.std(axis=0, ddof=1))
    mean, deviation = np.array(means), np.array(deviations)
    mean[:, 0] = smooth_widths(mean[:, 0])
    for figure in range(3):
        deviation[:, figure] = smooth_widths(deviation[:, figure])
    return NullReference(mean, np.maximum(deviation, np.finfo(float).tiny))


def smooth_widths(values: np.ndarray) -> np.ndarray:
    """Average each figure with those of similar k; the first few, which differ, stay alone."""
    k = np.arange(2, values.shape[-1] + 2)
    log_k = np.log(k)
    reach = 0.25 * np.clip(log_k - np.log(5), 1e-3, 1.0)
    kernel = np.exp(-0.5 * ((log_k[:, None] - log_k) / reach[:, None]) ** 2)
    return (values * k) @ (kernel / kernel.sum(axis=1, keepdims=True)).T / k


def _describe(cloud: Points, resolution: Resolution) -> Figures:
    n_points = len(cloud.weight)
    children = linkage(cloud.mean, "ward")[:, :2].astype(np.int64)
    tree = WardTree(children, np.empty(n_points - 1))
    # One level more than is described: the last width needs the next.
    levels = refine_levels(cloud, tree, min(max(n_points // POINTS_A_CLUSTER, 2) + 1, n_points))
    cost = np.array([level.cost for level in levels])
    gain = np.maximum(convex_gains(cost[:-1] - cost[1:]), 0.0)
    apart = np.array([separation(cloud, level) for level in levels[1:-1]])
    return describe_levels(cost[:-1], gain, apart, n_points, resolution)


def clouds_like(
    sample: np.ndarray,
    weight: np.ndarray,
    center: np.ndarray,
    divergence: Divergence,
    n_rows: float,
) -> Iterator[list[Points]]:
    """Draw clouds of the data's kind, without clusters.

    Parameters
    ----------
    sample : ndarray of shape (n_sample, n_features)
        Rows that show the shape of the whole, about some origin.
    weight : ndarray of shape (n_sample,)
    center : ndarray of shape (n_features,)
        The mean of all rows, for divergences that are not the same everywhere.
    divergence : Divergence
    n_rows : float
        Rows of the data; clouds have as many points, up to a limit.
    """
    n_points = int(min(n_rows, N_POINTS))
    generator = np.random.default_rng(SEED)
    kinds: Iterator[np.ndarray]
    if divergence.name == "cosine":
        kinds = _directions(sample, weight, n_points, generator)
    elif divergence.name == "sqeuclidean" and _discrete_columns(sample):
        kinds = rows_like(sample, weight, n_rows)
    else:
        axes = principal_axes(sample, weight, center, divergence)
        kinds = bells_and_boxes(axes, n_points, generator)
        divergence = get_divergence("sqeuclidean")
    ones = np.ones(n_points)
    for kind in kinds:
        yield [Points(cloud, ones, divergence) for cloud in kind]


def rows_like(sample: np.ndarray, weight: np.ndarray, n_rows: float) -> Iterator[np.ndarray]:
    """Draw clouds of rows: about the mean of a sample, with its spread, and its discrete values."""
    generator = np.random.default_rng(SEED)
    origin = origin_of(sample)  # sums far from 0 are rounded, even those of a constant column
    sample = sample - origin
    center = weight @ sample / weight.sum()
    axes = principal_axes(sample, weight, center, get_divergence("sqeuclidean"))
    assert axes.direction is not None
    discrete = _discrete_columns(sample)
    for clouds in bells_and_boxes(axes, int(min(n_rows, N_POINTS)), generator):
        rows = center + clouds @ axes.direction
        for column, values in discrete.items():
            rows[..., column] = _nearest_values(rows[..., column], values)
        yield rows + origin
    if discrete:
        yield _any_values(sample, discrete, rows.shape, generator) + origin


def _any_values(
    sample: np.ndarray,
    discrete: dict[int, np.ndarray],
    shape: tuple[int, ...],
    generator: np.random.Generator,
) -> np.ndarray:
    """Draw each column by itself: all its values are equally likely, or all in its range."""
    low, high = sample.min(axis=0), sample.max(axis=0)
    rows = generator.uniform(low, high, shape)
    for column, values in discrete.items():
        rows[..., column] = generator.choice(values, shape[:-1])
    return rows


def bells_and_boxes(
    axes: Axes, n_points: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    """Draw clouds in the space of the axes."""
    shape = (N_CLOUDS, n_points, len(axes.variance))
    form = 4 / np.clip(np.abs(axes.skewness), *SKEWNESS) ** 2
    sign = np.where(axes.skewness < 0, -1.0, 1.0)
    spread = np.sqrt(axes.variance)
    yield sign * (generator.standard_gamma(form, shape) - form) / np.sqrt(form) * spread
    yield generator.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape) * spread


def _discrete_columns(sample: np.ndarray) -> dict[int, np.ndarray]:
    """Return the values of each column that has few."""
    found = {}
    rows = np.unique(sample, axis=0)
    for column, cells in enumerate(rows.T):
        values = np.unique(cells)
        if len(values) < SHARED * len(rows) or _is_stepped(values):
            found[column] = values
    return found


def _is_stepped(values: np.ndarray) -> bool:
    """Tell whether most of three values or more follow each other at the same step."""
    steps = np.diff(values)
    return len(steps) > 1 and bool(np.mean(steps < 1.5 * steps.min()) >= STEPPED)


def _nearest_values(cells: np.ndarray, values: np.ndarray) -> np.ndarray:
    return values[np.searchsorted((values[:-1] + values[1:]) / 2, cells)]


def _directions(sample, weight, n_points, generator):
    """Draw unit rows: uniform ones, and those of normal rows with the mean and spread of the data.

    They are drawn in the space that the sample spans.
    """
    share = weight / weight.sum()
    mean = share @ sample
    _, spread, axes = np.linalg.svd(np.sqrt(share)[:, None] * (sample - mean), full_matrices=False)
    shape = (N_CLOUDS, n_points, len(spread))
    yield _unit(generator.normal(size=shape) @ axes)
    yield _unit(mean + (generator.normal(size=shape) * spread) @ axes)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
