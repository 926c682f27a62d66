"""Plots of the penalty path: the number of clusters for each penalty, and the chosen plateau."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countless._path.path import Plateau
from countless._path.penalty import PenaltyPath
from countless.plot.style import CHOSEN, LINE, SHOWN, axes_for
from countless.plot.style import PALE as RIVAL


class PenaltyPathDisplay:
    """Number of clusters against the penalty, both on log scales.

    Penalties of spectra and graphs, which may be negative, are on a linear scale.

    Use `from_path` to make one.

    Parameters
    ----------
    path : PenaltyPath
        A result of `penalty_path`, or a fitted estimator's ``path_``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The steps.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_blobs
    >>> from countless import penalty_path
    >>> from countless.plot import PenaltyPathDisplay
    >>> X, _ = make_blobs(200, centers=3, cluster_std=0.5, random_state=0)
    >>> display = PenaltyPathDisplay.from_path(penalty_path(X, random_state=0))
    >>> display.ax_.get_xlabel()
    'penalty'
    """

    def __init__(self, path: PenaltyPath):
        self.path = path

    @classmethod
    def from_path(cls, path: PenaltyPath, *, ax: Any = None) -> PenaltyPathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : PenaltyPath
            The path.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        PenaltyPathDisplay
        """
        return cls(path).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> PenaltyPathDisplay:
        """Draw the path from which a fitted estimator chose its number of clusters.

        Parameters
        ----------
        estimator : estimator
            With ``path_``.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        PenaltyPathDisplay
        """
        check_is_fitted(estimator, "path_")
        return cls.from_path(estimator.path_, ax=ax)

    def plot(self, *, ax: Any = None) -> PenaltyPathDisplay:
        """Draw the path and store the artists."""
        ax = axes_for(ax, 7.2, 4.0)
        self.ax_, self.figure_ = ax, ax.figure
        best, *others = self.path.plateaus
        penalty, n_clusters = self._steps()
        self._shade(best, CHOSEN, 0.22)
        for rival in _rivals(best, others):
            self._shade(rival, RIVAL, 0.18)
            self._note(rival, RIVAL)
        (self.line_,) = ax.step(
            penalty, n_clusters, where="post", color=LINE, linewidth=1.6, label="clusters", zorder=3
        )
        self._note(best, CHOSEN)
        self._finish(penalty, n_clusters)
        return self

    def _steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the penalties at which k changes and its values, from many clusters to one."""
        path = self.path
        ends = path.breakpoints
        if not len(ends):
            around = path.penalty / SHOWN.beyond, path.penalty * SHOWN.beyond
            return np.array(around), np.array([1, 1])
        most = max(SHOWN.path_clusters, 3 * path.n_clusters)
        counts = np.array([path.n_clusters_at(end) for end in ends])
        left_out = int(np.count_nonzero(counts >= most))
        start = ends[left_out] / 1.1 if self._is_log else ends[left_out] - self._margin
        if left_out:
            start = max(start, ends[left_out - 1])
        ends, counts = ends[left_out:], counts[left_out:]
        start = min(start, self._reach(path.plateaus[0])[0])
        before = path.n_clusters_at(np.nextafter(ends[0], -np.inf))
        return np.array([start, *ends, self._end]), np.array([before, *counts, counts[-1]])

    @property
    def _is_log(self) -> bool:
        return isinstance(self.path, PenaltyPath)

    @property
    def _margin(self) -> float:
        """Return the part of a linear axis beyond the last merge."""
        ends = self.path.breakpoints
        return 0.1 * float(ends[-1] - ends[0]) or 0.1

    @property
    def _end(self) -> float:
        last = float(self.path.breakpoints[-1])
        return SHOWN.beyond * last if self._is_log else last + self._margin

    def _shade(self, plateau: Plateau, color: str, alpha: float) -> None:
        low, high = self._reach(plateau)
        self.ax_.axvspan(low, high, color=color, alpha=alpha, linewidth=0, zorder=0)

    def _note(self, plateau: Plateau, color: str) -> None:
        """Write the number of clusters over the middle of its step."""
        low, high = self._reach(plateau)
        chosen = color == CHOSEN
        k = plateau.n_clusters
        if chosen:
            self.ax_.plot(
                [low, high], [k, k], color=color, linewidth=4, solid_capstyle="butt", zorder=4
            )
        self.ax_.annotate(
            f"{k} cluster{'s' if k > 1 else ''}" if chosen else f"{k}",
            (np.sqrt(low * high) if self._is_log else (low + high) / 2, k),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            color=color if chosen else "#5b6f80",
            fontweight="bold" if chosen else "normal",
            zorder=5,
        )

    def _reach(self, plateau: Plateau) -> tuple[float, float]:
        """Return the ends of a plateau; that of one cluster ends at the edge of the axes."""
        if not len(self.path.breakpoints):
            return self.path.penalty / SHOWN.beyond, self.path.penalty * SHOWN.beyond
        low = plateau.low
        if self._is_log and not low > 0:
            low = plateau.high / SHOWN.beyond
        return low, max(low, min(plateau.high, self._end))

    def _finish(self, penalty: np.ndarray, n_clusters: np.ndarray) -> None:
        from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

        ax = self.ax_
        if self._is_log:
            ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(penalty[0], penalty[-1])
        top = 1.35 * max(n_clusters[0], 3)
        ax.set_ylim(0.8, top)
        ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000) if tick < top]
        ax.yaxis.set_major_locator(FixedLocator(ticks))
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.minorticks_off()
        ax.grid(axis="y", color="#000000", alpha=0.08, linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel("penalty")
        ax.set_ylabel("number of clusters")
        ax.set_title(f"confidence {self.path.confidence:.2f}", loc="right", fontsize="medium")


def _rivals(best: Plateau, others: list[Plateau]) -> list[Plateau]:
    """Return the next best plateaus that are shown."""
    if best.n_clusters == 1:
        return []
    worthy = [other for other in others if other.score > SHOWN.plateau_score * best.score]
    return [other for other in worthy if other.n_clusters > 1][: SHOWN.other_plateaus]
