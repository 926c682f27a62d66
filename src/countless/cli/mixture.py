"""Additions to ``fit`` for posterior samplers: options, uncertainty, and a figure."""

from typing import TYPE_CHECKING, Any

import click

from ..models.registry import MODELS, model_class
from .options import Command, with_options

if TYPE_CHECKING:
    from .._mcmc.posterior import Posterior

PROB = 0.95  # probability of the credible interval of the number of clusters

# The same as in countless.dp_mixture.
INFERENCES = ("mcmc", "map", "variational")

_OPTIONS = (
    click.option(
        "--model",
        type=click.Choice(tuple(MODELS)),
        metavar="NAME",
        help="For dp-mixture, hdp-mixture, bhc and bicluster: the component model of a cluster: "
        f"{', '.join(MODELS)} (each column by its type).",
    ),
    click.option(
        "--inference",
        type=click.Choice(INFERENCES),
        metavar="NAME",
        help="For dp-mixture: mcmc draws clusterings from the posterior (the default); map "
        "searches the most probable one, fast, and does not say how sure it is; variational "
        "approximates the posterior as fast.",
    ),
    click.option(
        "--sweeps",
        type=click.IntRange(min=1),
        metavar="N",
        help="For mixtures and tables: how often each chain draws all clusters; by default "
        "dp-mixture and hdp-mixture go on until their chains agree. The first half is burn-in; "
        "Ctrl-C after that keeps what was drawn.",
    ),
    click.option(
        "--chains",
        type=click.IntRange(min=1),
        metavar="N",
        help="For mixtures and tables: chains, which should agree.",
    ),
)


def mixture_options(command: Command) -> Command:
    """Add the options of posterior samplers."""
    return with_options(_OPTIONS, command)


def takes_raw_values(estimator: Any) -> bool:
    """Return whether an estimator's model takes unscaled values.

    Examples
    --------
    >>> from countless import DPMixture
    >>> takes_raw_values(DPMixture("poisson")), takes_raw_values(DPMixture())
    (True, False)
    """
    name = getattr(estimator, "model", None)
    return isinstance(name, str) and name in MODELS and not model_class(name).scalable


def posterior_of(estimator: Any) -> "Posterior | None":
    """Return the posterior draws of a fitted estimator of one partition; None if it has no draws.

    One partition, found without chains, says nothing of probabilities.

    Examples
    --------
    >>> from countless import DPMeans
    >>> posterior_of(DPMeans()) is None
    True
    """
    from .._mcmc.posterior import Posterior

    found = getattr(estimator, "posterior_", None)
    drawn = isinstance(found, Posterior) and found.n_clusters.size > 1
    return found if drawn else None


def posterior_record(posterior: "Posterior") -> dict[str, Any]:
    """Return the posterior of the number of clusters, and convergence diagnostics."""
    share = posterior.n_clusters_distribution()
    n_chains, n_draws, _ = posterior.labels.shape
    return {
        "n_chains": n_chains,
        "n_draws": n_draws,
        "n_clusters_interval": list(posterior.n_clusters_interval(PROB)),
        "probability": PROB,
        "n_clusters": {k: float(share[k]) for k in range(len(share)) if share[k] > 0},
        "diagnostics": posterior.diagnostics(),
    }


def posterior_picture(estimator: Any) -> bytes:
    """Draw traces, the posterior of k, and the posterior similarity matrix."""
    from ..plot.cluster_count import ClusterCountDisplay
    from ..plot.similarity import SimilarityDisplay
    from ..plot.trace import TraceDisplay
    from .picture import new_figure, png

    figure = new_figure(10, 6)
    (k, count), (log_joint, similarity) = figure.subplots(2, 2)
    TraceDisplay.from_estimator(estimator, ax=[k, log_joint])
    ClusterCountDisplay.from_estimator(estimator, ax=count)
    SimilarityDisplay.from_estimator(estimator, ax=similarity)
    return png(figure)
