"""Plots of cluster stability: recovery of each cluster, and co-clustering of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from countless.plot.style import CHOSEN, LINE, SHOWN, need_pyplot
from countless.stability import DISSOLVED, STABLE, Stability, bootstrap


class StabilityDisplay:
    """How well resampling recovers each cluster, and how often rows remain together.

    Use `from_stability` to make one.

    Parameters
    ----------
    stability : Stability
        A result of `countless.bootstrap`.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
        The clusters, and the matrix of rows.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from countless import bootstrap
    >>> from countless.plot import StabilityDisplay
    >>> X, _ = make_blobs(60, centers=3, random_state=0)
    >>> found = bootstrap(KMeans(3, n_init=1), X, n_draws=5, random_state=0)
    >>> StabilityDisplay.from_stability(found).axes_.shape
    (2,)
    """

    def __init__(self, stability: Stability):
        self.stability = stability

    @classmethod
    def from_stability(cls, stability: Stability, *, axes: Any = None) -> StabilityDisplay:
        """Draw the stability of clusters.

        Parameters
        ----------
        stability : Stability
            A result of `countless.bootstrap`.
        axes : sequence of two matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        StabilityDisplay
        """
        return cls(stability).plot(axes=axes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, axes: Any = None, **options: Any
    ) -> StabilityDisplay:
        """Resample and cluster the rows, and draw the stability of clusters.

        Parameters
        ----------
        estimator : estimator
            Fitted or not: `countless.bootstrap` fits copies of it.
        X : array-like of shape (n_samples, n_features)
        axes : sequence of two matplotlib Axes, optional
            Where to draw; default: a new figure.
        **options
            As for `countless.bootstrap`.

        Returns
        -------
        StabilityDisplay
        """
        return cls.from_stability(bootstrap(estimator, X, **options), axes=axes)

    def plot(self, *, axes: Any = None) -> StabilityDisplay:
        """Draw both parts and store the artists."""
        plt = need_pyplot()
        if axes is None:
            _, axes = plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained")
        self.axes_ = np.asarray(axes)
        if self.axes_.shape != (2,):
            raise ValueError(f"axes must be two; got an array of shape {self.axes_.shape}")
        self.figure_ = self.axes_[0].figure
        self._draw_clusters(self.axes_[0])
        self._draw_rows(self.axes_[1])
        return self

    def _draw_clusters(self, ax: Any) -> None:
        found = self.stability
        place = np.arange(len(found.stability))
        ax.axvspan(0, DISSOLVED, color="#000000", alpha=0.07, linewidth=0, zorder=0)
        ax.axvline(STABLE, color="#000000", alpha=0.3, linewidth=0.8, linestyle=":", zorder=0)
        for at, values in zip(place, found.jaccard.T, strict=True):
            known = np.sort(values[~np.isnan(values)])
            if len(known):
                low, high = np.quantile(known, [0.05, 0.95])
                ax.plot([low, high], [at, at], color=LINE, linewidth=1.2, alpha=0.5)
            # Resamples are sorted by their values: a quantile plot.
            ax.scatter(known, at + np.linspace(0.32, -0.32, len(known)), s=4, color=LINE, alpha=0.5)
        ax.scatter(found.stability, place, s=46, color=CHOSEN, edgecolors="white", zorder=3)
        ax.set_xlim(0, 1.02)
        ax.set_ylim(len(place) - 0.4, -0.6)
        sizes = np.bincount(found.labels[found.labels >= 0], minlength=len(place))
        ax.set_yticks(place, [f"{label} ({size} rows)" for label, size in enumerate(sizes)])
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel("found again (Jaccard index)")
        ax.set_title(
            f"clusters in {len(found.draws)} draws: {_counts(found.n_clusters)}",
            loc="left",
            fontsize="medium",
        )
        ax.spines[["top", "right", "left"]].set_visible(False)

    def _draw_rows(self, ax: Any) -> None:
        found = self.stability
        order = np.argsort(
            np.where(found.labels < 0, len(found.labels), found.labels), kind="stable"
        )
        shown = order[np.unique(np.linspace(0, len(order) - 1, SHOWN.matrix_rows).astype(int))]
        image = ax.imshow(
            found.together(shown), cmap="Blues", vmin=0, vmax=1, interpolation="nearest"
        )
        ends = np.flatnonzero(np.diff(found.labels[shown])) + 0.5
        for end in ends:
            ax.axhline(end, color="white", linewidth=0.8)
            ax.axvline(end, color="white", linewidth=0.8)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_title("how often rows stay together", loc="left", fontsize="medium")
        bar = self.figure_.colorbar(image, ax=ax, shrink=0.8, ticks=[0, 0.5, 1])
        bar.outline.set_visible(False)


def _counts(n_clusters: np.ndarray) -> str:
    """Format the numbers of clusters over resamples, the most frequent first."""
    values, counts = np.unique(n_clusters, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:3]
    share = [f"{values[i]} ({100 * counts[i] / counts.sum():.0f} %)" for i in order]
    return ", ".join(share) + (", ..." if len(values) > 3 else "")
