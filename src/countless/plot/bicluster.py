"""A table with rows and columns sorted by their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countless._mcmc.bicluster.cells import Cells, read_cells
from countless.plot.style import CHOSEN, SHOWN, axes_for


class BiclusterDisplay:
    """The table with rows and columns in the order of their clusters, and lines between blocks.

    The largest clusters come first, and missing values are grey. Use `from_estimator` to make one.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        The table in numbers; NaN is a missing value.
    row_labels, column_labels : array-like of int
        The cluster of each row and of each column.
    row_names, column_names : sequence, optional
        Their names; shown if there are at most 100.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage
    rows_, columns_ : ndarray of int
        The rows from top to bottom, and the columns from left to right.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from countless.plot import BiclusterDisplay
    >>> X = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> display = BiclusterDisplay(X, [0, 1, 0], [0, 1, 0]).plot()
    >>> display.image_.get_array().tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        X: Any,
        row_labels: Any,
        column_labels: Any,
        row_names: Sequence | None = None,
        column_names: Sequence | None = None,
    ):
        self.X = np.asarray(X, dtype=np.float64)
        self.row_labels, self.column_labels = np.asarray(row_labels), np.asarray(column_labels)
        self.row_names, self.column_names = row_names, column_names
        shape = len(self.row_labels), len(self.column_labels)
        if self.X.shape != shape:
            raise ValueError(f"X must have the shape of the labels, {shape}; got {self.X.shape}")
        for what, names, n in zip(("row", "column"), (row_names, column_names), shape, strict=True):
            if names is not None and len(names) != n:
                raise ValueError(f"{what}_names must have {n} names; got {len(names)}")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row_names: Sequence | None = None,
        column_names: Sequence | None = None,
        ax: Any = None,
        cmap: str | None = None,
    ) -> BiclusterDisplay:
        """Draw the table that a `DPBiclustering` was fitted to.

        Parameters
        ----------
        estimator : DPBiclustering
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        row_names, column_names : sequence, optional
            Names of rows and columns; by default the column names of a data frame.
        ax, cmap
            As for `plot`.

        Returns
        -------
        BiclusterDisplay
        """
        check_is_fitted(estimator, "row_labels_")
        if column_names is None:
            column_names = getattr(estimator, "feature_names_in_", None)
        table = _in_numbers(read_cells(estimator, X, reset=False))
        labels = estimator.row_labels_, estimator.column_labels_
        return cls(table, *labels, row_names, column_names).plot(ax=ax, cmap=cmap)

    def plot(self, *, ax: Any = None, cmap: str | None = None) -> BiclusterDisplay:
        """Draw the table and store the artists.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.
        cmap : str, optional
            A color map of matplotlib.

        Returns
        -------
        BiclusterDisplay
        """
        ax = axes_for(ax, *figure_size(self.X.shape))
        self.ax_, self.figure_ = ax, ax.figure
        self.rows_, row_edges = _in_clusters(self.row_labels)
        self.columns_, column_edges = _in_clusters(self.column_labels)
        shown = self.X[np.ix_(self.rows_, self.columns_)]
        ax.set_facecolor("0.85")
        low, high = np.nanquantile(shown, [0.01, 0.99])  # robust against outliers
        if low == high:
            low, high = np.nanmin(shown), np.nanmax(shown)
        self.image_ = ax.imshow(
            shown,
            aspect="auto",
            interpolation="nearest",
            cmap=cmap or ("Blues" if np.isin(shown[~np.isnan(shown)], (0, 1)).all() else "viridis"),
            vmin=low,
            vmax=high,
        )
        for edge in row_edges:
            ax.axhline(edge, color=CHOSEN, linewidth=0.8)
        for edge in column_edges:
            ax.axvline(edge, color=CHOSEN, linewidth=0.8)
        ax.tick_params(length=0, labelsize=6)
        ax.spines[:].set_visible(False)
        ax.set_yticks(*_ticks(self.row_names, self.rows_))
        ax.set_xticks(*_ticks(self.column_names, self.columns_), rotation=90)
        return self


def figure_size(shape: tuple[int, int]) -> tuple[float, float]:
    """Return the width and height of a figure, in inches, with legible names."""
    n_rows, n_columns = shape
    width, height = 2.2 + SHOWN.cell_inches * n_columns, 1.8 + SHOWN.cell_inches * n_rows
    return min(width, SHOWN.table_inches), min(height, SHOWN.table_inches)


def _in_clusters(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return items sorted by cluster, the largest first, and where clusters end."""
    sizes = np.bincount(labels)
    by_size = np.argsort(-sizes, kind="stable")
    place = np.empty_like(by_size)
    place[by_size] = np.arange(len(sizes))
    return np.argsort(place[labels], kind="stable"), np.cumsum(sizes[by_size])[:-1] - 0.5


def _ticks(names: Sequence | None, order: np.ndarray) -> tuple[Sequence[int], list[str]]:
    if names is None or len(names) > SHOWN.names:
        return [], []
    return range(len(order)), [str(names[i]) for i in order]


def _in_numbers(cells: Cells) -> np.ndarray:
    """Return the table of cells; text as indices into its sorted levels, missing values as NaN."""
    values = cells.values[:, 0]
    if values.dtype == object:
        values = np.unique(values.astype(str), return_inverse=True)[1]
    table = np.full(cells.shape, np.nan)
    table[cells.row, cells.column] = values
    return table
