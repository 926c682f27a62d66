"""Dendrograms: SciPy's, with clusters, merge odds and classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram
from sklearn.utils.validation import check_is_fitted

from countless._labels import check_labels, number_by_appearance
from countless.plot.style import COLORS, LINE, need_pyplot

ABOVE = "#8a8f94"  # branches that join clusters


class DendrogramDisplay:
    """A dendrogram with its clusters in colors, and the cut.

    Use `from_estimator` or `from_linkage` to make one.

    Parameters
    ----------
    linkage : ndarray of shape (n_leaves - 1, 4)
        A linkage matrix of SciPy.
    labels : array-like of shape (n_leaves,), optional
        The cluster of each leaf.
    log_odds : array-like of shape (n_leaves - 1,), optional
        The log odds of each merge, row by row of the linkage matrix.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    leaves_ : ndarray of shape (n_leaves,)
        The leaves from left to right.
    class_ax_ : matplotlib Axes or None
        The strip of classes below the tree.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from countless import BayesianHierarchicalClustering
    >>> from countless.plot import DendrogramDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianHierarchicalClustering().fit(X)
    >>> display = DendrogramDisplay.from_estimator(model, classes=y)
    >>> len(display.leaves_)
    150
    """

    def __init__(self, linkage: Any, labels: Any = None, log_odds: Any = None):
        self.linkage = np.asarray(linkage, dtype=np.float64)
        n = len(self.linkage) + 1
        if n < 2:
            raise ValueError("a tree of one leaf has no picture")
        self.labels = None if labels is None else _of_leaves("labels", labels, n)
        self.log_odds = None if log_odds is None else np.asarray(log_odds, dtype=np.float64)
        if self.log_odds is not None and len(self.log_odds) != n - 1:
            raise ValueError(f"log_odds must have {n - 1} entries; it has {len(self.log_odds)}")

    @classmethod
    def from_estimator(cls, estimator: Any, *, classes: Any = None, **options) -> DendrogramDisplay:
        """Draw the tree of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            With ``linkage_matrix_`` and ``labels_``; `BayesianHierarchicalClustering` has merge
            odds, too.
        classes : array-like of shape (n_samples,), optional
            A known class of each row, shown in a strip below the tree; where several rows share a
            leaf, the one that most of them have.
        **options
            As for `plot`.
        """
        display, leaf = tree_of(estimator)
        if classes is not None:
            names, numbers = np.unique(check_labels("classes", classes), return_inverse=True)
            if len(numbers) != len(leaf):
                raise ValueError(f"classes has {len(numbers)} entries for {len(leaf)} rows")
            counts = np.zeros((len(display.linkage) + 1, len(names)))
            np.add.at(counts, (leaf, numbers), 1)
            classes = names[counts.argmax(axis=1)]
        return display.plot(classes=classes, **options)

    @classmethod
    def from_linkage(cls, linkage: Any, *, labels: Any = None, **options) -> DendrogramDisplay:
        """Draw a linkage matrix, such as one of `scipy.cluster.hierarchy.linkage`.

        Parameters
        ----------
        linkage : ndarray of shape (n_leaves - 1, 4)
        labels : array-like of shape (n_leaves,), optional
            The cluster of each leaf.
        **options
            As for `plot`.
        """
        return cls(linkage, labels).plot(**options)

    def plot(
        self,
        *,
        classes: Any = None,
        names: Any = None,
        n_odds: int = 8,
        orientation: str = "top",
        ax: Any = None,
    ) -> DendrogramDisplay:
        """Draw the tree and store the artists.

        Parameters
        ----------
        classes : array-like of shape (n_leaves,), optional
            A known class of each leaf, for a strip of colors below the tree.
        names : array-like of shape (n_leaves,), optional
            A name for each leaf.
        n_odds : int, default=8
            How many merges, from the highest down, are annotated with their log odds.
        orientation : {'top', 'left'}, default='top'
            Where the root is.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.
        """
        plt = need_pyplot()
        if ax is None:
            _, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        color = self._node_colors()
        merges: list[int] = []

        def color_of(node: int) -> str:
            merges.append(node - len(self.linkage) - 1)
            return color[node]

        with _deep_recursion(len(self.linkage)):
            drawn = dendrogram(
                self.linkage,
                ax=ax,
                orientation=orientation,
                no_labels=names is None,
                labels=None if names is None else list(names),
                link_color_func=color_of,
            )
        self.leaves_ = np.array(drawn["leaves"])
        self._finish(orientation)
        if self.log_odds is not None and orientation == "top":
            self._write_odds(self.log_odds, merges, drawn, n_odds)
        self.class_ax_ = None if classes is None else self._strip(classes)
        return self

    def _node_colors(self) -> list[str]:
        """Return the color of each node: that of its cluster, or of branches above clusters."""
        n = len(self.linkage) + 1
        if self.labels is None:
            return [LINE] * (2 * n - 1)
        cluster = self.node_clusters()
        return [ABOVE if c < 0 else COLORS[c % len(COLORS)] for c in cluster]

    def node_clusters(self) -> np.ndarray:
        """Return the cluster of each node, -1 if it has rows of several; 0 without labels."""
        n = len(self.linkage) + 1
        labels = np.zeros(n) if self.labels is None else self.labels
        cluster = np.append(number_by_appearance(labels)[1], np.full(n - 1, -1))
        for step, (a, b) in enumerate(self.linkage[:, :2].astype(int)):
            cluster[n + step] = cluster[a] if cluster[a] == cluster[b] else -1
        return cluster

    def _cut_height(self) -> float | None:
        """Return a height that separates merges within clusters from those above, or None."""
        if self.labels is None:
            return None
        above = self.node_clusters()[len(self.linkage) + 1 :] < 0
        if not above.any():
            return None
        if self.log_odds is not None:
            return float(np.log(2.0))
        low = self.linkage[~above, 2].max(initial=0.0)
        high = self.linkage[above, 2].min()
        return float(0.5 * (low + high)) if low < high else None

    def _finish(self, orientation: str) -> None:
        ax = self.ax_
        line = ax.axhline if orientation == "top" else ax.axvline
        height = ax.yaxis if orientation == "top" else ax.xaxis
        cut = self._cut_height()
        if cut is not None:
            line(cut, color="black", linewidth=0.8, linestyle=(0, (4, 3)), alpha=0.6)
        if self.log_odds is not None:
            scale = ax.set_yscale if orientation == "top" else ax.set_xscale
            scale("symlog", linthresh=1.0)
        height.set_label_text("height" if self.log_odds is None else "- log merge probability")
        highest = self.linkage[-1, 2]
        above = 1.06 * highest if self.log_odds is None else 2.0 * highest + 1.0
        if orientation == "top":
            ax.set_ylim(0.0, above or 1.0)
        else:
            ax.set_xlim(above or 1.0, 0.0)
        ax.spines[["top", "right", "bottom" if orientation == "top" else "left"]].set_visible(False)

    def _write_odds(self, log_odds, merges: list[int], drawn: dict, n_odds: int) -> None:
        """Annotate the highest merges with their log odds, next to the branch that leads up."""
        place = {merge: at for at, merge in enumerate(merges)}
        for merge in range(max(0, len(log_odds) - n_odds), len(log_odds)):
            x, y = drawn["icoord"][place[merge]], drawn["dcoord"][place[merge]]
            odds = log_odds[merge]
            self.ax_.annotate(
                f"{odds:.0f}" if abs(odds) >= 10 else f"{odds:.1f}",
                (0.5 * (x[1] + x[2]), y[1]),
                xytext=(3, 1),
                textcoords="offset points",
                va="bottom",
                fontsize="x-small",
                color=LINE,
            )

    def _strip(self, classes: Any) -> Any:
        """Draw the class of each leaf below the tree, with a legend."""
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        kinds, numbers = np.unique(
            _of_leaves("classes", classes, len(self.leaves_)), return_inverse=True
        )
        colors = [COLORS[-1 - number % len(COLORS)] for number in range(len(kinds))]
        strip = self.ax_.inset_axes((0.0, -0.08, 1.0, 0.06))
        strip.imshow(
            numbers[self.leaves_][None, :],
            cmap=ListedColormap(colors),
            vmin=-0.5,
            vmax=len(kinds) - 0.5,
            aspect="auto",
            interpolation="nearest",
        )
        strip.set_axis_off()
        handles = [
            Patch(color=color, label=str(kind)) for kind, color in zip(kinds, colors, strict=True)
        ]
        strip.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.1),
            ncols=min(len(handles), 6),
            frameon=False,
            fontsize="small",
        )
        return strip


def tree_of(estimator: Any) -> tuple[DendrogramDisplay, np.ndarray]:
    """Return the tree of a fitted estimator, not drawn yet, and the leaf of each row."""
    check_is_fitted(estimator, "linkage_matrix_")
    leaf = getattr(estimator, "leaf_labels_", np.arange(len(estimator.labels_)))
    first = np.unique(leaf, return_index=True)[1]
    log_odds = getattr(estimator, "log_merge_odds_", None)
    return DendrogramDisplay(estimator.linkage_matrix_, estimator.labels_[first], log_odds), leaf


def _of_leaves(name: str, values: Any, n: int) -> np.ndarray:
    array = check_labels(name, values)
    if len(array) != n:
        raise ValueError(f"{name} has {len(array)} entries for {n} leaves")
    return array


@contextmanager
def _deep_recursion(n_merges: int) -> Iterator[None]:
    """Raise the recursion limit for SciPy, which traverses trees recursively."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, n_merges + 1000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
