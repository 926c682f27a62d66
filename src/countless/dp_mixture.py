"""The Dirichlet process mixture: the posterior of the number of clusters and of the partition.

Rows of a cluster follow a component model with the cluster's parameters; the partition follows a
prior (Murphy, Machine Learning: a Probabilistic Perspective, section 25.2). Markov chains sample
the posterior of the partition given the rows, a deterministic search finds its mode, or a product
of densities approximates it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from countless._compat import OnPass, report_passes, with_callbacks
from countless._labels import number_by_appearance
from countless._mcmc.chains import Schedule, run_chains
from countless._mcmc.draws import equal_rows
from countless._mcmc.gibbs import partition_of
from countless._mcmc.map_search import MapResult, most_probable_partition
from countless._mcmc.particles import TUNING, Particle, Stream, start_stream, update_stream
from countless._mcmc.partition_chain import (
    SWEEPS,
    Draw,
    PartitionChain,
    log_joint,
    parameters_of,
)
from countless._mcmc.posterior import Posterior
from countless._mcmc.predictive import Mixture, draw_rows, log_densities, mixture_of, probabilities
from countless._mcmc.sampled import (
    SampledMixture,
    as_prior,
    averaged,
    chains_agree,
    check_table,
    first_labels,
    posterior_of,
)
from countless._mcmc.variational import VariationalResult, variational_mixture
from countless.models import BoundModel
from countless.models.registry import as_model
from countless.priors import PartitionPrior
from countless.priors.hyper import as_generator
from countless.priors.restaurant import Restaurant

INFERENCES = ("mcmc", "map", "variational")


class DPMixture(SampledMixture):
    """Sample the posterior of a mixture model with an unbounded number of components.

    Parameters
    ----------
    model : str or Model, default='gaussian'
        Component model of a cluster: 'gaussian', 'diagonal', 'fixed', 'bernoulli', 'categorical',
        'poisson', 'multinomial' or 'columns', or one of `countless.models`.
    prior : PartitionPrior, default=None
        Prior of the partition, one of `countless.priors`. None is a Dirichlet process whose
        concentration has the prior ``Gamma(1, 1)`` and is sampled, too.
    inference : {'mcmc', 'map', 'variational'}, default='mcmc'
        With 'mcmc' Markov chains sample partitions from the posterior. 'map' searches the most
        probable partition by reassignments of rows, splits and merges, with hyperparameters at
        their optimum: one partition without a measure of its uncertainty, in a small part of the
        time. 'variational' approximates the posterior by independent components and rows, which
        share components, also with splits and merges and hyperparameters at their optimum; it needs
        a prior with stick-breaking weights: `DirichletProcess`, `PitmanYor` or `FiniteDirichlet`.
        The parameters from ``sampler`` to ``loss`` are those of chains; only ``sample_hyper``,
        ``init`` and ``n_sweeps`` also apply to the other two, which draw no random numbers.
    sampler : {'collapsed', 'uncollapsed'}, default='collapsed'
        A collapsed sweep draws the cluster of each row with the parameters of clusters integrated
        out. An uncollapsed one draws these first (Neal's algorithm 2), and needs more sweeps.
    split_merge : bool, default=True
        Whether split-merge proposals (Metropolis-Hastings) are made after each sweep. Without them
        a chain may never leave its initial mode.
    sample_hyper : bool, default=True
        Whether hyperparameters that the model has set from the data are sampled, too; or
        optimised, by 'map' and 'variational'.
    init : {'one', 'dp-means'} or array-like of shape (n_samples,), default='one'
        Initial partition of the chains: all rows in one cluster, the clusters of `DPMeans`, or a
        label for each row. The search of ``inference='map'`` starts from an agglomeration of small
        pieces, or from given labels; 'variational' from one component, or from given labels.
    n_chains : int, default=4
    n_sweeps : int or 'auto', default='auto'
        Number of sweeps of each chain, burn-in included. With 'auto' chains run until they agree,
        as defined by ``converged_`` (tested after 60 sweeps, 75, 93, ...), or for 1,000 sweeps; a
        single chain makes 200. With 'map' and 'variational': the largest number of rounds of the
        search, 50 with 'auto'.
    burn_in : int, default=None
        Number of first sweeps that are discarded; by default half of those made. Up to 20 of them
        are warm-up sweeps, with moves that do not leave the posterior invariant.
    thin : int, default=1
        Every ``thin``-th sweep after burn-in is kept.
    loss : {'vi', 'binder'}, default='vi'
        The loss whose posterior expectation ``labels_`` minimises: variation of information, or
        Binder's loss.
    random_state : int, RandomState instance or None, default=None
        For the chains; 'map' and 'variational' are deterministic.
    n_jobs : int, default=None
        Number of threads for chains, as in scikit-learn; the draws do not depend on it.

    Attributes
    ----------
    posterior_ : Posterior
        The draws: ``labels`` (n_chains, n_draws, n_samples), ``n_clusters``, ``log_joint``,
        ``alpha``, ``similarity()``, ``diagnostics()`` and more.
    labels_ : ndarray of shape (n_samples,)
        The partition of least posterior expected loss, numbered by first appearance. A row is a
        singleton cluster only if it is one in most draws. With ``inference='map'`` the most
        probable partition that was found; with 'variational' the most probable component of each
        row. It is then the one draw of ``posterior_``.
    n_clusters_ : int
        Number of clusters of ``labels_``; ``posterior_.n_clusters_interval()`` is a credible
        interval.
    n_iter_ : int
        Sweeps of each chain; rounds of the search.
    objective_history_ : list of float
        With ``inference='map'``: the log joint density after each round, with the densities of the
        logarithms (or log odds) of the prior's parameters; with 'variational' the lower bound plus
        the log densities of all optimised parameters. It never decreases.
    lower_bound_ : float
        With ``inference='variational'``: a lower bound of the log evidence, the log density of the
        rows summed over all partitions, given the hyperparameters of ``model_`` and ``prior_``.
    converged_ : bool
        Whether chains agree: no R-hat of the number of clusters, the log joint density or a
        parameter of the prior is above 1.1. Always True for one chain. For a search: whether no
        move was left that raises the log joint density.
    model_ : BoundModel
        The model with the hyperparameters of the draw of highest joint density.
    prior_ : PartitionPrior
        The prior with the parameters of that draw.
    mixture_statistics_, mixture_weights_, mixture_hyper_, mixture_starts_ : ndarray
        Mixtures used for prediction, of ``labels_`` and then of draws, concatenated.
    model_table_, model_levels_, model_hyper_ : ndarray, list and ndarray
        The model in the form in which it is saved.
    n_features_in_ : int

    See Also
    --------
    DPMeans : The small-variance limit: fast, one partition.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import DPMixture
    >>> X, _ = make_blobs(150, centers=3, random_state=1)
    >>> mixture = DPMixture(n_chains=1, n_sweeps=60, random_state=0).fit(X)
    >>> mixture.n_clusters_
    3
    >>> least, most = mixture.posterior_.n_clusters_interval()  # with a probability of 0.95
    >>> least <= 3 <= most
    True
    >>> search = DPMixture(inference="map").fit(X)
    >>> search.n_clusters_, search.posterior_.labels.shape
    (3, (1, 1, 150))
    >>> approximate = DPMixture(inference="variational").fit(X)
    >>> approximate.n_clusters_, round(approximate.lower_bound_)
    (3, -603)
    """

    _stream: Stream

    def __init__(
        self,
        model="gaussian",
        prior=None,
        *,
        inference="mcmc",
        sampler="collapsed",
        split_merge=True,
        sample_hyper=True,
        init="one",
        n_chains=4,
        n_sweeps="auto",
        burn_in=None,
        thin=1,
        loss="vi",
        random_state=None,
        n_jobs=None,
    ):
        self.model = model
        self.prior = prior
        self.inference = inference
        self.sampler = sampler
        self.split_merge = split_merge
        self.sample_hyper = sample_hyper
        self.init = init
        self.n_chains = n_chains
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.thin = thin
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None):
        """Sample partitions of the rows of X.

        Ctrl-C stops the chains. If there are draws after burn-in, these are kept, with a
        ConvergenceWarning, and the estimator is fitted; otherwise KeyboardInterrupt is raised.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            As the model requires: numbers for 'gaussian', any types for 'columns'. Models of
            columns accept missing values (NaN).
        y : ignored

        Returns
        -------
        self
        """
        schedule = self._check_parameters()
        model = as_model(self.model)
        table = check_table(self, X, model, reset=True)
        model.check_shape(len(table), self.n_features_in_)
        bound = model.bind(table)
        given = bound.rows(table)
        rows = bound.spread(given)
        random = as_generator(self.random_state)
        mixtures = None
        with report_passes(self, X) as on_pass:
            if self.inference == "mcmc":
                draws = self._draw(bound, rows, schedule, random, on_pass)
            elif self.inference == "map":
                draws = self._search(bound, rows, on_pass)
            else:
                draws, mixtures = self._approximate(bound, rows, on_pass)
        self._store(bound, rows, equal_rows(given), draws, random, mixtures)
        return self

    def partial_fit(self, X, y=None):
        """Add a batch of rows of a stream, by a particle filter.

        The filter stores 32 partitions of all rows seen, as the sufficient statistics of their
        clusters, and the last 512 rows, over which a Gibbs sweep is made after each batch. After
        `fit` it continues from the posterior draws; otherwise hyperparameters of the model are set
        from the first batch and remain fixed. Afterwards ``labels_`` are the clusters of the rows
        of this batch in the most probable partition, and ``posterior_`` contains the clusters of
        the stored rows. The numbers of clusters may change with each batch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "model_")
        if not first and not hasattr(self, "_stream"):
            raise ValueError("partial_fit cannot go on from a model loaded from a file; fit again")
        table = check_table(self, X, as_model(self.model), reset=first)
        if first:
            model = as_model(self.model).bind(table)
            random = as_generator(self.random_state)
            stream = start_stream(model, self._given_prior(), model.rows(table), random)
            self.n_iter_ = 0
        else:
            stream = self._stream
        self._stream, labels = update_stream(stream, stream.model.spread(stream.model.rows(table)))
        self._store_stream(labels)
        return self

    def predict(self, X):
        """Return the most probable cluster of ``labels_`` for each row of X."""
        return self.predict_proba(X).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X):
        """Return the probability of each cluster of ``labels_``, (n_samples, n_clusters).

        The probabilities are conditional on a row being in one of them; a low `score_samples`
        shows rows that may not be.
        """
        rows = self._rows(X)
        return probabilities(self.model_, rows, self._mixtures()[0])

    def score_samples(self, X):
        """Return the log of the posterior predictive density of each row of X.

        The density is the mean of the mixture densities of up to 32 draws, evenly spaced. Each
        includes a component for a new cluster.
        """
        rows = self._rows(X)
        return log_densities(self.model_, rows, self._mixtures()[1:])

    def score(self, X, y=None):
        """Return the mean log density of the rows of X."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "model_")
        drawn = draw_rows(self.model_, self._mixtures()[1:], n_samples, as_generator(random_state))
        return self.model_.table(drawn)

    def _check_parameters(self) -> Schedule:
        as_prior("prior", self.prior)
        if self.inference not in INFERENCES:
            known = ", ".join(map(repr, INFERENCES))
            raise ValueError(f"inference must be one of {known}; got {self.inference!r}")
        if self.sampler not in tuple(SWEEPS):
            known = " or ".join(map(repr, SWEEPS))
            raise ValueError(f"sampler must be {known}; got {self.sampler!r}")
        return self._check_schedule(may_be_auto=True)

    def _given_prior(self) -> PartitionPrior:
        return as_prior("prior", self.prior)

    def _draw(
        self,
        bound: BoundModel,
        rows: np.ndarray,
        schedule: Schedule,
        random: np.random.Generator,
        on_pass: OnPass,
    ) -> list[list[Draw]]:
        """Run the chains."""
        prior = self._given_prior()
        labels = first_labels(self.init, rows, int(random.integers(2**31)), self.n_jobs)
        chains = [
            PartitionChain(
                bound,
                prior,
                rows,
                labels,
                generator,
                sampler=self.sampler,
                split_merge=bool(self.split_merge),
                sample_hyper=bool(self.sample_hyper),
                n_burn_in=schedule.least_burn_in,
            )
            for generator in random.spawn(self.n_chains)
        ]
        draws = run_chains(
            chains, schedule, agree=chains_agree, n_jobs=self.n_jobs, on_pass=on_pass
        )
        self.n_iter_ = min(chain.n_swept for chain in chains)
        return draws

    def _search(self, bound: BoundModel, rows: np.ndarray, on_pass: OnPass) -> list[list[Draw]]:
        """Find the most probable partition, as a chain of one draw."""
        found = most_probable_partition(
            bound, self._given_prior(), rows, on_pass=on_pass, **self._search_settings(rows)
        )
        self._store_search(found)
        return [[Draw(found.labels, found.log_joint, found.prior, found.model.hyper.value)]]

    def _approximate(
        self, bound: BoundModel, rows: np.ndarray, on_pass: OnPass
    ) -> tuple[list[list[Draw]], list[Mixture]]:
        """Approximate the posterior; return most probable components as a draw, and mixtures."""
        given = self._given_prior()
        if not isinstance(given, Restaurant):
            raise ValueError(
                "inference='variational' needs a prior with stick-breaking weights, such as "
                f"DirichletProcess; got prior={given!r}"
            )
        found = variational_mixture(
            bound, given, rows, on_pass=on_pass, **self._search_settings(rows)
        )
        self._store_search(found)
        self.lower_bound_ = found.lower_bound
        used, labels = number_by_appearance(found.components.shares.argmax(axis=1))
        joint = log_joint(found.model, given, found.prior, partition_of(bound, rows, labels))
        draw = Draw(labels, joint, found.prior, found.model.hyper.value)
        return [[draw]], [found.mixture(used), found.mixture()]

    def _search_settings(self, rows: np.ndarray) -> dict[str, Any]:
        """Return the settings of searches that draw no random numbers."""
        given = None if isinstance(self.init, str) and self.init == "one" else self.init
        return {
            "labels": None if given is None else first_labels(given, rows, 0, self.n_jobs),
            "fit_hyper": bool(self.sample_hyper),
            "max_rounds": None if self.n_sweeps == "auto" else self.n_sweeps,
        }

    def _store_search(self, found: MapResult | VariationalResult) -> None:
        self.n_iter_, self.converged_ = len(found.history), found.converged
        self.objective_history_ = found.history

    def _store(
        self,
        bound: BoundModel,
        rows: np.ndarray,
        same: np.ndarray,
        draws: list[list[Draw]],
        random: np.random.Generator,
        mixtures: list[Mixture] | None,
    ) -> None:
        """Set the fitted attributes from the draws, and from mixtures if rows share components."""
        self.posterior_ = posterior_of(draws, self.thin)
        if self.inference == "mcmc":
            self.labels_ = self.posterior_.point_estimate(self.loss, random, same=same)
        else:
            self.labels_ = number_by_appearance(draws[0][0].labels)[1]
        self.n_clusters_ = int(self.labels_.max()) + 1
        every = [draw for chain in draws for draw in chain]
        best = max(every, key=lambda draw: draw.log_joint)
        self.prior_ = best.prior
        particles = [_particle(bound, rows, draw.labels, draw) for draw in averaged(every)]
        estimate = _particle(bound, rows, self.labels_, best)
        if mixtures is None:
            mixtures = [_mixture(one) for one in (estimate, *particles)]
        self._store_mixtures(bound.with_hyper(best.hyper), mixtures)
        particles = [particles[i % len(particles)] for i in range(TUNING.n_particles)]
        self._stream = Stream(
            self.model_, self._given_prior(), rows[:0], particles, len(rows), random
        )
        if self.inference == "mcmc":
            self._judge_chains()
        elif not self.converged_:
            warnings.warn(
                f"the search still gained after {self.n_iter_} rounds",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _store_stream(self, labels: np.ndarray) -> None:
        """Set the fitted attributes from the stream; its first particle is the most probable."""
        particles = self._stream.particles
        best = particles[0]
        self.labels_, self.n_clusters_ = labels, len(best.sizes)
        self.prior_ = best.prior
        self._store_mixtures(
            self._stream.model.with_hyper(best.hyper), [_mixture(one) for one in (best, *particles)]
        )
        self.posterior_ = Posterior(
            [[particle.labels for particle in particles]],
            [[particle.log_joint(self.model_) for particle in particles]],
            parameters_of([particles]),
        )
        self.n_iter_ += 1
        self.converged_ = True

    def _rows(self, X) -> np.ndarray:
        check_is_fitted(self, "model_")
        model = as_model(self.model)
        return self.model_.rows(check_table(self, X, model, reset=False))


def _mixture(particle: Particle) -> Mixture:
    return mixture_of(particle.statistics, particle.sizes, particle.prior, particle.hyper)


def _particle(model: BoundModel, rows: np.ndarray, labels: np.ndarray, draw: Draw) -> Particle:
    """Return a draw as a particle without stored rows."""
    sizes = np.bincount(labels)
    statistics = model.statistics(rows, labels, len(sizes))
    return Particle(np.empty(0, dtype=np.int32), sizes, statistics, draw.prior, draw.hyper)
