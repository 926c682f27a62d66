"""The candidates of `AutoClustering` side by side: the same rows, colored by each clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from countless.plot.style import CHOSEN, LINE, color_of, need_pyplot


class CandidatesDisplay:
    """Rows on a plane, once for each candidate, in the colors of its clusters.

    Use `from_estimator` to make one.

    Parameters
    ----------
    points : ndarray of shape (n_rows, 2)
        Two columns, or two principal components.
    labels : dict from str to ndarray of shape (n_rows,)
        The clusters of each candidate.
    chosen : str
        The candidate that was chosen.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from countless import AutoClustering
    >>> from countless.plot import CandidatesDisplay
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> model = AutoClustering(random_state=0).fit(X)
    >>> len(CandidatesDisplay.from_estimator(model, X).axes_)
    5
    """

    def __init__(self, points: np.ndarray, labels: dict[str, np.ndarray], chosen: str):
        self.points = points
        self.labels = labels
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, figure: Any = None) -> CandidatesDisplay:
        """Draw the candidates of a fitted `AutoClustering`.

        Parameters
        ----------
        estimator : AutoClustering
            Fitted to rows of numbers.
        X : array-like of shape (n_samples, n_features)
            The rows of the fit.
        figure : matplotlib Figure, optional
            Where to draw; default: a new figure.

        Returns
        -------
        CandidatesDisplay
        """
        check_is_fitted(estimator, "candidate_labels_")
        rows = np.asarray(X, dtype=np.float64)[estimator.compared_rows_]
        if rows.shape[1] > 2:
            rows = PCA(2, svd_solver="covariance_eigh").fit_transform(rows)
        elif rows.shape[1] == 1:
            rows = np.hstack([rows, np.zeros_like(rows)])
        return cls(rows, estimator.candidate_labels_, estimator.best_method_).plot(figure=figure)

    def plot(self, *, figure: Any = None) -> CandidatesDisplay:
        """Draw the candidates and store the artists."""
        n_wide = min(len(self.labels), 4)
        n_high = -(-len(self.labels) // n_wide)
        if figure is None:
            size = 2.9 * n_wide, 3.1 * n_high
            figure = need_pyplot().figure(figsize=size, layout="constrained")
        self.figure_ = figure
        self.axes_ = list(figure.subplots(n_high, n_wide, squeeze=False).ravel())
        for ax in self.axes_[len(self.labels) :]:
            ax.remove()
        self.axes_ = self.axes_[: len(self.labels)]
        dot = float(np.clip(4000 / len(self.points), 1.5, 14))
        for ax, (method, labels) in zip(self.axes_, self.labels.items(), strict=True):
            colors = [color_of(label) for label in labels]
            ax.scatter(*self.points.T, c=colors, s=dot, linewidths=0)
            k = int(labels.max()) + 1
            is_chosen = method == self.chosen
            ax.set_title(
                f"{method}: {k} cluster{'s' if k > 1 else ''}",
                fontweight="bold" if is_chosen else "normal",
                color=CHOSEN if is_chosen else LINE,
            )
            ax.set_xticks([])
            ax.set_yticks([])
            for spine in ax.spines.values():
                spine.set_color(CHOSEN if is_chosen else "#cccccc")
                spine.set_linewidth(2 if is_chosen else 1)
        return self
