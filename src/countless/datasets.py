"""Generated data: the four sets of the benchmarks, and rows drawn from the exemplar model.

The four sets:

==== ========= ======== ======== ==================================================================
name      rows columns  clusters what it is
==== ========= ======== ======== ==================================================================
a      100,000        2       50 many blobs in the plane, some overlapping
b      312,320      128      100 overlapping blobs in 16 dimensions, rotated into 128; float32
c       20,000       32      500 many small blobs, far apart
d    1,000,000        8       30 few large blobs, far apart
==== ========= ======== ======== ==================================================================
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from countless.priors import PartitionPrior

__all__ = ["BenchmarkSet", "ExemplarSample", "benchmark_set", "sample_exemplar_model"]


class BenchmarkSet(NamedTuple):
    """Rows and the truth they were drawn from."""

    X: np.ndarray  # (n_rows, n_features)
    centers: np.ndarray  # (n_clusters, n_features)
    labels: np.ndarray  # (n_rows,), the index of each row's center


class _Recipe(NamedTuple):
    n_rows: int
    n_clusters: int
    n_dimensions: int
    draw_centers: Callable[[np.random.RandomState, tuple[int, int]], np.ndarray]
    deviation: float


_RECIPES = {
    "a": _Recipe(100_000, 50, 2, lambda random, shape: random.uniform(0, 20, shape), 0.5),
    "b": _Recipe(312_320, 100, 16, lambda random, shape: 1.5 * random.standard_normal(shape), 1.0),
    "c": _Recipe(20_000, 500, 32, lambda random, shape: random.standard_normal(shape), 0.3),
    "d": _Recipe(1_000_000, 30, 8, lambda random, shape: random.uniform(-10, 10, shape), 1.0),
}

_N_ROTATED = 128  # columns of set b
_ROTATED_NOISE = 0.1
_BLOCK_ROWS = 16_384


def benchmark_set(name: str, n_rows: int | None = None) -> BenchmarkSet:
    """Draw one of the benchmark sets; the same rows every time.

    Parameters
    ----------
    name : {'a', 'b', 'c', 'd'}
        Which set; the table at the top of this module describes them.
    n_rows : int, optional
        How many rows to draw around the same centers; by default as many as the table says.

    Returns
    -------
    BenchmarkSet
        The rows ``X``, the true ``centers`` and the true ``labels``.

    Examples
    --------
    >>> from countless.datasets import benchmark_set
    >>> X, centers, labels = benchmark_set("c", n_rows=1000)
    >>> X.shape, centers.shape, labels.shape
    ((1000, 32), (500, 32), (1000,))
    """
    if name not in _RECIPES:
        raise ValueError(f"name must be one of {', '.join(_RECIPES)}; got {name!r}")
    recipe = _RECIPES[name]
    n_rows = recipe.n_rows if n_rows is None else n_rows
    if n_rows < 1:
        raise ValueError(f"n_rows must be at least 1; got {n_rows}")
    # RandomState, because its stream is the same in every version of NumPy.
    random = np.random.RandomState(0)
    frame = _orthonormal_frame(random, recipe.n_dimensions) if name == "b" else None
    centers = recipe.draw_centers(random, (recipe.n_clusters, recipe.n_dimensions))
    labels = random.randint(recipe.n_clusters, size=n_rows)
    X = random.standard_normal((n_rows, recipe.n_dimensions))
    X *= recipe.deviation
    X += centers[labels]
    if frame is None:
        return BenchmarkSet(X, centers, labels)
    return BenchmarkSet(_rotated(random, X, frame), centers @ frame, labels)


def _orthonormal_frame(random: np.random.RandomState, n_dimensions: int) -> np.ndarray:
    """Draw ``n_dimensions`` orthonormal directions, one a row, in the rotated space."""
    return np.linalg.qr(random.standard_normal((_N_ROTATED, _N_ROTATED)))[0][:n_dimensions]


def _rotated(random: np.random.RandomState, X: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Rotate rows into the wider space and add noise there; in blocks, to spare memory."""
    rotated = np.empty((len(X), _N_ROTATED), dtype=np.float32)
    for start in range(0, len(X), _BLOCK_ROWS):
        block = X[start : start + _BLOCK_ROWS] @ frame
        block += _ROTATED_NOISE * random.standard_normal(block.shape)
        rotated[start : start + _BLOCK_ROWS] = block
    return rotated


class ExemplarSample(NamedTuple):
    """Rows around exemplars, and what they were drawn from."""

    X: np.ndarray  # (n_rows, n_features)
    labels: np.ndarray  # (n_rows,), numbered by first appearance
    exemplars: np.ndarray  # (n_clusters,), the row that the others of each cluster lie around


def sample_exemplar_model(
    n_samples: int = 100,
    prior: "PartitionPrior | None" = None,
    *,
    n_features: int = 2,
    noise_variance: float = 0.5,
    base_variance: float = 1.0,
    random_state: Any = None,
) -> ExemplarSample:
    """Draw rows from the exemplar model of Tarlow, Zemel and Frey (2008, section 3).

    A partition is drawn from the prior, and one row of each cluster, any with the same probability,
    is its exemplar. Exemplars are normal around 0, and the other rows around their exemplars.

    Parameters
    ----------
    n_samples : int, default=100
        How many rows.
    prior : PartitionPrior, optional
        Where the partition comes from; by default the Dirichlet process of ``alpha=1``.
    n_features : int, default=2
        How many columns.
    noise_variance, base_variance : float, default=0.5, 1.0
        The variance of a column around the exemplar, and that of exemplars.
    random_state : int, RandomState, Generator or None
        Where the draws come from.

    Returns
    -------
    ExemplarSample
        The rows ``X``, the true ``labels`` and the ``exemplars``.

    Examples
    --------
    >>> from countless.datasets import sample_exemplar_model
    >>> X, labels, exemplars = sample_exemplar_model(50, random_state=0)
    >>> X.shape, labels[exemplars].tolist() == list(range(len(exemplars)))
    ((50, 2), True)
    """
    from countless.priors import DirichletProcess
    from countless.priors.hyper import as_generator, check_positive

    check_positive("noise_variance", noise_variance)
    check_positive("base_variance", base_variance)
    random = as_generator(random_state)
    labels = (prior or DirichletProcess()).sample(n_samples, random)
    # The first row of each cluster in a random order of all.
    order = random.permutation(n_samples)
    exemplars = order[np.unique(labels[order], return_index=True)[1]]
    noise = np.sqrt(noise_variance) * random.standard_normal((n_samples, n_features))
    noise[exemplars] = 0.0
    centers = np.sqrt(base_variance) * random.standard_normal((len(exemplars), n_features))
    return ExemplarSample(centers[labels] + noise, labels, exemplars)
