"""The null reference: statistics of simulated data without clusters.

Any cloud of points, partitioned into k pieces, has a plateau at k, is more compact than the whole,
and has few points near some borders. Clouds of the data's kind and without clusters go through the
same linkage and the same refinement (`countless._path.levels`), and statistics of the data are
standardised by theirs. The kinds of clouds are:

* gamma ("bells") and uniform ("boxes") clouds with the data's variance along its principal axes;
  the gamma clouds also have its skewness;
* for discrete columns, these clouds rounded to the values that occur, and columns drawn uniformly
  from those values;
* for the cosine, uniform directions and the directions of normal rows.

The seed is fixed: the number of clusters does not depend on a random state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage

from countless._numbers import origin_of
from countless._path.levels import (
    Figures,
    Points,
    Resolution,
    convex_gains,
    describe_levels,
    refine_levels,
    separation,
)
from countless._path.ward import WardTree
from countless.divergences import Divergence, get_divergence


@dataclass(frozen=True)
class Clouds:
    """Constants of the clouds; ``benchmarks/path_evidence.py`` shows what they are worth."""

    seed: int = 0
    # Points of a cloud, clouds of each kind, and the least average number of points per cluster.
    n_points: int = 400
    n_clouds: int = 12
    points_a_cluster: int = 10
    # Rows from which their shape is estimated, where the whole sample is too large for that.
    sampled_rows: int = 1000
    # Range of the skewness of gamma clouds: from almost normal to exponential.
    least_skewness: float = 0.02
    most_skewness: float = 2.0
    # Standard deviation added to that of widths: for large k plateaus of clouds are so narrow that
    # any other would be significant, although no user could choose a penalty that precisely.
    width_deviation: float = 0.1
    # A column is discrete if it has fewer distinct values than this share of the distinct rows, so
    # that different rows share values; or if this share of its values are one step apart.
    shared_values: float = 0.5
    stepped_values: float = 0.8
    # Axes with less than this share of the largest variance are dropped: they do not affect merges.
    least_variance: float = 1e-3

    @property
    def most_levels(self) -> int:
        """The largest number of clusters that clouds are partitioned into."""
        return self.n_points // self.points_a_cluster


CLOUDS = Clouds()


class NullReference(NamedTuple):
    """Mean and standard deviation of the statistics at k = 2, 3, ... for each kind of cloud."""

    mean: np.ndarray  # (n_kinds, 3, n_levels)
    deviation: np.ndarray

    def standard_scores(self, figures: Figures) -> Figures:
        """Return standard scores of statistics, the least over all kinds of clouds.

        For k above the levels of clouds all scores are that of the width.
        """
        n_levels = len(figures.width)
        mean, deviation = self._at(n_levels)
        deviation[:, 0] = np.hypot(deviation[:, 0], CLOUDS.width_deviation)
        scores = ((np.array(figures) - mean) / deviation).min(axis=0)
        unknown = np.arange(n_levels) >= self.mean.shape[-1]
        return Figures(*np.where(unknown, scores[0], scores))

    def mean_widths(self, n_levels: int) -> np.ndarray:
        """Return the mean width of plateaus, the largest over all kinds of clouds."""
        return self._at(n_levels)[0][:, 0].max(axis=0)

    def _at(self, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return means and standard deviations at k = 2, 3, ...

        Beyond the clouds' levels they are extrapolated: widths decrease as 1/k, the others are
        constant.
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
    """Compute the null reference of clouds, by kind, for k with enough points per cluster."""
    return reference_of([_describe(cloud, resolution) for cloud in kind] for kind in clouds)


def reference_of(kinds: Iterable[list[Figures]]) -> NullReference:
    """Return means and standard deviations of the statistics of clouds, by kind."""
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
    """Smooth over k with a Gaussian kernel in log k; the first few k are not smoothed."""
    k = np.arange(2, values.shape[-1] + 2)
    log_k = np.log(k)
    reach = 0.25 * np.clip(log_k - np.log(5), 1e-3, 1.0)
    kernel = np.exp(-0.5 * ((log_k[:, None] - log_k) / reach[:, None]) ** 2)
    return (values * k) @ (kernel / kernel.sum(axis=1, keepdims=True)).T / k


def _describe(cloud: Points, resolution: Resolution) -> Figures:
    n_points = len(cloud.weight)
    children = linkage(cloud.mean, "ward")[:, :2].astype(np.int64)
    tree = WardTree(children, np.empty(n_points - 1))
    # One level more than is returned: the last width needs the next.
    levels = refine_levels(
        cloud, tree, min(max(n_points // CLOUDS.points_a_cluster, 2) + 1, n_points)
    )
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
        A sample of the rows, relative to some origin.
    weight : ndarray of shape (n_sample,)
    center : ndarray of shape (n_features,)
        The mean of all rows, for divergences that are not translation invariant.
    divergence : Divergence
    n_rows : float
        Rows of the data; clouds have as many points, at most `CLOUDS.n_points`.
    """
    n_points = int(min(n_rows, CLOUDS.n_points))
    generator = np.random.default_rng(CLOUDS.seed)
    kinds: Iterator[np.ndarray]
    if divergence.is_directional:
        kinds = _directions(sample, weight, n_points, generator)
    elif divergence.is_shift_invariant and (discrete := _discrete_columns(sample)):
        kinds = _rows_like(sample, weight, n_rows, discrete)
    else:
        axes = principal_axes(sample, weight, center, divergence)
        kinds = bells_and_boxes(axes, n_points, generator)
        divergence = get_divergence("sqeuclidean")
    ones = np.ones(n_points)
    for kind in kinds:
        yield [Points(cloud, ones, divergence) for cloud in kind]


def rows_like(sample: np.ndarray, weight: np.ndarray, n_rows: float) -> Iterator[np.ndarray]:
    """Draw clouds with the mean, covariance and discrete values of a sample."""
    return _rows_like(sample, weight, n_rows, _discrete_columns(sample))


def _rows_like(
    sample: np.ndarray, weight: np.ndarray, n_rows: float, discrete: dict[int, np.ndarray]
) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(CLOUDS.seed)
    origin = origin_of(sample)  # avoids rounding errors in sums of data far from 0
    sample = sample - origin
    center = weight @ sample / weight.sum()
    axes = principal_axes(sample, weight, center, get_divergence("sqeuclidean"))
    assert axes.direction is not None
    discrete = {column: values - origin[column] for column, values in discrete.items()}
    for clouds in bells_and_boxes(axes, int(min(n_rows, CLOUDS.n_points)), generator):
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
    """Draw columns independently and uniformly, from their discrete values or their range."""
    low, high = sample.min(axis=0), sample.max(axis=0)
    rows = generator.uniform(low, high, shape)
    for column, values in discrete.items():
        rows[..., column] = generator.choice(values, shape[:-1])
    return rows


def bells_and_boxes(
    axes: Axes, n_points: int, generator: np.random.Generator, n_clouds: int = CLOUDS.n_clouds
) -> Iterator[np.ndarray]:
    """Draw gamma and uniform clouds in the coordinates of the principal axes."""
    shape = (n_clouds, n_points, len(axes.variance))
    form = 4 / np.clip(np.abs(axes.skewness), CLOUDS.least_skewness, CLOUDS.most_skewness) ** 2
    sign = np.where(axes.skewness < 0, -1.0, 1.0)
    spread = np.sqrt(axes.variance)
    yield sign * (generator.standard_gamma(form, shape) - form) / np.sqrt(form) * spread
    yield generator.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape) * spread


def _discrete_columns(sample: np.ndarray) -> dict[int, np.ndarray]:
    """Return the distinct values of each discrete column."""
    found = {}
    rows = np.unique(sample, axis=0)
    for column, cells in enumerate(rows.T):
        values = np.unique(cells)
        if len(values) < CLOUDS.shared_values * len(rows) or _is_stepped(values):
            found[column] = values
    return found


def _is_stepped(values: np.ndarray) -> bool:
    """Return whether there are at least three values and most are equally spaced."""
    steps = np.diff(values)
    return len(steps) > 1 and bool(np.mean(steps < 1.5 * steps.min()) >= CLOUDS.stepped_values)


def _nearest_values(cells: np.ndarray, values: np.ndarray) -> np.ndarray:
    return values[np.searchsorted((values[:-1] + values[1:]) / 2, cells)]


def _directions(sample, weight, n_points, generator):
    """Draw unit rows: uniform, and normal ones with the data's mean and covariance, normalised.

    They are drawn in the span of the sample.
    """
    share = weight / weight.sum()
    mean = share @ sample
    _, spread, axes = np.linalg.svd(np.sqrt(share)[:, None] * (sample - mean), full_matrices=False)
    shape = (CLOUDS.n_clouds, n_points, len(spread))
    yield _unit(generator.normal(size=shape) @ axes)
    yield _unit(mean + (generator.normal(size=shape) * spread) @ axes)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


class Axes(NamedTuple):
    """Variance and skewness along the principal axes, largest variance first."""

    variance: np.ndarray
    skewness: np.ndarray
    direction: np.ndarray | None = None  # (n_axes, n_features)


def principal_axes(
    sample: np.ndarray, weight: np.ndarray, center: np.ndarray, divergence: Divergence
) -> Axes:
    """Return the principal axes in the local metric of the divergence at the center.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.divergences import get_divergence
    >>> square = np.array([[-2.0, -1.0], [-2.0, 1.0], [2.0, -1.0], [2.0, 1.0]])
    >>> axes = principal_axes(square, np.ones(4), np.zeros(2), get_divergence("sqeuclidean"))
    >>> axes.variance.tolist(), axes.skewness.tolist()
    ([4.0, 1.0], [0.0, 0.0])
    """
    share = weight / weight.sum()
    if not divergence.is_metric:
        # Near the center a Bregman divergence is a squared distance with one scale per column.
        step = 1e-4 * np.maximum(divergence.margin(center), 0.0)
        ahead, _ = divergence.slope_offset((center + step)[None])
        behind, _ = divergence.slope_offset((center - step)[None])
        curvature = np.divide(
            ahead[0] - behind[0], 2 * step, out=np.zeros_like(step), where=step > 0
        )
        sample = sample * np.sqrt(np.maximum(curvature, 0.0))
    spread = sample - share @ sample
    root = np.sqrt(share)[:, None]
    if spread.shape[1] <= len(spread):
        variance, axis = np.linalg.eigh((root * spread).T @ (root * spread))
        kept = np.flatnonzero(variance > CLOUDS.least_variance * variance[-1])[::-1]
        variance, direction = variance[kept], axis[:, kept].T
        scores = spread @ direction.T
    else:
        variance, axis = np.linalg.eigh((root * spread) @ (root * spread).T)
        kept = np.flatnonzero(variance > CLOUDS.least_variance * variance[-1])[::-1]
        variance, axis = variance[kept], axis[:, kept]
        direction = (axis / np.sqrt(variance)).T @ (root * spread)
        scores = axis * np.sqrt(variance) / root
    return Axes(variance, share @ (scores / np.sqrt(variance)) ** 3, direction)
