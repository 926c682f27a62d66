"""The posterior of the number of clusters, and its credible interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countless._mcmc.posterior import Posterior
from countless.plot.style import CHOSEN, PALE, SHOWN, axes_for


class ClusterCountDisplay:
    """The posterior of the number of clusters; the credible interval in another color.

    Use `from_estimator` or `from_posterior` to make one.

    Parameters
    ----------
    posterior : Posterior
    prob : float, default=0.95
        Probability of the credible interval.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from countless._mcmc.posterior import Posterior
    >>> from countless.plot import ClusterCountDisplay
    >>> posterior = Posterior([[[0, 0, 1], [0, 0, 0]]], [[-3.0, -4.0]])
    >>> ClusterCountDisplay.from_posterior(posterior).ax_.get_xlabel()
    'number of clusters'
    """

    def __init__(self, posterior: Posterior, prob: float = 0.95):
        self.posterior = posterior
        self.prob = prob

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> ClusterCountDisplay:
        """Draw the posterior of k of a fitted estimator; options as in `from_posterior`."""
        check_is_fitted(estimator, "posterior_")
        return cls.from_posterior(estimator.posterior_, **options)

    @classmethod
    def from_posterior(
        cls, posterior: Posterior, *, prob: float = 0.95, ax: Any = None
    ) -> ClusterCountDisplay:
        """Draw the posterior of k.

        Parameters
        ----------
        posterior : Posterior
        prob : float, default=0.95
            Probability of the credible interval.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        ClusterCountDisplay
        """
        return cls(posterior, prob).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ClusterCountDisplay:
        """Draw the bars and store the artists."""
        low, high = self.posterior.n_clusters_interval(self.prob)
        share = self.posterior.n_clusters_distribution()
        k = np.arange(int(np.flatnonzero(share)[0]), len(share))
        ax = axes_for(ax, 5.4, 3.2)
        self.ax_, self.figure_ = ax, ax.figure
        colors = [CHOSEN if low <= count <= high else PALE for count in k]
        self.bars_ = ax.bar(k, share[k], color=colors, width=0.8)
        if len(k) <= SHOWN.numbered_bars:
            ax.bar_label(self.bars_, [f"{s:.2f}" for s in share[k]], fontsize="small", padding=2)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(k[0] - 1, k[-1] + 1)
        ax.set_ylim(0, 1.12 * share.max())
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel("number of clusters")
        ax.set_ylabel("posterior probability")
        span = f"{low}" if low == high else f"{low} to {high}"
        # An interval of integers often has more than the requested probability.
        ax.set_title(
            f"{span} with probability {self.prob:g} or more", loc="right", fontsize="small"
        )
        return self
