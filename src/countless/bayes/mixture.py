"""The Dirichlet process mixture: how many clusters, which rows, and how sure the data is.

Rows of a cluster follow a component model with parameters of their own; the partition follows a
prior (Murphy, Machine Learning: a Probabilistic Perspective, section 25.2). Markov chains draw from
the posterior of the partition given the rows, or a deterministic search finds its mode.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from countless._compat import OnPass, report_passes, with_callbacks
from countless._labels import number_by_appearance
from countless.bayes.chains import Schedule, run_chains
from countless.bayes.draws import equal_rows
from countless.bayes.gibbs import SWEEPS, Draw, PartitionChain, parameters_of
from countless.bayes.map_search import most_probable_partition
from countless.bayes.particles import N_PARTICLES, Particle, Stream, start_stream, update_stream
from countless.bayes.posterior import Posterior
from countless.bayes.predictive import (
    Mixture,
    draw_rows,
    log_densities,
    mixture_of,
    probabilities,
)
from countless.bayes.sampled import SampledMixture, as_prior, averaged, chains_agree, posterior_of
from countless.bayes.start import first_labels
from countless.bayes.table import check_enough_rows, check_table
from countless.models import BoundModel
from countless.models.named import as_model
from countless.priors import PartitionPrior
from countless.priors.hyper import as_generator

INFERENCES = ("mcmc", "map")


class DPMixture(SampledMixture):
    """Draw clusterings from the posterior of a mixture that has no fixed number of components.

    Parameters
    ----------
    model : str or Model, default='gaussian'
        What one cluster looks like: 'gaussian', 'diagonal', 'fixed', 'bernoulli', 'categorical',
        'poisson', 'multinomial' or 'columns', or one of `countless.models`.
    prior : PartitionPrior, default=None
        Of the partition, one of `countless.priors`. None is a Dirichlet process whose
        concentration has the prior ``Gamma(1, 1)`` and is drawn, too.
    inference : {'mcmc', 'map'}, default='mcmc'
        Markov chains draw partitions from the posterior. 'map' searches the most probable one by
        reassigning rows, splits and merges, hyperparameters at their optimum: one answer, in a
        small part of the time, without a measure of how sure it is. What follows down to ``loss``
        is of chains, but for ``sample_hyper`` and ``init``.
    sampler : {'collapsed', 'uncollapsed'}, default='collapsed'
        A collapsed sweep draws the cluster of each row with the parameters of clusters integrated
        out. An uncollapsed one draws these first (Neal's algorithm 2), and needs more sweeps.
    split_merge : bool, default=True
        Whether splits and merges of whole clusters are tried after each sweep. Without them a chain
        may never leave where it started.
    sample_hyper : bool, default=True
        Whether hyperparameters that the model has set from the data are drawn, too; or
        optimised, by ``inference='map'``.
    init : {'one', 'dp-means'} or array-like of shape (n_samples,), default='one'
        Where chains start: all rows in one cluster, the clusters of `DPMeans`, or a label for each
        row. The search of ``inference='map'`` starts from its own pieces, or from given labels.
    n_chains : int, default=4
    n_sweeps : int or 'auto', default='auto'
        Sweeps of each chain in all. 'auto' goes on until the chains agree, as ``converged_``
        means it (asked after 60 sweeps, 75, 93, ...), or for 1,000 sweeps; one chain, which has
        none to agree with, makes 200. With ``inference='map'``: rounds of the search at most,
        'auto' for 50.
    burn_in : int, default=None
        How many of the first are forgotten; by default half of all that were made. In up to 20
        of them a chain settles, by moves that later ones must not make.
    thin : int, default=1
        After these, one sweep in so many is kept.
    loss : {'vi', 'binder'}, default='vi'
        What ``labels_`` keeps small: the expected variation of information, or Binder's loss.
    random_state : int, RandomState instance or None, default=None
        Of chains; ``inference='map'`` draws no random numbers.
    n_jobs : int, default=None
        Threads for chains, as in scikit-learn; the draws do not depend on them.

    Attributes
    ----------
    posterior_ : Posterior
        The draws: ``labels`` (n_chains, n_draws, n_samples), ``n_clusters``, ``log_joint``,
        ``alpha``, ``similarity()``, ``diagnostics()`` and more.
    labels_ : ndarray of shape (n_samples,)
        The partition that is expected to be nearest to the truth, numbered by first appearance. A
        row is by itself only if it is so in most draws. With ``inference='map'`` the most probable
        partition that was found, which is then the one draw of ``posterior_``.
    n_clusters_ : int
        How many clusters that has; ``posterior_.n_clusters_interval()`` says how sure that is.
    n_iter_ : int
        Sweeps of each chain; rounds of the search.
    objective_history_ : list of float
        With ``inference='map'``: the log joint density after each round, parameters of the prior by
        the densities of their logarithms (or log odds). It never decreases.
    converged_ : bool
        Whether chains agree: no R-hat of the number of clusters, the log joint density or a
        parameter of the prior is above 1.1. One chain has nothing to disagree with. For a search:
        whether no move was left that raises the log joint density.
    model_ : BoundModel
        The model with the hyperparameters of the draw of highest joint density.
    prior_ : PartitionPrior
        The prior with the parameters of that draw.
    mixture_statistics_, mixture_weights_, mixture_hyper_, mixture_starts_ : ndarray
        What predictions rest on: clusters of ``labels_`` and of draws, one mixture after another.
    model_table_, model_levels_, model_hyper_ : ndarray, list and ndarray
        The model in the form in which it is saved.
    n_features_in_ : int

    See Also
    --------
    DPMeans : The hard limit: fast, one answer.

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
        """Draw clusterings of the rows of X.

        Ctrl-C ends chains. Where there are draws after the burn-in, these are kept, with a
        ConvergenceWarning, and the estimator is fitted; else KeyboardInterrupt is raised.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            What the model takes: numbers for 'gaussian', anything for 'columns'. Models of columns
            take gaps (NaN).
        y : ignored

        Returns
        -------
        self
        """
        schedule = self._check_parameters()
        model = as_model(self.model)
        table = check_table(self, X, model, reset=True)
        check_enough_rows(model, table)
        bound = model.bind(table)
        given = bound.rows(table)
        rows = bound.spread(given)
        random = as_generator(self.random_state)
        with report_passes(self, X) as on_pass:
            if self.inference == "map":
                draws = self._search(bound, rows, on_pass)
            else:
                draws = self._draw(bound, rows, schedule, random, on_pass)
        self._store(bound, rows, equal_rows(given), draws, random)
        return self

    def partial_fit(self, X, y=None):
        """Take in a batch of rows of a stream, by a particle filter.

        Kept are 32 partitions of all rows seen, as the statistics of their clusters, and the last
        512 rows, over which a Gibbs sweep goes after each batch. After `fit` the stream goes on
        from its draws; else hyperparameters of the model are set from the first batch and stay.
        Afterwards ``labels_`` are the clusters of the rows of this batch in the most probable of
        the partitions, and ``posterior_`` holds the clusters of the rows that are kept; clusters
        may be numbered anew by each batch.

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
            raise ValueError("partial_fit cannot go on from a model loaded from a file; fit anew")
        table = check_table(self, X, as_model(self.model), reset=first)
        if first:
            model = as_model(self.model).bind(table)
            random = as_generator(self.random_state)
            stream = start_stream(model, self._believed(), model.rows(table), random)
            self.n_iter_ = 0
        else:
            stream = self._stream
        self._stream, labels = update_stream(stream, stream.model.spread(stream.model.rows(table)))
        self._store_stream(labels)
        return self

    def predict(self, X):
        """Return the likeliest of the clusters of ``labels_`` for each row of X."""
        return self.predict_proba(X).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X):
        """Return the probability of each cluster of ``labels_``, (n_samples, n_clusters).

        It is taken as given that a row belongs to one of them; `score_samples` tells of rows that
        may not.
        """
        rows = self._rows(X)
        return probabilities(self.model_, rows, self._mixtures()[0])

    def score_samples(self, X):
        """Return the log of the posterior predictive density of each row of X.

        The mean over up to 32 draws, evenly spaced, of the mixture that each of them is; a row may
        belong to a cluster that has not been seen.
        """
        rows = self._rows(X)
        return log_densities(self.model_, rows, self._mixtures()[1:])

    def score(self, X, y=None):
        """Return the mean log density of the rows of X."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the posterior predictive density.

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
            known = " or ".join(map(repr, INFERENCES))
            raise ValueError(f"inference must be {known}; got {self.inference!r}")
        if self.sampler not in tuple(SWEEPS):
            known = " or ".join(map(repr, SWEEPS))
            raise ValueError(f"sampler must be {known}; got {self.sampler!r}")
        return self._check_schedule(may_be_auto=True)

    def _believed(self) -> PartitionPrior:
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
        prior = self._believed()
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
                n_forgotten=schedule.n_forgotten,
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
        given = None if isinstance(self.init, str) and self.init == "one" else self.init
        found = most_probable_partition(
            bound,
            self._believed(),
            rows,
            labels=None if given is None else first_labels(given, rows, 0, self.n_jobs),
            fit_hyper=bool(self.sample_hyper),
            max_rounds=None if self.n_sweeps == "auto" else self.n_sweeps,
            on_pass=on_pass,
        )
        self.n_iter_, self.converged_ = len(found.history), found.converged
        self.objective_history_ = found.history
        return [[Draw(found.labels, found.log_joint, found.prior, found.model.hyper.value)]]

    def _store(
        self,
        bound: BoundModel,
        rows: np.ndarray,
        same: np.ndarray,
        draws: list[list[Draw]],
        random: np.random.Generator,
    ) -> None:
        """Keep the draws, and what follows from them."""
        self.posterior_ = posterior_of(draws, self.thin)
        if self.inference == "map":
            self.labels_ = number_by_appearance(draws[0][0].labels)[1]
        else:
            self.labels_ = self.posterior_.point_estimate(self.loss, random, same=same)
        self.n_clusters_ = int(self.labels_.max()) + 1
        every = [draw for chain in draws for draw in chain]
        best = max(every, key=lambda draw: draw.log_joint)
        self.prior_ = best.prior
        particles = [_particle(bound, rows, draw.labels, draw) for draw in averaged(every)]
        estimate = _particle(bound, rows, self.labels_, best)
        self._store_mixtures(
            bound.with_hyper(best.hyper), [_mixture(one) for one in (estimate, *particles)]
        )
        particles = [particles[i % len(particles)] for i in range(N_PARTICLES)]
        self._stream = Stream(self.model_, self._believed(), rows[:0], particles, len(rows), random)
        if self.inference == "mcmc":
            self._judge_chains()
        elif not self.converged_:
            warnings.warn(
                f"the search still gained after {self.n_iter_} rounds",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _store_stream(self, labels: np.ndarray) -> None:
        """Keep what follows from the stream; its first particle is the most probable."""
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
    """Return a partition of rows that are not kept."""
    sizes = np.bincount(labels)
    statistics = model.statistics(rows, labels, len(sizes))
    return Particle(np.empty(0, dtype=np.int32), sizes, statistics, draw.prior, draw.hyper)
