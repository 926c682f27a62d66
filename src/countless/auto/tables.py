"""What `AutoClustering` is given: rows of numbers, a table of mixed columns, or a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from countless._numbers import check_column_names
from countless.bayes.mixture import DPMixture
from countless.dissimilarity.cells import NUMERIC, levels_of, numbers_of, read_columns

# Rows that show whether columns depend on each other, and shuffled copies they are compared with.
MOST_SHOWN, N_SHUFFLES = 500, 9
# Deviations above the mean of the shuffled copies that dependence must reach.
DEVIATIONS = 3.0


class MixedTable(NamedTuple):
    """A data frame of mixed columns, and numbers in which its clusters are compared."""

    frame: Any
    numbers: np.ndarray  # (n_rows, n_numbers)

    def take(self, places: np.ndarray | None) -> Any:
        """Return the rows at some places, or all."""
        if places is None:
            return self.frame
        return nw.from_native(self.frame, eager_only=True)[places].to_native()

    def has_dependent_columns(self) -> bool:
        """Tell whether columns depend on each other, so that there may be several clusters.

        The levels of a column are separate by themselves. Clusters are where columns depend on each
        other: the most probable mixture of the table is then more probable than those of copies
        whose columns are shuffled independently, which have the same cells in every column.
        """
        random = np.random.default_rng(0)
        n_rows = len(self.numbers)
        shown = np.sort(random.permutation(n_rows)[:MOST_SHOWN])
        table = nw.from_native(self.take(shown), eager_only=True)
        shuffled = [_shuffled(table, random) for _ in range(N_SHUFFLES)]
        joint = [_log_joint(copy.to_native()) for copy in (table, *shuffled)]
        return bool(joint[0] > np.mean(joint[1:]) + DEVIATIONS * np.std(joint[1:], ddof=1))


def _shuffled(table: nw.DataFrame, random: np.random.Generator) -> nw.DataFrame:
    """Return a table with every column in an order of its own."""
    shuffled = [column[random.permutation(len(table))] for column in table.iter_columns()]
    return table.with_columns(*shuffled)


def _log_joint(table: Any) -> float:
    """Return the log joint density of a table with its most probable clusters."""
    found = DPMixture("columns", inference="map").fit(table)
    return float(found.posterior_.log_joint[0, 0])


def is_graph(X: Any) -> bool:
    """Tell whether something is a graph: networkx's, igraph's, or a symmetric sparse matrix.

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
    """Return a data frame whose columns are not all numbers without gaps; None for others."""
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
            # One column for each level, so that two rows that differ are as far apart as two
            # numbers one standard deviation apart.
            known = values[~np.isnan(values)]
            parts.append((values[:, None] == np.unique(known)) / np.sqrt(2))
    return MixedTable(X, np.hstack(parts).astype(np.float64))


def _standardized(values: np.ndarray) -> np.ndarray:
    """Return numbers of mean 0 and deviation 1; a missing value is 0."""
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(values))
    spread = values[known].std()
    scaled = (values - values[known].mean()) / (spread if spread > 0 else 1.0)
    return np.where(known, scaled, 0.0)
