"""Posterior draws of partitions: summaries of them, and convergence diagnostics of their chains.

Split R-hat compares the variance within chains with that of all draws [2]_; it and the effective
sample size are computed by ``arviz-stats``, which needs only numpy and SciPy.

References
----------
.. [1] K. P. Murphy, "Machine Learning: A Probabilistic Perspective", section 25.2, 2012.
.. [2] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner, "Rank-normalization,
   folding, and localization: an improved R-hat", Bayesian Analysis 16, 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from countless._labels import check_labels
from countless._mcmc.draws import collapse, number_alike
from countless._mcmc.point_estimate import expected_loss, point_estimate
from countless._memory import state_memory
from countless._show import Plotted, Records
from countless.kernels.draws import count_together

# Least number of draws of a chain: each of its halves must have a variance.
FEWEST = 4


class Diagnostic(NamedTuple):
    """Convergence diagnostics of one scalar."""

    r_hat: float  # 1 where chains agree; NaN for one chain, or fewer than four draws
    effective_size: float  # bulk effective sample size


def diagnose(draws: np.ndarray) -> Diagnostic:
    """Return split R-hat and bulk effective sample size of one scalar, (n_chains, n_draws).

    Examples
    --------
    >>> diagnose(np.ones((4, 100)))
    Diagnostic(r_hat=1.0, effective_size=400.0)
    >>> diagnose(np.ones((2, 100)) * [[1.0], [2.0]])
    Diagnostic(r_hat=inf, effective_size=2.0)
    """
    from arviz_stats.base.array import array_stats

    n_chains, n_draws = draws.shape
    if n_draws < FEWEST:
        return Diagnostic(np.nan, np.nan)
    if np.all(draws == draws[:, :1]):  # no variance within chains
        agreed = bool(np.all(draws == draws[0, 0]))
        r_hat = np.nan if n_chains == 1 else 1.0 if agreed else np.inf
        return Diagnostic(r_hat, float(draws.size if agreed else n_chains))
    with np.errstate(divide="ignore", invalid="ignore"):  # constant halves: infinite
        size = float(array_stats.ess(draws, chain_axis=0, draw_axis=1))
        r_hat = array_stats.rhat(draws, chain_axis=0, draw_axis=1) if n_chains > 1 else np.nan
    return Diagnostic(float(r_hat), size)


# Largest label, or the number of rows if that is larger: labels are renumbered by a lookup table.
HIGHEST = 2**16
# Tolerance for rounding errors in sums of probabilities.
ROUNDING = 1e-9


class ClusterCount(NamedTuple):
    """A number of clusters and its posterior probability."""

    n_clusters: int
    probability: float


class Posterior(Plotted):
    """Posterior draws of a partition and of its parameters, from several chains.

    Parameters
    ----------
    labels : array-like of int, shape (n_chains, n_draws, n_rows)
        The cluster of each row in each draw, any nonnegative integers.
    log_joint : array-like of float, shape (n_chains, n_draws)
        The log joint density of data, partition and parameters, up to a constant.
    parameters : mapping, optional
        Draws of other quantities by name, each of shape ``(n_chains, n_draws, ...)``.
    thin : int, default=1
        Number of sweeps of the sampler per draw; stored, not applied.

    Attributes
    ----------
    labels : ndarray of shape (n_chains, n_draws, n_rows)
        Numbered by first appearance within each draw, of the smallest sufficient integer type.
    n_clusters : ndarray of int, shape (n_chains, n_draws)
        Number of clusters of each draw.
    log_joint : ndarray of shape (n_chains, n_draws)
    parameters : dict
    thin : int

    Examples
    --------
    >>> import numpy as np
    >>> from countless._mcmc.posterior import Posterior
    >>> posterior = Posterior([[[4, 4, 1], [2, 2, 2]]], [[-3.0, -4.0]])
    >>> posterior
    <Posterior: 1 chains of 2 draws of 3 rows, 1 to 2 clusters>
    >>> posterior.labels.tolist(), posterior.n_clusters.tolist()
    ([[[0, 0, 1], [0, 0, 0]]], [[2, 1]])
    """

    def __init__(
        self,
        labels: ArrayLike,
        log_joint: ArrayLike,
        parameters: Mapping[str, ArrayLike] | None = None,
        *,
        thin: int = 1,
    ) -> None:
        self.labels, self.n_clusters = number_alike(_check_labels(labels))
        self.log_joint = self._check_draws("log_joint", log_joint)
        if self.log_joint.ndim != 2:
            raise ValueError(f"log_joint must be one number a draw; got {self.log_joint.shape}")
        self.parameters = {
            name: self._check_draws(name, value) for name, value in (parameters or {}).items()
        }
        self.thin = thin

    def __repr__(self) -> str:
        n_chains, n_draws, n_rows = self.labels.shape
        low, high = int(self.n_clusters.min()), int(self.n_clusters.max())
        return (
            f"<Posterior: {n_chains} chains of {n_draws} draws of {n_rows} rows, "
            f"{low} to {high} clusters>"
        )

    _display, _maker = "ClusterCountDisplay", "from_posterior"

    def _describe(self) -> tuple[list[str], Records]:
        n_chains, n_draws, n_rows = self.labels.shape
        low, high = self.n_clusters_interval()
        lines = [
            f"{low} to {high} clusters with probability 0.95",
            f"chains: {n_chains}; draws: {n_draws} of {n_rows} rows each",
        ]
        r_hat, size = self.diagnostics()["n_clusters"]
        if np.isfinite(size):
            lines.append(f"number of clusters: R-hat {r_hat:.2f}, effective sample size {size:.0f}")
        share = self.n_clusters_distribution()
        likeliest = np.argsort(-share, kind="stable")[: np.count_nonzero(share)]
        return lines, Records(ClusterCount(int(k), float(share[k])) for k in likeliest)

    @property
    def alpha(self) -> np.ndarray:
        """The concentration in each draw, (n_chains, n_draws)."""
        if "alpha" not in self.parameters:
            raise AttributeError("the prior of these draws has no alpha")
        return self.parameters["alpha"]

    def n_clusters_distribution(self) -> np.ndarray:
        """Return the posterior distribution of the number of clusters; entry k is that of k.

        Examples
        --------
        >>> from countless._mcmc.posterior import Posterior
        >>> Posterior([[[0, 0, 1], [0, 0, 0]]], [[-3.0, -4.0]]).n_clusters_distribution()
        array([0. , 0.5, 0.5])
        """
        counts = np.bincount(self.n_clusters.ravel())
        return counts / counts.sum()

    def n_clusters_interval(self, prob: float = 0.95) -> tuple[int, int]:
        """Return the shortest credible interval of the number of clusters.

        Parameters
        ----------
        prob : float, default=0.95
            Least probability of the interval, above 0 and at most 1.

        Returns
        -------
        low, high : int
            Both ends are included. Of intervals of equal length the most probable is returned.

        Examples
        --------
        >>> from countless._mcmc.posterior import Posterior
        >>> posterior = Posterior([[[0, 0, 1], [0, 1, 2], [0, 1, 0]]], [[-3.0, -4.0, -3.5]])
        >>> posterior.n_clusters_interval(0.6), posterior.n_clusters_interval()
        ((2, 2), (2, 3))
        """
        if not 0 < prob <= 1:
            raise ValueError(f"prob must be above 0 and at most 1; got {prob}")
        share = self.n_clusters_distribution()
        below = np.concatenate([[0], np.cumsum(share)])
        length = 0
        inside = share[:0]
        while inside.max(initial=0) < prob - ROUNDING:
            length += 1
            inside = below[length:] - below[:-length]
        low = int(np.argmax(inside))
        return low, low + length - 1

    def similarity(
        self, rows: ArrayLike | None = None, columns: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the posterior similarity matrix: co-clustering probabilities of pairs of rows.

        Only the requested part is computed. The matrix of all pairs of n rows takes ``4 n ** 2``
        bytes: the size is logged first, and an error is raised if there is less memory.

        Parameters
        ----------
        rows : array-like of int, optional
            Row indices, for the rows of the matrix; default: all.
        columns : array-like of int, optional
            Row indices, for the columns of the matrix; default: all.

        Returns
        -------
        ndarray of float32, shape (len(rows), len(columns))
            The share of draws in which two rows are in the same cluster.

        Examples
        --------
        >>> from countless._mcmc.posterior import Posterior
        >>> posterior = Posterior([[[0, 0, 1], [0, 0, 0]]], [[-3.0, -4.0]])
        >>> posterior.similarity([0], [1, 2])
        array([[1. , 0.5]], dtype=float32)
        """
        here, there = (
            self._check_rows(name, asked) for name, asked in (("rows", rows), ("columns", columns))
        )
        state_memory(
            f"the similarity of {len(here):,} rows with {len(there):,}",
            4 * len(here) * len(there),
            "ask for some rows or columns",
        )
        # Rows with equal labels in all draws have equal similarities: these are computed once.
        draws = self._draws()
        row_of, row_first = collapse(draws[:, here])
        column_of, column_first = collapse(draws[:, there])
        share = np.empty((len(row_first), len(column_first)), dtype=np.float32)
        profiles, others = draws[:, here[row_first]], draws[:, there[column_first]]
        count_together(np.ascontiguousarray(profiles.T), np.ascontiguousarray(others.T), share)
        return share[row_of[:, None], column_of]

    def point_estimate(
        self,
        loss: str = "vi",
        random_state: Any = None,
        assign: bool = True,
        same: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the partition of least posterior expected loss.

        It is found by local search. Except for rows that ``assign`` then moves, its expected loss
        is at most that of every draw that was evaluated: at 10,000 rows these are all of 200 draws.
        With more than 200 draws the search uses 200, and then all of them. The result has at most
        twice as many clusters as the largest draw, plus eight.

        Parameters
        ----------
        loss : {'vi', 'binder'}, default='vi'
            Variation of information, or Binder's loss: the share of pairs of rows on which two
            partitions disagree, which favours small clusters more.
        random_state : int, RandomState, Generator or None, default=None
            For the starts of the search and the order of its moves.
        assign : bool, default=True
            A row that is with no cluster in half of the draws has a slightly lower expected loss
            as a singleton. Unless it is a singleton in most draws, it is assigned to the cluster
            where the loss increases least; False leaves it a singleton.
        same : ndarray of shape (n_rows,), optional
            Rows with the same number are equal, and all get their majority label.

        Returns
        -------
        ndarray of int32, shape (n_rows,)
            Numbered by first appearance.

        Examples
        --------
        >>> from countless._mcmc.posterior import Posterior
        >>> posterior = Posterior([[[0, 0, 1], [0, 0, 1], [0, 0, 0]]], [[-3.0, -3.0, -4.0]])
        >>> posterior.point_estimate(random_state=0)
        array([0, 0, 1], dtype=int32)
        """
        return point_estimate(self._draws(), loss, random_state, assign, same)

    def expected_loss(self, labels: ArrayLike, loss: str = "vi") -> float:
        """Return the posterior expected loss of a partition: its mean distance from the draws.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            A partition of the same rows.
        loss : {'vi', 'binder'}, default='vi'
            Variation of information in nats, or the share of pairs that disagree.

        Returns
        -------
        float

        Examples
        --------
        >>> from countless._mcmc.posterior import Posterior
        >>> posterior = Posterior([[[0, 0, 1], [0, 0, 0]]], [[-3.0, -4.0]])
        >>> round(posterior.expected_loss(["a", "a", "b"], loss="binder"), 4)
        0.3333
        """
        given = check_labels("labels", labels)
        if len(given) != self.labels.shape[2]:
            raise ValueError(
                f"labels has {len(given)} labels, and the draws have {self.labels.shape[2]} rows"
            )
        return expected_loss(self._draws(), given, loss)

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return R-hat and effective sample size of k, the log joint and each scalar parameter.

        Returns
        -------
        dict
            A `Diagnostic` for ``"n_clusters"``, ``"log_joint"`` and the name of each scalar
            parameter.

        Examples
        --------
        >>> import numpy as np
        >>> from countless._mcmc.posterior import Posterior
        >>> random = np.random.default_rng(0)
        >>> labels = random.integers(0, 3, size=(4, 200, 20))
        >>> posterior = Posterior(labels, random.normal(size=(4, 200)))
        >>> found = posterior.diagnostics()["log_joint"]
        >>> found.r_hat < 1.01, found.effective_size > 400
        (True, True)
        """
        return {name: diagnose(draws) for name, draws in self.scalars().items()}

    def scalars(self) -> dict[str, np.ndarray]:
        """Return the draws of all scalars by name: k, the log joint and scalar parameters."""
        single = {name: draws for name, draws in self.parameters.items() if draws.ndim == 2}
        return {"n_clusters": self.n_clusters, "log_joint": self.log_joint, **single}

    def to_arviz(self) -> Any:
        """Convert the draws for ArviZ; needs ``pip install 'countless[bayes]'``.

        Returns
        -------
        xarray.DataTree
            ``posterior`` contains labels, numbers of clusters and parameters; ``sample_stats`` the
            log joint density, which ArviZ calls ``lp``.

        Examples
        --------
        >>> from countless._mcmc.posterior import Posterior
        >>> tree = Posterior([[[0, 0, 1], [0, 0, 0]]], [[-3.0, -4.0]]).to_arviz()
        >>> tree["posterior"]["labels"].dims
        ('chain', 'draw', 'row')
        """
        try:
            from arviz_base import from_dict
        except ImportError as error:
            raise ImportError("to_arviz needs ArviZ: pip install 'countless[bayes]'") from error
        draws = {"labels": self.labels, "n_clusters": self.n_clusters, **self.parameters}
        groups = {"posterior": draws, "sample_stats": {"lp": self.log_joint}}
        return from_dict(groups, dims={"labels": ["row"]})

    def _draws(self) -> np.ndarray:
        """Return the labels of all chains as one array, (n_chains * n_draws, n_rows)."""
        return self.labels.reshape(-1, self.labels.shape[2])

    def _check_rows(self, name: str, asked: Any) -> np.ndarray:
        """Validate row indices and return them as an array."""
        n_rows = self.labels.shape[2]
        if asked is None:
            return np.arange(n_rows)
        array = np.atleast_1d(np.asarray(asked))
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"{name} must be row numbers")
        outside = (array < -n_rows) | (array >= n_rows)
        if outside.any():
            raise ValueError(f"{name} names row {array[outside][0]}, and there are {n_rows} rows")
        return array

    def _check_draws(self, name: str, values: Any) -> np.ndarray:
        """Validate values, one entry for each draw, and return them as an array."""
        array = np.asarray(values, dtype=np.float64)
        if array.shape[:2] != self.n_clusters.shape:
            raise ValueError(
                f"{name} must begin with the chains and draws {self.n_clusters.shape} of labels; "
                f"got an array of shape {array.shape}"
            )
        return array


def _check_labels(labels: Any) -> np.ndarray:
    """Validate labels and return them as an array of chains, draws and rows."""
    array = np.ascontiguousarray(labels)
    if array.ndim != 3 or not array.size:
        raise ValueError(
            f"labels must have the shape (n_chains, n_draws, n_rows); got {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers; got {array.dtype}")
    low, high, most = int(array.min()), int(array.max()), max(array.shape[2], HIGHEST)
    if low < 0 or high > most:
        raise ValueError(f"labels must be from 0 to {most}; got {low if low < 0 else high}")
    return array
