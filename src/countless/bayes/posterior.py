"""What a sampler found: partitions drawn from the posterior, and what they say together.

References
----------
.. [1] K. P. Murphy, "Machine Learning: A Probabilistic Perspective", section 25.2, 2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countless._labels import check_labels
from countless._memory import state_memory
from countless.bayes.diagnostics import Diagnostic, diagnose
from countless.bayes.draws import collapse, number_alike
from countless.bayes.point_estimate import expected_loss, point_estimate
from countless.kernels.draws import count_together

# Labels up to this, or the number of rows, are numbered by a table.
HIGHEST = 2**16
# Sums of shares are this exact.
ROUNDING = 1e-9


class Posterior:
    """Draws of a partition and of its parameters, from several chains.

    Parameters
    ----------
    labels : array-like of int, shape (n_chains, n_draws, n_rows)
        The cluster of each row in each draw, by any whole numbers from 0.
    log_joint : array-like of float, shape (n_chains, n_draws)
        The log density of data, partition and parameters together, up to a constant.
    parameters : mapping, optional
        Other draws by their names, each of shape ``(n_chains, n_draws, ...)``.
    thin : int, default=1
        Sweeps of the sampler from one draw to the next; kept, not applied.

    Attributes
    ----------
    labels : ndarray of shape (n_chains, n_draws, n_rows)
        Numbered by first appearance within each draw, in the smallest type that holds them.
    n_clusters : ndarray of int, shape (n_chains, n_draws)
        How many clusters each draw has.
    log_joint : ndarray of shape (n_chains, n_draws)
    parameters : dict
    thin : int

    Examples
    --------
    >>> import numpy as np
    >>> from countless.bayes.posterior import Posterior
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

    @property
    def alpha(self) -> np.ndarray:
        """The concentration in each draw, (n_chains, n_draws)."""
        if "alpha" not in self.parameters:
            raise AttributeError("the prior of these draws has no alpha")
        return self.parameters["alpha"]

    def n_clusters_distribution(self) -> np.ndarray:
        """Return how probable each number of clusters is: entry k belongs to k clusters.

        Examples
        --------
        >>> from countless.bayes.posterior import Posterior
        >>> Posterior([[[0, 0, 1], [0, 0, 0]]], [[-3.0, -4.0]]).n_clusters_distribution()
        array([0. , 0.5, 0.5])
        """
        counts = np.bincount(self.n_clusters.ravel())
        return counts / counts.sum()

    def n_clusters_interval(self, prob: float = 0.95) -> tuple[int, int]:
        """Return the shortest range of k that holds the number of clusters with a probability.

        Parameters
        ----------
        prob : float, default=0.95
            Above 0 and at most 1.

        Returns
        -------
        low, high : int
            Both ends belong to it. Of ranges of one length the most probable is taken.

        Examples
        --------
        >>> from countless.bayes.posterior import Posterior
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
        """Return how probable it is that two rows share a cluster.

        Only what is asked for is computed. All pairs of n rows take ``4 n ** 2`` bytes: this is
        logged before, and refused where there is less memory.

        Parameters
        ----------
        rows : array-like of int, optional
            The rows of the answer; default: all.
        columns : array-like of int, optional
            Its columns; default: all rows.

        Returns
        -------
        ndarray of float32, shape (len(rows), len(columns))
            Shares of draws.

        Examples
        --------
        >>> from countless.bayes.posterior import Posterior
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
        # Rows that no draw tells apart have the same answers: each is worked out once.
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
        """Return the partition that is expected to be nearest to the truth.

        It is found by search, and but for rows that are then assigned never farther from the draws
        than one of them that was tried: at 10,000 rows each of 200 draws is. Of more than 200
        draws, 200 are searched with, and then all. It has at most twice the clusters of the largest
        draw and eight more.

        Parameters
        ----------
        loss : {'vi', 'binder'}, default='vi'
            What is expected to be small: the variation of information, or the share of pairs of
            rows on which two partitions disagree (Binder), which likes small clusters more.
        random_state : int, RandomState, Generator or None, default=None
            Where the search starts, and in which order it moves rows.
        assign : bool, default=True
            A row that no cluster has in half of the draws is best left alone, by a little. Unless
            most draws have it by itself as well, it gets the cluster where that costs least; False
            leaves it alone.
        same : ndarray of shape (n_rows,), optional
            Rows of the same number are equal, and get the label that most of them have.

        Returns
        -------
        ndarray of int32, shape (n_rows,)
            Numbered by first appearance.

        Examples
        --------
        >>> from countless.bayes.posterior import Posterior
        >>> posterior = Posterior([[[0, 0, 1], [0, 0, 1], [0, 0, 0]]], [[-3.0, -3.0, -4.0]])
        >>> posterior.point_estimate(random_state=0)
        array([0, 0, 1], dtype=int32)
        """
        return point_estimate(self._draws(), loss, random_state, assign, same)

    def expected_loss(self, labels: ArrayLike, loss: str = "vi") -> float:
        """Return the mean distance of a partition from the draws.

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
        >>> from countless.bayes.posterior import Posterior
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
        """Return how well the chains agree on k, on the log joint and on each parameter.

        Returns
        -------
        dict
            A `Diagnostic` under ``"n_clusters"``, ``"log_joint"`` and the name of each parameter
            that is one number.

        Examples
        --------
        >>> import numpy as np
        >>> from countless.bayes.posterior import Posterior
        >>> random = np.random.default_rng(0)
        >>> labels = random.integers(0, 3, size=(4, 200, 20))
        >>> posterior = Posterior(labels, random.normal(size=(4, 200)))
        >>> found = posterior.diagnostics()["log_joint"]
        >>> found.r_hat < 1.01, found.effective_size > 400
        (True, True)
        """
        return {name: diagnose(draws) for name, draws in self.scalars().items()}

    def scalars(self) -> dict[str, np.ndarray]:
        """Return what is one number a draw by its name: k, the log joint and such parameters."""
        single = {name: draws for name, draws in self.parameters.items() if draws.ndim == 2}
        return {"n_clusters": self.n_clusters, "log_joint": self.log_joint, **single}

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ takes them; needs ``pip install 'countless[bayes]'``.

        Returns
        -------
        xarray.DataTree
            ``posterior`` holds labels, numbers of clusters and parameters; ``sample_stats`` the
            log joint, which ArviZ calls ``lp``.

        Examples
        --------
        >>> from countless.bayes.posterior import Posterior
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
        """Return the labels of all chains, one draw after the other."""
        return self.labels.reshape(-1, self.labels.shape[2])

    def _check_rows(self, name: str, asked: Any) -> np.ndarray:
        """Return row numbers as an array, or say which there is not."""
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
        """Return values as an array with one entry for each draw, or say what is wrong."""
        array = np.asarray(values, dtype=np.float64)
        if array.shape[:2] != self.n_clusters.shape:
            raise ValueError(
                f"{name} must begin with the chains and draws {self.n_clusters.shape} of labels; "
                f"got an array of shape {array.shape}"
            )
        return array


def _check_labels(labels: Any) -> np.ndarray:
    """Return labels as an array of chains, draws and rows, or say what is wrong."""
    array = np.ascontiguousarray(labels)
    if array.ndim != 3 or not array.size:
        raise ValueError(
            f"labels must have the shape (n_chains, n_draws, n_rows); got {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise ValueError(f"labels must be whole numbers; got {array.dtype}")
    low, high, most = int(array.min()), int(array.max()), max(array.shape[2], HIGHEST)
    if low < 0 or high > most:
        raise ValueError(f"labels must be from 0 to {most}; got {low if low < 0 else high}")
    return array
