"""The input of `AutoClustering`: numeric rows, a table of mixed columns, or a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from countless._data.cells import NUMERIC, levels_of, numbers_of, read_columns
from countless._numbers import check_column_names
from countless.dp_mixture import DPMixture

# Permutation test of dependence between columns: rows of the sample, and number of permutations.
MOST_SHOWN, N_SHUFFLES = 500, 9
# Threshold of the test, in standard deviations above the mean of the permuted copies.
DEVIATIONS = 3.0


class MixedTable(NamedTuple):
    """A data frame of mixed columns, and a numeric encoding on which clusterings are compared."""

    frame: Any
    numbers: np.ndarray  # (n_rows, n_numbers)

    def take(self, places: np.ndarray | None) -> Any:
        """Return the rows at some indices, or all."""
        if places is None:
            return self.frame
        return nw.from_native(self.frame, eager_only=True)[places].to_native()

    def has_dependent_columns(self) -> bool:
        """Return whether columns depend on each other, so that there may be several clusters.

        The levels of a single column are always separate. Clusters make columns dependent: then the
        log joint density of the most probable mixture exceeds that of copies whose columns are
        permuted independently, which have the same marginals (a permutation test).
        """
        random = np.random.default_rng(0)
        n_rows = len(self.numbers)
        shown = np.sort(random.permutation(n_rows)[:MOST_SHOWN])
        table = nw.from_native(self.take(shown), eager_only=True)
        shuffled = [_shuffled(table, random) for _ in range(N_SHUFFLES)]
        joint = [_log_joint(copy.to_native()) for copy in (table, *shuffled)]
        return bool(joint[0] > np.mean(joint[1:]) + DEVIATIONS * np.std(joint[1:], ddof=1))


def _shuffled(table: nw.DataFrame, random: np.random.Generator) -> nw.DataFrame:
    """Return a table with every column permuted independently."""
    shuffled = [column[random.permutation(len(table))] for column in table.iter_columns()]
    return table.with_columns(*shuffled)


def _log_joint(table: Any) -> float:
    """Return the log joint density of a table with its most probable clusters."""
    found = DPMixture("columns", inference="map").fit(table)
    return float(found.posterior_.log_joint[0, 0])


def is_graph(X: Any) -> bool:
    """Return whether X is a graph of networkx or igraph, or a symmetric sparse matrix.

    Examples
    --------
    >>> is_graph(sp.eye_array(3, format="csr")), is_graph(np.eye(3))
    (True, False)
    """
    package = type(X).__module__.partition(".")[0]
    if package in ("networkx", "igraph"):
        return True
    if not sp.issparse(X) or X.shape[0] != X.shape[1]:
        return False
    return abs(X - X.T).nnz == 0


def mixed_table(X: Any) -> MixedTable | None:
    """Return a data frame that has non-numeric columns or missing values; None for others."""
    check_column_names(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    columns = read_columns(X)
    if all(column.kind == NUMERIC and not np.isnan(column.cells).any() for column in columns):
        return None
    parts = []
    for column in columns:
        values = numbers_of(column, levels_of(column))
        if column.kind == NUMERIC:
            parts.append(_standardized(values)[:, None])
        else:
            # One-hot encoding, scaled so that two different levels are at distance 1, as two
            # numbers one standard deviation apart.
            known = values[~np.isnan(values)]
            parts.append((values[:, None] == np.unique(known)) / np.sqrt(2))
    return MixedTable(X, np.hstack(parts).astype(np.float64))


def _standardized(values: np.ndarray) -> np.ndarray:
    """Return numbers of mean 0 and standard deviation 1; a missing value is 0."""
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(values))
    spread = values[known].std()
    scaled = (values - values[known].mean()) / (spread if spread > 0 else 1.0)
    return np.where(known, scaled, 0.0)
