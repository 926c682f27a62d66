"""The posterior similarity matrix of rows (co-clustering probabilities), ordered by cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from countless._labels import check_labels, number_by_appearance
from countless._mcmc.posterior import Posterior
from countless.plot.style import CHOSEN, axes_for
from countless.priors.hyper import as_generator


class SimilarityDisplay:
    """The probability that two rows share a cluster, for every pair of some rows.

    Rows of a cluster are adjacent, those with the highest similarity to it first, and similar
    clusters are neighbors. A certain cluster is a dark square on white.
    Use `from_estimator` or `from_posterior` to make one.

    Parameters
    ----------
    similarity : ndarray of shape (n_shown, n_shown)
    labels : ndarray of shape (n_shown,)
        The cluster of each row that is shown.
    order : ndarray of shape (n_shown,)
        The rows that are shown, from top to bottom.
    n_rows : int
        The total number of rows.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from countless._mcmc.posterior import Posterior
    >>> from countless.plot import SimilarityDisplay
    >>> posterior = Posterior([[[0, 1, 0], [0, 0, 0]]], [[-3.0, -4.0]])
    >>> SimilarityDisplay.from_posterior(posterior, labels=[0, 1, 0]).order
    array([0, 2, 1])
    """

    def __init__(self, similarity: np.ndarray, labels: np.ndarray, order: np.ndarray, n_rows: int):
        self.similarity = similarity
        self.labels = labels
        self.order = order
        self.n_rows = n_rows

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> SimilarityDisplay:
        """Draw the similarity of the rows of a fitted estimator; options as in `from_posterior`."""
        check_is_fitted(estimator, "posterior_")
        return cls.from_posterior(estimator.posterior_, labels=estimator.labels_, **options)

    @classmethod
    def from_posterior(
        cls,
        posterior: Posterior,
        *,
        labels: Any = None,
        max_rows: int = 1000,
        random_state: Any = 0,
        ax: Any = None,
    ) -> SimilarityDisplay:
        """Draw the similarity of rows.

        Parameters
        ----------
        posterior : Posterior
        labels : array-like of shape (n_rows,), optional
            The clusters to sort by; default: the point estimate.
        max_rows : int, default=1000
            With more rows a random sample is shown; the title says so.
        random_state : int, RandomState, Generator or None, default=0
            For the sample, and for the point estimate.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        SimilarityDisplay
        """
        n_rows = posterior.labels.shape[2]
        random = as_generator(random_state)
        if labels is None:
            labels = posterior.point_estimate(random_state=random)
        labels = check_labels("labels", labels)
        if len(labels) != n_rows:
            raise ValueError(f"labels has {len(labels)} labels, and the draws have {n_rows} rows")
        if max_rows < 1:
            raise ValueError(f"max_rows must be 1 or more; got {max_rows}")
        shown = np.arange(n_rows)
        if n_rows > max_rows:
            shown = np.sort(random.choice(n_rows, max_rows, replace=False))
        clusters = number_by_appearance(labels)[1][shown]
        similarity = posterior.similarity(shown, shown)
        order = cluster_order(similarity, clusters)
        sorted_by = similarity[np.ix_(order, order)]
        return cls(sorted_by, clusters[order], shown[order], n_rows).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> SimilarityDisplay:
        """Draw the heat map and store the artists."""
        ax = axes_for(ax, 4.8, 4.2)
        self.ax_, self.figure_ = ax, ax.figure
        # Large images are downsampled by averaging.
        self.image_ = ax.imshow(self.similarity, cmap="Blues", vmin=0, vmax=1)
        for edge in np.flatnonzero(np.diff(self.labels)) + 0.5:
            ax.axhline(edge, color=CHOSEN, linewidth=0.6)
            ax.axvline(edge, color=CHOSEN, linewidth=0.6)
        bar = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)
        bar.set_label("probability of sharing a cluster", fontsize="small")
        bar.outline.set_visible(False)
        ax.set_xticks([])
        ax.set_yticks([])
        n_shown = len(self.labels)
        some = f"{n_shown:,} of {self.n_rows:,} rows" if n_shown < self.n_rows else "all rows"
        ax.set_title(f"{some}, by cluster", loc="left", fontsize="medium")
        return self


def cluster_order(similarity: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return rows sorted by cluster, similar clusters adjacent, the most certain rows first.

    Examples
    --------
    >>> together = np.array([[1, 0.2, 0.8], [0.2, 1, 0.1], [0.8, 0.1, 1]])
    >>> cluster_order(together, np.array([0, 1, 0])).tolist()
    [0, 2, 1]
    """
    _, clusters = np.unique(clusters, return_inverse=True)
    member = np.eye(clusters.max() + 1)[clusters]
    member /= member.sum(axis=0)
    to_cluster = similarity @ member  # (n_rows, n_clusters), mean similarity
    between = member.T @ to_cluster
    place = np.zeros(len(between), dtype=np.int64)
    if len(between) > 1:
        apart = squareform(1 - (between + between.T) / 2, checks=False)
        place[leaves_list(linkage(apart, "average", optimal_ordering=True))] = np.arange(len(place))
    own = to_cluster[np.arange(len(clusters)), clusters]
    return np.lexsort((-own, place[clusters]))
