"""The hierarchical Dirichlet process mixture: the posterior of clusters that data sets share.

Clusters have shared weights, ``b ~ GEM(gamma)``. Each data set has its own mixture weights,
``p ~ DP(alpha, b)``; the rows of a cluster follow one component model in all data sets (Teh,
Jordan, Beal and Blei, "Hierarchical Dirichlet processes", JASA 101, 2006). Markov chains sample the
posterior of the clusters of rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countless._compat import OnPass, report_passes, with_callbacks
from countless._mcmc.chains import Schedule, run_chains
from countless._mcmc.draws import equal_rows
from countless._mcmc.hdp.chain import HDPChain, HDPDraw, concentrations_of
from countless._mcmc.hdp.predictive import (
    by_group,
    log_weights_of_clusters,
    mean_shares,
    shared_mixture,
    shares,
)
from countless._mcmc.hdp.state import HDPState, PriorSpec, count_cells, state_of
from countless._mcmc.predictive import Mixture, draw_rows, log_densities, normalised
from countless._mcmc.sampled import (
    SampledMixture,
    averaged,
    chains_agree,
    check_table,
    first_labels,
    posterior_of,
)
from countless._search.groups.groups import Groups, check_groups, number_inside
from countless.hdp_means import HDPMeans
from countless.models import BoundModel
from countless.models.registry import as_model
from countless.priors import Gamma, PitmanYor
from countless.priors.hyper import as_generator, check_positive


class HDPMixture(SampledMixture):
    """Sample the posterior of a mixture model whose clusters are shared by several data sets.

    A row's label is its global cluster. Each data set uses some of the global clusters; its rows in
    one of them are a local cluster.

    Parameters
    ----------
    model : str or Model, default='gaussian'
        Component model of a cluster: 'gaussian', 'diagonal', 'fixed', 'bernoulli', 'categorical',
        'poisson', 'multinomial' or 'columns', or one of `countless.models`.
    alpha : float or Gamma, default=None
        Concentration of the weights of data sets about the shared weights: large where all data
        sets have similar weights. None is the prior ``Gamma(1, 1)``; under a prior it is sampled,
        too.
    gamma : float, Gamma or PitmanYor, default=None
        Concentration of the shared weights: the larger, the more global clusters are expected. None
        as for ``alpha``. A `countless.priors.PitmanYor` has a concentration and a discount, both
        numbers or priors: the larger the discount, the more global clusters of few data sets.
    split_merge : bool, default=True
        Whether split-merge proposals (Metropolis-Hastings) for global clusters are made after each
        sweep. Without them a chain may never leave its initial mode.
    sample_hyper : bool, default=True
        Whether hyperparameters that the model has set from the data are sampled, too.
    init : {'one', 'hdp-means'} or array-like of shape (n_samples,), default='one'
        Initial partition of the chains: all rows in one cluster, the global clusters of `HDPMeans`,
        or a label for each row.
    n_chains : int, default=4
    n_sweeps : int or 'auto', default='auto'
        Number of sweeps of each chain, burn-in included. With 'auto' chains run until they agree,
        as defined by ``converged_`` (tested after 60 sweeps, 75, 93, ...), or for 1,000 sweeps; a
        single chain makes 200.
    burn_in : int, default=None
        Number of first sweeps that are discarded; by default half of those made.
    thin : int, default=1
        Every ``thin``-th sweep after burn-in is kept.
    loss : {'vi', 'binder'}, default='vi'
        The loss whose posterior expectation ``labels_`` minimises: variation of information, or
        Binder's loss.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Number of threads for chains, as in scikit-learn; the draws do not depend on it.

    Attributes
    ----------
    posterior_ : Posterior
        The draws: ``labels`` (n_chains, n_draws, n_samples) of global clusters, ``n_clusters``,
        ``log_joint``, ``similarity()``, ``diagnostics()`` and more; ``parameters`` contains
        ``alpha`` and ``gamma``, and ``discount`` where there is one.
    labels_ : ndarray of shape (n_samples,)
        The global cluster of each row, in the partition of least posterior expected loss; numbered
        by first appearance.
    n_clusters_ : int
        Number of global clusters of ``labels_``; ``posterior_.n_clusters_interval()`` is a credible
        interval.
    local_labels_ : ndarray of shape (n_samples,)
        The local cluster of each row inside its data set, numbered by first appearance there.
    groups_ : ndarray of shape (n_groups,)
        The data sets, in order of first appearance.
    n_local_clusters_ : ndarray of shape (n_groups,)
        Number of global clusters that each data set uses in ``labels_``.
    group_clusters_ : ndarray of bool of shape (n_groups, n_clusters)
        Whether each data set uses each global cluster.
    group_weights_ : ndarray of shape (n_groups, n_clusters)
        Predictive probability that the next row of a data set belongs to each cluster, given
        ``labels_``; the remainder to 1 is that of new clusters.
    weights_ : ndarray of shape (n_clusters,)
        The same for a data set without rows: the shared weights.
    n_iter_ : int
        Sweeps of each chain.
    converged_ : bool
        Whether chains agree: no R-hat of the number of clusters, the log joint density or a
        concentration is above 1.1. Always True for one chain.
    model_ : BoundModel
        The model with the hyperparameters of the draw of highest joint density.
    n_features_in_ : int

    See Also
    --------
    HDPMeans : The small-variance limit: fast, one partition.
    DPMixture : The same for one data set.

    Examples
    --------
    >>> import numpy as np
    >>> from countless import HDPMixture
    >>> centers = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> truth = np.repeat([0, 1, 1, 2, 2, 0], 15)  # each data set has two of three clusters
    >>> groups = np.repeat(["a", "b", "c"], 30)
    >>> X = centers[truth] + np.random.RandomState(3).standard_normal((90, 2))
    >>> mixture = HDPMixture(n_chains=1, n_sweeps=40, random_state=0).fit(X, groups=groups)
    >>> mixture.n_clusters_, mixture.n_local_clusters_.tolist()
    (3, [2, 2, 2])
    >>> mixture.predict([[8.5, 0.5]], groups=["b"])
    array([1], dtype=int32)
    """

    def __init__(
        self,
        model="gaussian",
        *,
        alpha=None,
        gamma=None,
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
        self.alpha = alpha
        self.gamma = gamma
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
    def fit(self, X, y=None, groups=None):
        """Sample partitions of the rows of X.

        Ctrl-C stops the chains; the draws so far, if there are any, are kept, with a warning.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            As the model requires: numbers for 'gaussian', any types for 'columns'. Models of
            columns accept missing values (NaN).
        y : ignored
        groups : array-like of shape (n_samples,), optional
            The data set of each row, as labels of any type. None is a single data set.

        Returns
        -------
        self
        """
        schedule, given_prior = self._check_parameters()
        model = as_model(self.model)
        table = check_table(self, X, model, reset=True)
        model.check_shape(len(table), self.n_features_in_)
        bound = model.bind(table)
        given = bound.rows(table)
        rows = bound.spread(given)
        grouped = check_groups(groups, len(rows))
        random = as_generator(self.random_state)
        with report_passes(self, X) as on_pass:
            draws = self._draw(bound, given_prior, rows, grouped, schedule, random, on_pass)
        same = equal_rows(np.column_stack([given, grouped.number]))
        self._store(bound, given_prior, rows, same, grouped, draws, random)
        return self

    def fit_predict(self, X, y=None, groups=None):
        """Sample partitions of the rows of X and return ``labels_``, their global clusters."""
        return self.fit(X, groups=groups).labels_

    def predict(self, X, groups=None):
        """Return the most probable cluster of ``labels_`` for each row of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), optional
            The data set of each row. A data set that was not fitted has the shared weights. None
            is the single data set of a fit without groups, and otherwise one that was not fitted.

        Returns
        -------
        ndarray of int32 of shape (n_samples,)
        """
        return self.predict_proba(X, groups).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X, groups=None):
        """Return the probability of each cluster of ``labels_``, (n_samples, n_clusters).

        The probabilities are conditional on a row being in one of them; a low `score_samples`
        shows rows that may not be. ``groups`` as for `predict`.
        """
        rows, place = self._rows(X, groups)
        log_weights = by_group(
            log_weights_of_clusters, self.model_, rows, place, self._mixtures()[:1]
        )
        return normalised(log_weights)

    def score_samples(self, X, groups=None):
        """Return the log of the posterior predictive density of each row of X.

        The density is the mean of the mixture densities of up to 32 draws, evenly spaced, for the
        row's data set. Each includes a component for a new cluster. ``groups`` as for `predict`.
        """
        rows, place = self._rows(X, groups)
        return by_group(log_densities, self.model_, rows, place, self._mixtures()[1:])

    def score(self, X, y=None, groups=None):
        """Return the mean log density of the rows of X."""
        return float(self.score_samples(X, groups).mean())

    def sample(self, n_samples=1, group=None, random_state=None):
        """Draw rows from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
        group : label, default=None
            Their data set, as for `predict`.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "model_")
        place = self._places(None if group is None else [group], 1)[0]
        drawn_from = self._mixtures()[1:]
        mixtures = [one._replace(log_weights=one.log_weights[:, place]) for one in drawn_from]
        drawn = draw_rows(self.model_, mixtures, n_samples, as_generator(random_state))
        return self.model_.table(drawn)

    def _check_parameters(self) -> tuple[Schedule, PriorSpec]:
        alpha, gamma = (Gamma() if value is None else value for value in (self.alpha, self.gamma))
        for name, value in {"alpha": alpha, "gamma": gamma}.items():
            if not isinstance(value, Gamma | PitmanYor if name == "gamma" else Gamma):
                check_positive(name, value)
        shared = (gamma.alpha, gamma.discount) if isinstance(gamma, PitmanYor) else (gamma,)
        given_prior = PriorSpec(alpha, *shared)
        return self._check_schedule(may_be_auto=True), given_prior

    def _first_labels(self, rows: np.ndarray, groups: Groups, seed: int) -> np.ndarray:
        """Return the initial labels of the chains."""
        if not isinstance(self.init, str) or self.init == "one":
            return first_labels(self.init, rows, seed, self.n_jobs)
        if self.init != "hdp-means":
            raise ValueError(
                f"init must be 'one', 'hdp-means' or a label for each row; got {self.init!r}"
            )
        if np.isnan(rows).any():
            raise ValueError("init='hdp-means' takes no missing values; use init='one'")
        hard = HDPMeans(random_state=seed, n_jobs=self.n_jobs)
        return hard.fit(rows, groups=groups.number).labels_

    def _draw(
        self,
        bound: BoundModel,
        given_prior: PriorSpec,
        rows: np.ndarray,
        groups: Groups,
        schedule: Schedule,
        random: np.random.Generator,
        on_pass: OnPass,
    ) -> list[list[HDPDraw]]:
        """Run the chains."""
        labels = self._first_labels(rows, groups, int(random.integers(2**31)))
        chains = [
            HDPChain(
                bound,
                given_prior,
                rows,
                groups.number,
                labels,
                generator,
                split_merge=self.split_merge,
                sample_hyper=self.sample_hyper,
            )
            for generator in random.spawn(self.n_chains)
        ]
        agree = partial(chains_agree, parameters_of=concentrations_of)
        draws = run_chains(chains, schedule, agree=agree, n_jobs=self.n_jobs, on_pass=on_pass)
        self.n_iter_ = min(chain.n_swept for chain in chains)
        return draws

    def _store(
        self,
        bound: BoundModel,
        given_prior: PriorSpec,
        rows: np.ndarray,
        same: np.ndarray,
        groups: Groups,
        draws: list[list[HDPDraw]],
        random: np.random.Generator,
    ) -> None:
        """Set the fitted attributes from the draws."""
        self.posterior_ = posterior_of(draws, self.thin, concentrations_of)
        self.labels_ = self.posterior_.point_estimate(self.loss, random, same=same)
        every = [draw for chain in draws for draw in chain]
        best = max(every, key=lambda draw: draw.log_joint)
        model = bound.with_hyper(best.hyper)
        state = state_of(model, rows, groups.number, self.labels_, groups.n_groups)
        share = mean_shares(state, given_prior, best.concentrations, random)
        estimate = shared_mixture(state.statistics, share, best.hyper)
        drawn = [_mixture(model, rows, groups, draw) for draw in averaged(every)]
        self._store_mixtures(model, [estimate, *drawn])
        self.group_weights_, self.weights_ = share[:-1, :-1], share[-1, :-1]
        self._store_groups(groups, state)
        self._judge_chains()

    def _store_groups(self, groups: Groups, state: HDPState) -> None:
        """Set the attributes that say which data set uses which clusters of ``labels_``."""
        self.n_clusters_ = state.n_clusters
        self.groups_ = groups.names
        self.group_clusters_ = state.counts > 0
        cell = groups.number.astype(np.int64) * self.n_clusters_ + self.labels_
        self.local_labels_, self.n_local_clusters_ = number_inside(groups.number, cell)

    def _rows(self, X, groups) -> tuple[np.ndarray, np.ndarray]:
        """Return rows as the model requires them, and the index of each row's data set."""
        check_is_fitted(self, "model_")
        table = check_table(self, X, as_model(self.model), reset=False)
        rows = self.model_.rows(table)
        return rows, self._places(groups, len(rows))

    def _places(self, groups, n_rows: int) -> np.ndarray:
        """Return the index of each row's data set among the fitted; unknown ones are the last."""
        place = {name: at for at, name in enumerate(self.groups_.tolist())}
        if groups is None and len(place) > 1:
            return np.full(n_rows, len(place))
        given = check_groups(groups, n_rows)
        known = [place.get(name, len(place)) for name in given.names.tolist()]
        return np.array(known)[given.number]


def _mixture(model: BoundModel, rows: np.ndarray, groups: Groups, draw: HDPDraw) -> Mixture:
    """Return a draw's predictive mixtures of one more row of each group."""
    counts = count_cells(groups.number, draw.labels, groups.n_groups)
    statistics = model.statistics(rows, draw.labels, counts.shape[1])
    return shared_mixture(
        statistics, shares(counts, draw.weights, draw.concentrations.alpha), draw.hyper
    )
