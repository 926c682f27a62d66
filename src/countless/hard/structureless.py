"""What data without clusters shows: how wide its plateaus are, and how compact its pieces.

Any cloud of points, cut into k pieces, stays k pieces over some interval of log(penalty); in one or
two dimensions and at small k that interval is wide. A plateau means something only where it is
wider than that. So clouds without structure, with the data's own spread in every direction, go
through the same tree: Gaussian ones, and uniform boxes, which of all unimodal shapes are the
easiest to cut into compact pieces. At each k two things are recorded:

* the width of the plateau, ``log(h[k-1] / h[k])`` with h[k] the cost of the merge that leaves k
  clusters;
* the compactness, ``log((E[1] / (n - 1)) / (E[k] / (n - k)))`` with E[k] the cost of the rows at k
  clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.special import gammainccinv, stdtr

from countless.hard.divergence import Divergence, get_divergence

# Simulated points and clouds of each shape; the figures hardly change with more points.
N_POINTS = 128
N_CLOUDS = 48
# Chance that data without structure is cut somewhere, were the two witnesses independent.
LEVEL = 1e-3
# Directions with less than this share of the largest variance change no merge that matters.
NEGLIGIBLE = 1e-3
# Compactness alone never makes a plateau: it must be wider than a tenth of the structureless ones.
EASIEST = 0.9
# Compactness is heard where clusters have this many rows on average: a few outliers make small
# clusters compact.
ROWS_TO_BE_HEARD = 10
# Skewness that a simulated bell can have: from almost none to an exponential distribution's.
SKEWNESS = (0.02, 2.0)


class Axes(NamedTuple):
    """The spread of data along its principal axes, widest first."""

    variance: np.ndarray
    skewness: np.ndarray
    direction: np.ndarray | None = None  # (n_axes, n_features)


class Structureless(NamedTuple):
    """Mean and deviation for k = 2, 3, ... of each shape, bell and box."""

    width: np.ndarray  # (2, n_k)
    width_deviation: np.ndarray
    compactness: np.ndarray
    compactness_deviation: np.ndarray


def principal_axes(
    sample: np.ndarray, weight: np.ndarray, center: np.ndarray, divergence: Divergence
) -> Axes:
    """Describe the spread along the principal axes, as the divergence sees it near the center.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.hard.divergence import get_divergence
    >>> square = np.array([[-2.0, -1.0], [-2.0, 1.0], [2.0, -1.0], [2.0, 1.0]])
    >>> axes = principal_axes(square, np.ones(4), np.zeros(2), get_divergence("sqeuclidean"))
    >>> axes.variance.tolist(), axes.skewness.tolist()
    ([4.0, 1.0], [0.0, 0.0])
    """
    share = weight / weight.sum()
    if divergence.name not in ("sqeuclidean", "cosine"):
        # Near the center a Bregman divergence is a squared distance with one scale a column.
        room = np.minimum(center, 1 - center) if divergence.name == "logistic" else center
        step = 1e-4 * np.maximum(room, 0.0)
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
        kept = np.flatnonzero(variance > NEGLIGIBLE * variance[-1])[::-1]
        variance, direction = variance[kept], axis[:, kept].T
        scores = spread @ direction.T
    else:
        variance, axis = np.linalg.eigh((root * spread) @ (root * spread).T)
        kept = np.flatnonzero(variance > NEGLIGIBLE * variance[-1])[::-1]
        variance, axis = variance[kept], axis[:, kept]
        direction = (axis / np.sqrt(variance)).T @ (root * spread)
        scores = axis * np.sqrt(variance) / root
    return Axes(variance, share @ (scores / np.sqrt(variance)) ** 3, direction)


def simulate(axes: Axes, n_rows: float, seed: int) -> Structureless:
    """Send clouds with this spread through the tree.

    Parameters
    ----------
    axes : Axes
        The spread of the data.
    n_rows : float
        Rows of the data, at least 4; clouds have as many points up to a limit.
    seed : int
        The same seed gives the same figures.
    """
    clouds = draw_clouds(axes, n_rows, seed) * np.sqrt(axes.variance)
    return typical([[_figures(cloud) for cloud in kind] for kind in clouds])


def draw_clouds(axes: Axes, n_rows: float, seed: int) -> np.ndarray:
    """Return clouds with unit spread along each axis: bells, then boxes, of so many points each.

    The shape is (2, N_CLOUDS, n_points, n_axes).
    """
    generator = np.random.default_rng(seed)
    shape = (N_CLOUDS, int(min(n_rows, N_POINTS)), len(axes.variance))
    form = 4 / np.clip(np.abs(axes.skewness), *SKEWNESS) ** 2
    box = np.sqrt(3.0)
    bells = (generator.standard_gamma(form, shape) - form) / np.sqrt(form)
    return np.stack([bells, generator.uniform(-box, box, shape)])


def clouds_like(sample: np.ndarray, share: np.ndarray, n_rows: float, seed: int) -> np.ndarray:
    """Return clouds among rows: about their mean, with their spread in every direction."""
    center = share @ sample
    axes = principal_axes(sample, share, center, get_divergence("sqeuclidean"))
    spread = np.sqrt(share)[:, None] * (sample - center)
    _, _, directions = np.linalg.svd(spread, full_matrices=False)
    back = np.sqrt(axes.variance)[:, None] * directions[: len(axes.variance)]
    return center + draw_clouds(axes, n_rows, seed) @ back


def typical(figures: list) -> Structureless:
    """Sum up the figures of clouds: (shape, cloud, width or compactness, k)."""
    values = np.array(figures)
    mean, deviation = values.mean(axis=1), values.std(axis=1, ddof=1)
    widths = smooth_widths(mean[:, 0]), smooth_widths(deviation[:, 0])
    return Structureless(*widths, mean[:, 1], deviation[:, 1])


def null_widths(null: Structureless, compactness: np.ndarray, n_rows: float) -> np.ndarray:
    """Return the width that a plateau must exceed at k = 2, 3, ..., given how compact it is.

    Two witnesses are heard at every k: the width of the plateau, and the compactness of its
    clusters. The product of the chances that structureless data does as well must be below ``LEVEL
    / (k (k - 1))``, which sums to LEVEL over all k. So the more compact the clusters, the less wide
    the plateau has to be. No width is enough where the clusters are less compact than pieces of
    structureless data: there a cloud that is long in some directions and short in many others has
    been cut to round pieces, and stays so over a wide interval.
    """
    n_known = null.width.shape[1]
    k = np.arange(2, len(compactness) + 2)
    simulated = slice(0, min(n_known, len(k)))
    excess = compactness[simulated] - null.compactness[:, simulated]
    scale = null.compactness_deviation[:, simulated] * np.sqrt(1 + 1 / N_CLOUDS)
    chance = np.ones(len(k))
    chance[simulated] = stdtr(N_CLOUDS - 1, -excess / scale).max(axis=0)
    chance[k * ROWS_TO_BE_HEARD > n_rows] = 1.0
    loose = np.zeros(len(k), dtype=bool)
    loose[simulated] = (excess < 0).any(axis=0)
    level = LEVEL / (k * (k - 1.0))
    share = np.minimum(level / np.maximum(chance, np.finfo(float).tiny), EASIEST)
    return np.where(loose, np.inf, exceeded_by(null.width, null.width_deviation, share))


def exceeded_by(mean: np.ndarray, deviation: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the width that this share of the clouds exceeds at k = 2, 3, ..., of either shape."""
    k = np.arange(2, len(share) + 2)
    # Beyond the simulated range widths fall as 1/k, and compactness is not heard.
    known = np.minimum(k - 2, mean.shape[1] - 1)
    shrink = (known + 2) / k
    mean, deviation = mean[:, known] * shrink, deviation[:, known] * shrink
    form = (mean / deviation) ** 2
    # The widths of clouds are taken as gamma distributed.
    return (gammainccinv(form, share) * mean / form).max(axis=0)


def plateau_widths(height: np.ndarray) -> np.ndarray:
    """Return the widths at k = 2, 3, ... from merge costs, highest first."""
    return np.log(height[:-1]) - np.log(height[1:])


def compactness_curve(cost: np.ndarray, n_rows: float) -> np.ndarray:
    """Return the compactness at k = 2, 3, ... from the costs E[1], E[2], ..."""
    per_row = np.log(cost) - np.log(n_rows - np.arange(1, len(cost) + 1))
    return per_row[0] - per_row[1:]


def _figures(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return widths and compactness of a cloud up to a third of its points."""
    height = linkage(points, "ward")[::-1, 2] ** 2 / 2
    cost = np.cumsum(height[::-1])[::-1]
    last = max(2, len(points) // 3)
    return plateau_widths(height[:last]), compactness_curve(cost[:last], len(points))


def smooth_widths(values: np.ndarray) -> np.ndarray:
    """Average each figure with those of similar k; the first few, which differ, stay alone."""
    k = np.arange(2, values.shape[-1] + 2)
    log_k = np.log(k)
    reach = 0.25 * np.clip(log_k - np.log(5), 1e-3, 1.0)
    kernel = np.exp(-0.5 * ((log_k[:, None] - log_k) / reach[:, None]) ** 2)
    return (values * k) @ (kernel / kernel.sum(axis=1, keepdims=True)).T / k
