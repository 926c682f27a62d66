"""Trace plots of chains: the number of clusters and the log joint density, draw by draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countless._mcmc.posterior import Posterior
from countless.plot.style import color_of, need_pyplot

TITLES = {"n_clusters": "number of clusters", "log_joint": "log joint density"}


class TraceDisplay:
    """The draws of one or more scalars, each chain in a color.

    Chains that have converged overlap; one that does not has not reached the same mode.
    Use `from_estimator` or `from_posterior` to make one.

    Parameters
    ----------
    posterior : Posterior
    names : sequence of str
        The scalars: 'n_clusters', 'log_joint' or a scalar parameter.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        From top to bottom.
    figure_ : matplotlib Figure
    lines_ : dict
        The lines of each name, one for each chain.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from countless._mcmc.posterior import Posterior
    >>> from countless.plot import TraceDisplay
    >>> posterior = Posterior([[[0, 0, 1], [0, 0, 0]]], [[-3.0, -4.0]])
    >>> len(TraceDisplay.from_posterior(posterior).lines_["n_clusters"])
    1
    """

    def __init__(self, posterior: Posterior, names: Sequence[str] = ("n_clusters", "log_joint")):
        self.posterior = posterior
        self.names = tuple(names)
        known = posterior.scalars()
        for name in self.names:
            if name not in known:
                raise ValueError(f"names must be of {', '.join(known)}; got {name!r}")

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> TraceDisplay:
        """Draw the trace of a fitted estimator; options as in `from_posterior`."""
        check_is_fitted(estimator, "posterior_")
        return cls.from_posterior(estimator.posterior_, **options)

    @classmethod
    def from_posterior(
        cls,
        posterior: Posterior,
        *,
        names: Sequence[str] = ("n_clusters", "log_joint"),
        ax: Any = None,
    ) -> TraceDisplay:
        """Draw the trace of draws.

        Parameters
        ----------
        posterior : Posterior
        names : sequence of str, default=('n_clusters', 'log_joint')
            The scalars, from top to bottom.
        ax : sequence of matplotlib Axes, optional
            Where to draw each; default: a new figure.

        Returns
        -------
        TraceDisplay
        """
        return cls(posterior, names).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> TraceDisplay:
        """Draw the trace and store the artists."""
        n = len(self.names)
        if ax is None:
            figure = need_pyplot().figure(figsize=(7.2, 0.6 + 1.7 * n), layout="constrained")
            ax = figure.subplots(n, sharex=True, squeeze=False)
        self.axes_ = np.ravel(ax)
        if len(self.axes_) != n:
            raise ValueError(f"ax must have {n} axes, one for each name; got {len(self.axes_)}")
        self.figure_ = self.axes_[0].figure
        diagnostics = self.posterior.diagnostics()
        values = self.posterior.scalars()
        sweep = self.posterior.thin * np.arange(1, self.posterior.labels.shape[1] + 1)
        self.lines_ = {}
        for place, (name, axes) in enumerate(zip(self.names, self.axes_, strict=True)):
            style = "steps-mid" if name == "n_clusters" else "default"
            self.lines_[name] = [
                axes.plot(sweep, chain, color=color_of(c), linewidth=1, alpha=0.8, drawstyle=style)[
                    0
                ]
                for c, chain in enumerate(values[name])
            ]
            axes.set_ylabel(TITLES.get(name, name))
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(x=0)
            if name == "n_clusters":
                axes.yaxis.get_major_locator().set_params(integer=True)
            r_hat, size = diagnostics[name]
            axes.set_title(
                f"R-hat {r_hat:.2f}, effective size {size:.0f}", loc="right", fontsize="small"
            )
            if place == n - 1:
                axes.set_xlabel("sweep after burn-in")
        return self
