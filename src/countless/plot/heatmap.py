"""A table as a heat map, with its rows in the order of a dendrogram next to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from countless.plot.dendrogram import DendrogramDisplay, tree_of
from countless.plot.style import COLORS, need_pyplot


class HeatmapDisplay:
    """A table with its rows sorted by a tree, the tree, and the clusters.

    Use `from_estimator` to make one.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The table.
    tree : DendrogramDisplay
        The tree of its rows, not drawn yet.
    leaf : array-like of shape (n_samples,)
        The leaf of each row.

    Attributes
    ----------
    figure_ : matplotlib Figure
    tree_ax_, cluster_ax_, ax_ : matplotlib Axes
        Tree, clusters and heat map.
    rows_ : ndarray of shape (n_samples,)
        The rows from top to bottom.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from countless import BayesianHierarchicalClustering
    >>> from countless.plot import HeatmapDisplay
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = BayesianHierarchicalClustering().fit(X)
    >>> HeatmapDisplay.from_estimator(model, X).rows_.shape
    (150,)
    """

    def __init__(self, X: Any, tree: DendrogramDisplay, leaf: Any):
        self.X = np.asarray(X, dtype=np.float64)
        self.tree = tree
        self.leaf = np.asarray(leaf)
        if self.X.ndim != 2 or len(self.X) != len(self.leaf):
            raise ValueError(f"X must have {len(self.leaf)} rows and columns; got {self.X.shape}")

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options) -> HeatmapDisplay:
        """Draw the table that an estimator with ``linkage_matrix_`` was fitted to.

        Parameters
        ----------
        estimator : estimator
        X : array-like of shape (n_samples, n_features)
            The rows it was fitted to; columns may be scaled differently.
        **options
            As for `plot`.
        """
        return cls(X, *tree_of(estimator)).plot(**options)

    def plot(
        self,
        *,
        columns: Any = None,
        center: float | None = None,
        cmap: str | None = None,
        figure: Any = None,
    ) -> HeatmapDisplay:
        """Draw the tree and the table and store the artists.

        Parameters
        ----------
        columns : sequence of str, optional
            The names of the columns.
        center : float, optional
            A neutral value: colors diverge from it.
        cmap : str, optional
            A color map of matplotlib.
        figure : matplotlib Figure, optional
            Where to draw; default: a new figure.
        """
        plt = need_pyplot()
        if figure is None:
            figure = plt.figure(figsize=(7.2, 4.6), layout="constrained")
        self.figure_ = figure
        widths = {"width_ratios": [1.0, 0.06, 2.6], "wspace": 0.02}
        self.tree_ax_, self.cluster_ax_, self.ax_ = figure.subplots(1, 3, gridspec_kw=widths)
        self.tree.plot(ax=self.tree_ax_, orientation="left")
        # SciPy counts leaves from the bottom up, and tables are read from the top down.
        self.tree_ax_.invert_yaxis()
        self.tree_ax_.set_yticks([])
        place = np.empty(len(self.tree.leaves_), dtype=np.int64)
        place[self.tree.leaves_] = np.arange(len(place))
        self.rows_ = np.argsort(place[self.leaf], kind="stable")
        self._draw_table(columns, center, cmap)
        self._draw_clusters(self.tree.node_clusters()[self.leaf[self.rows_]])
        return self

    def _draw_clusters(self, cluster: np.ndarray) -> None:
        """Draw the cluster of each row next to the table, and white lines between clusters."""
        from matplotlib.colors import to_rgb

        for edge in np.flatnonzero(np.diff(cluster)):
            self.ax_.axhline(edge + 0.5, color="white", linewidth=1.0)
        colors = np.array([to_rgb(COLORS[c % len(COLORS)]) for c in cluster])
        self.cluster_ax_.imshow(colors[:, None, :], aspect="auto", interpolation="nearest")
        self.cluster_ax_.set_axis_off()

    def _draw_table(self, columns: Any, center: float | None, cmap: str | None) -> None:
        ax, shown = self.ax_, self.X[self.rows_]
        # The color range is robust against outliers.
        low, high = np.nanquantile(shown, [0.01, 0.99])
        if center is not None:
            reach = max(high - center, center - low)
            low, high = center - reach, center + reach
        cmap = cmap or ("viridis" if center is None else "RdBu_r")
        image = ax.imshow(
            shown, aspect="auto", interpolation="nearest", cmap=cmap, vmin=low, vmax=high
        )
        self.figure_.colorbar(image, ax=ax, shrink=0.6, aspect=30)
        ax.set_yticks([])
        if columns is None:
            ax.set_xticks([])
        else:
            ax.set_xticks(range(len(columns)), list(columns), rotation=60, ha="right")
            ax.tick_params(length=0, labelsize="small")
