"""Rows in the plane of two columns, and the components of a mixture as ellipses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countless.plot.style import SHOWN, axes_for, color_of


class Component(NamedTuple):
    """The mean and covariance of a component in the plane."""

    mean: np.ndarray  # (2,)
    covariance: np.ndarray  # (2, 2)
    n_rows: int


class ComponentsDisplay:
    """Rows in the colors of their clusters, and an ellipse for each normal component.

    The ellipse contains a share of the component's mass, by its expected mean and covariance.
    Use `from_estimator` to make one.

    Parameters
    ----------
    points : ndarray of shape (n_rows, 2)
    labels : ndarray of shape (n_rows,)
    components : list of Component
    names : tuple of str
        Names of the two columns.
    prob : float, default=0.95
        The share of the component's mass in an ellipse.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    ellipses_ : list of matplotlib Ellipse

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_blobs
    >>> from countless import DPMixture
    >>> from countless.plot import ComponentsDisplay
    >>> X, _ = make_blobs(150, centers=3, random_state=1)
    >>> mixture = DPMixture(n_sweeps=60, n_chains=1, random_state=0).fit(X)
    >>> len(ComponentsDisplay.from_estimator(mixture, X).ellipses_) == mixture.n_clusters_
    True
    """

    def __init__(
        self,
        points: np.ndarray,
        labels: np.ndarray,
        components: list[Component],
        names: tuple[str, str],
        prob: float = 0.95,
    ):
        self.points = points
        self.labels = labels
        self.components = components
        self.names = names
        self.prob = prob

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        columns: tuple[int, int] = (0, 1),
        prob: float = 0.95,
        ax: Any = None,
    ) -> ComponentsDisplay:
        """Draw the components of a fitted mixture.

        Parameters
        ----------
        estimator : DPMixture
            With a model of normal clusters: 'gaussian', 'diagonal' or 'fixed'.
        X : array-like of shape (n_samples, n_features)
            The rows it was fitted to.
        columns : tuple of two int, default=(0, 1)
            The two columns.
        prob : float, default=0.95
            The share of the component's mass in an ellipse.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        ComponentsDisplay
        """
        check_is_fitted(estimator, "labels_")
        if not 0 < prob < 1:
            raise ValueError(f"prob must be above 0 and below 1; got {prob}")
        rows = estimator.model_.rows(X)
        if len(rows) != len(estimator.labels_):
            raise ValueError(f"X has {len(rows)} rows; {len(estimator.labels_)} were fitted")
        plane = list(columns)
        if len(plane) != 2 or not all(0 <= column < rows.shape[1] for column in plane):
            raise ValueError(f"columns must be two of 0 to {rows.shape[1] - 1}; got {columns}")
        components = _components(estimator, rows, plane)
        points = np.asarray(estimator.model_.table(rows), dtype=np.float64)[:, plane]
        known = getattr(estimator, "feature_names_in_", None)
        first, second = (f"column {j}" if known is None else str(known[j]) for j in plane)
        return cls(points, estimator.labels_, components, (first, second), prob).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ComponentsDisplay:
        """Draw rows and ellipses and store the artists."""
        ax = axes_for(ax, 5.6, 4.4)
        self.ax_, self.figure_ = ax, ax.figure
        shown = np.arange(len(self.points))
        if len(shown) > SHOWN.points:
            shown = np.random.default_rng(0).choice(shown, SHOWN.points, replace=False)
            some = f"{SHOWN.points:,} of {len(self.points):,} rows"
            ax.set_title(some, loc="left", fontsize="medium")
        color = [color_of(cluster) for cluster in self.labels[shown]]
        ax.scatter(*self.points[shown].T, s=12, c=color, alpha=0.6, linewidths=0)
        self.ellipses_ = [
            ax.add_patch(_ellipse(component, self.prob, color_of(cluster)))
            for cluster, component in enumerate(self.components)
        ]
        ax.autoscale_view()
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.names[1])
        ax.spines[["top", "right"]].set_visible(False)
        return self


def _components(estimator: Any, rows: np.ndarray, plane: list[int]) -> list[Component]:
    """Return the expected mean and covariance of each cluster in a plane."""
    statistics = estimator.model_.statistics(rows, estimator.labels_, estimator.n_clusters_)
    random = np.random.default_rng(0)
    many = np.repeat(statistics, SHOWN.averaged_draws, axis=0)
    drawn = estimator.model_.draw_parameters(many, random)
    if "mean" not in drawn or not {"variance", "covariance"} & drawn.keys():
        raise ValueError("ellipses need a model of normal clusters: gaussian, diagonal or fixed")
    shape = (len(statistics), SHOWN.averaged_draws, -1)
    mean = drawn["mean"].reshape(shape).mean(axis=1)[:, plane]
    if "covariance" in drawn:
        d = drawn["mean"].shape[1]
        covariance = drawn["covariance"].reshape(*shape[:2], d, d).mean(axis=1)
        covariance = covariance[:, plane][:, :, plane]
    else:
        variance = drawn["variance"].reshape(shape).mean(axis=1)
        variance = np.broadcast_to(variance, (len(variance), rows.shape[1]))[:, plane]
        covariance = variance[:, :, None] * np.eye(2)
    sizes = np.bincount(estimator.labels_).tolist()
    return [Component(*found) for found in zip(mean, covariance, sizes, strict=True)]


def _ellipse(component: Component, prob: float, color: str) -> Any:
    """Return the ellipse that contains a share of a normal distribution in the plane."""
    from matplotlib.patches import Ellipse

    variance, axes = np.linalg.eigh(component.covariance)
    # Squared Mahalanobis distances have an exponential distribution in two dimensions.
    width, height = 2 * np.sqrt(-2 * np.log1p(-prob) * variance)
    angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
    return Ellipse(
        tuple(component.mean), width, height, angle=angle, fill=False, color=color, linewidth=1.8
    )
