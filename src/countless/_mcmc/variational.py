"""Variational inference for mixtures of any conjugate model, with splits and merges of components.

The posterior of components and parameters is approximated by a product: ``r[i, c]``, the
probability that row i is in component c (its responsibility), times a density of the parameters of
each component, times one of the weights, by stick breaking. Given responsibilities, the best
densities are the conjugate posteriors given weighted statistics ``S[c] = sum_i r[i, c] t(x_i)``, so
that the evidence lower bound depends on the responsibilities alone:

    L(r) = sum_c log m(S[c]) + log p(N) - sum_ic r[i, c] log r[i, c]

where m is the marginal likelihood of the component model, and p(N) the probability of the sizes
``N[c] = sum_i r[i, c]`` by stick breaking. It is at most the log evidence of the rows: the sum over
all partitions. No truncation is chosen: components beyond the present ones keep their prior.

Every move raises the bound or is not taken:

- an update sets ``r[i, c]`` proportional to the exponential of the expected log density of the row
  in the component plus the expected log weight (a fixed-point step of coordinate ascent);
- a merge adds the responsibilities of two components;
- a split divides those of one component, or of two that would merge best, among pieces, which are
  updated alone and merged;
- hyperparameters of the model and parameters of the prior go to their optimum.

References
----------
.. [1] D. M. Blei and M. I. Jordan, "Variational inference for Dirichlet process mixtures", Bayesian
   Analysis 1, 2006.
.. [2] M. C. Hughes and E. Sudderth, "Memoized online variational inference for Dirichlet process
   mixture models", NeurIPS 2013.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from countless._compat import OnPass, ignore_pass
from countless._mcmc.gibbs import NOTHING
from countless._mcmc.map_search import log_jacobians, optimal_parameters
from countless._mcmc.pieces import cut, principal_halves, standardize
from countless._mcmc.predictive import Mixture
from countless._threads import one_library_thread
from countless.models import BoundModel
from countless.priors.restaurant import Restaurant


@dataclass(frozen=True)
class Limits:
    """Constants of the search; they bound its cost and do not change the bound."""

    pieces: tuple[int, ...] = (2, 8)  # into which a component is split; the first usually suffice
    piece_updates: int = 5  # updates of the pieces alone, before and after merges
    least_share: float = 0.01  # rows with less responsibility do not decide how to split
    updates: int = 20  # updates of all components in one round
    rounds: int = 50
    cells_at_once: int = 2**20  # of the matrix of statistics of rows, which bounds memory
    least_gain: float = 1e-2  # tolerance in nats: the search stops below it


LIMITS = Limits()


class Components(NamedTuple):
    """Components, in the order of their sticks: by decreasing size."""

    shares: np.ndarray  # (n_rows, n_components) responsibilities
    statistics: np.ndarray  # (n_components, width), weighted by them
    sizes: np.ndarray  # (n_components,), their sums


class VariationalResult(NamedTuple):
    """The result: components and parameters, a local optimum of the bound if converged."""

    components: Components
    model: BoundModel  # with its hyperparameters at their optimum
    prior: Restaurant  # with numeric parameters
    lower_bound: float  # of the log evidence given hyperparameters and parameters of the prior
    history: list[float]  # the bound after each round, plus the log densities of those parameters
    converged: bool

    def mixture(self, used: np.ndarray | None = None) -> Mixture:
        """Return the predictive mixture of all components or some; the rest is a new cluster."""
        _, statistics, sizes = self.components
        weights = self.prior.expected_weights(sizes)[:-1]
        if used is not None:
            statistics, weights = statistics[used], weights[used]
        weights = np.append(weights, max(1.0 - weights.sum(), 0.0))
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        new = self.model.empty()
        return Mixture(np.vstack([statistics, new]), log_weights, self.model.hyper.value)


def variational_mixture(
    model: BoundModel,
    prior: Restaurant,
    rows: np.ndarray,
    *,
    labels: np.ndarray | None = None,
    fit_hyper: bool = True,
    max_rounds: int | None = None,
    on_pass: OnPass = ignore_pass,
) -> VariationalResult:
    """Approximate the posterior of a mixture; deterministic.

    Parameters
    ----------
    model : BoundModel
        Component model.
    prior : Restaurant
        A prior with stick-breaking weights; parameters given as distributions are optimised.
    rows : ndarray of shape (n_rows, n_features)
        As returned by ``model.rows``.
    labels : ndarray of int of shape (n_rows,), optional
        Initial partition, 0, 1, ...; by default one component.
    fit_hyper : bool, default=True
        Whether hyperparameters of the model that were not given are optimised.
    max_rounds : int, optional
        Largest number of rounds; by default 50.
    on_pass : callable
        Called with the bound and the number of components after each round.

    Returns
    -------
    VariationalResult

    Examples
    --------
    >>> import numpy as np
    >>> from countless._mcmc.variational import variational_mixture
    >>> from countless.models import Gaussian
    >>> from countless.priors import DirichletProcess
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.1], [5.3]])
    >>> model = Gaussian().bind(X)
    >>> found = variational_mixture(
    ...     model, DirichletProcess(1.0), model.rows(X), fit_hyper=False
    ... )
    >>> found.components.sizes.round(2), round(found.lower_bound, 2)
    (array([3., 3.]), -13.48)
    """
    with one_library_thread():
        search = _Search(model, prior, rows, fit_hyper)
        if labels is not None:
            search.components = search.ordered(np.eye(labels.max() + 1)[labels])
        history = search.run(LIMITS.rounds if max_rounds is None else max_rounds, on_pass)
    return VariationalResult(
        search.components,
        search.model,
        search.prior,
        search.bound(search.components),
        history,
        search.converged,
    )


class _Search:
    """Components with their parameters, and the moves that raise their bound."""

    def __init__(
        self, model: BoundModel, prior: Restaurant, rows: np.ndarray, fit_hyper: bool
    ) -> None:
        self.model, self.given_prior, self.rows = model, prior, rows
        self.prior = optimal_parameters(prior, prior.draw_parameters(0))
        self.converged = False
        self._fits_hyper = fit_hyper and bool(model.hyper.free.any())
        self._scaled = standardize(rows)
        self.components = self.ordered(np.ones((len(rows), 1)))

    def ordered(self, shares: np.ndarray, rows: np.ndarray | None = None) -> Components:
        """Return the components that have these responsibilities, largest first."""
        rows = self.rows if rows is None else rows
        sizes = shares.sum(axis=0)
        order = np.argsort(-sizes, kind="stable")
        shares, statistics = shares[:, order], np.zeros((len(order), self.model.width))
        for block in self._blocks(len(rows)):
            statistics += shares[block].T @ self.model.row_statistics(rows[block])
        return Components(shares, statistics, sizes[order])

    def bound(self, components: Components, others: np.ndarray = NOTHING) -> float:
        """Return the terms of the bound of some components, given the sizes of the others."""
        shares, statistics, sizes = components
        sizes = np.sort(np.append(sizes, others))[::-1]
        total = float(self.model.log_marginal(statistics).sum() - xlogy(shares, shares).sum())
        return total + float(self.prior.log_prob_ordered(sizes))

    def objective(self) -> float:
        """Return the bound plus the log densities of all optimised parameters."""
        total = self.bound(self.components) + self.model.hyper.log_prior(self.model.hyper.value)
        total += self.given_prior.log_prob_parameters(self.prior)
        return total + log_jacobians(self.given_prior, self.prior)

    def run(self, max_rounds: int, on_pass: OnPass) -> list[float]:
        """Make rounds of all moves until a round gains less than the tolerance."""
        history: list[float] = []
        for _ in range(max_rounds):
            self.components = self._updated(self.components, LIMITS.updates)
            self.components = self._merged(self.components)
            if history:  # from the second round on: the first has too few components
                self.update_parameters()
            self.split()
            history.append(self.objective())
            on_pass(history[-1], len(self.components.sizes))
            if len(history) > 2 and history[-1] - history[-2] < LIMITS.least_gain:
                self.converged = True
                break
        return history

    def update_parameters(self) -> None:
        """Move the parameters of prior and model to their optimum given the components."""
        sizes = self.components.sizes
        if self.given_prior.hyperpriors:
            self.prior = optimal_parameters(
                self.given_prior, self.prior, lambda prior: float(prior.log_prob_ordered(sizes))
            )
        if self._fits_hyper:
            self.model = self.model.fit_hyper(self.components.statistics)

    def split(self) -> None:
        """Split each component alone, and together with its best partner."""
        for with_partner in (False, True):
            for size in self.components.sizes:
                # Components change places: each is found again by its size.
                own = np.flatnonzero(self.components.sizes == size)
                if len(own) and with_partner and len(self.components.sizes) > 1:
                    gains = self._gains(self.components, own[0])
                    own = np.array([own[0], int(np.argmax(gains))])
                if len(own):
                    self._split(own[: 1 + with_partner])

    def _split(self, own: np.ndarray) -> bool:
        """Divide the responsibilities of some components again, if that raises the bound."""
        shares, statistics, sizes = self.components
        others = np.delete(sizes, own)
        least = self.bound(Components(shares[:, own], statistics[own], sizes[own]), others)
        mass = shares[:, own].sum(axis=1)
        members = np.flatnonzero(mass > LIMITS.least_share)
        rest = np.flatnonzero((mass > 0.0) & (mass <= LIMITS.least_share))
        rows, scaled, weight = self.rows[members], self._scaled[members], mass[members]
        if len(members) < 2:
            return False
        most = self.prior.most_clusters() - len(others)

        def halve(chosen: np.ndarray) -> np.ndarray | None:
            return principal_halves(scaled[chosen])

        for n_pieces in LIMITS.pieces:
            labels = cut(scaled, int(min(n_pieces, most)), halve)
            found = self.ordered(np.eye(labels.max() + 1)[labels] * weight[:, None], rows)
            found = self._updated(found, LIMITS.piece_updates, rows, weight)
            found = self._merged(found, others)
            found = self._updated(found, LIMITS.piece_updates, rows, weight)
            within = np.zeros((len(mass), len(found.sizes)))
            within[members] = found.shares
            within[rest, 0] = mass[rest]
            found = self.ordered(within)
            if self.bound(found, others) > least + LIMITS.least_gain:
                kept = np.delete(shares, own, axis=1)
                self.components = self.ordered(np.hstack([kept, found.shares]))
                return True
        return False

    def _updated(
        self,
        components: Components,
        n_updates: int,
        rows: np.ndarray | None = None,
        mass: np.ndarray | None = None,
    ) -> Components:
        """Update responsibilities, which sum to ``mass``, until the bound gains too little."""
        rows = self.rows if rows is None else rows
        height = self.bound(components)
        for _ in range(n_updates):
            if len(components.sizes) == 1:
                break
            following = self._update(components, rows, mass)
            before, height = height, self.bound(following)
            if height > before:
                components = following
            if height < before + LIMITS.least_gain:
                break
        return components

    def _update(
        self, components: Components, rows: np.ndarray, mass: np.ndarray | None
    ) -> Components:
        """Set all responsibilities by the expected log densities and weights."""
        parameters = self.model.expected_parameters(components.statistics).T
        log_weights = self.prior.expected_log_weights(components.sizes)
        shares = np.empty(components.shares.shape)
        statistics = np.zeros(components.statistics.shape)
        for block in self._blocks(len(rows)):
            own = self.model.row_statistics(rows[block])
            logs = own @ parameters + log_weights
            some = np.exp(logs - logs.max(axis=1, keepdims=True))
            some /= some.sum(axis=1, keepdims=True)
            if mass is not None:
                some *= mass[block, None]
            shares[block] = some
            statistics += some.T @ own
        sizes = shares.sum(axis=0)
        order = np.argsort(-sizes, kind="stable")
        return Components(shares[:, order], statistics[order], sizes[order])

    def _gains(
        self, components: Components, first: int, others: np.ndarray = NOTHING
    ) -> np.ndarray:
        """Return an upper bound of what merging the first with each component gains.

        It leaves out the entropy of the rows that they share, which a merge can only lower.
        """
        _, statistics, sizes = components
        marginals = self.model.log_marginal(statistics)
        gains = self.model.log_marginal(statistics + statistics[first]) - marginals
        gains -= marginals[first]
        second = np.arange(len(sizes))
        merged = np.tile(sizes, (len(sizes), 1))
        merged[second, second] += sizes[first]
        merged = np.delete(merged, first, axis=1)
        merged = np.hstack([merged, np.tile(others, (len(sizes), 1))])
        gains += self.prior.log_prob_ordered(np.sort(merged, axis=1)[:, ::-1])
        gains -= self.prior.log_prob_ordered(np.sort(np.append(sizes, others))[::-1])
        gains[first] = -np.inf
        return gains

    def _merged(self, components: Components, others: np.ndarray = NOTHING) -> Components:
        """Merge components pairwise, the smallest first, where that raises the bound."""
        first = len(components.sizes) - 1
        while first >= 0 and len(components.sizes) > 1:
            shares, statistics, sizes = components
            gains = self._gains(components, first, others)
            for second in np.argsort(-gains):
                if not gains[second] > 0.0:
                    first -= 1
                    break
                a, b = shares[:, first], shares[:, second]
                lost = (xlogy(a + b, a + b) - xlogy(a, a) - xlogy(b, b)).sum()
                if gains[second] > lost:
                    shares, statistics, sizes = shares.copy(), statistics.copy(), sizes.copy()
                    for array in (shares.T, statistics, sizes):
                        array[second] += array[first]
                    kept = np.delete(np.arange(len(sizes)), first)
                    kept = kept[np.argsort(-sizes[kept], kind="stable")]
                    components = Components(shares[:, kept], statistics[kept], sizes[kept])
                    first = min(first, len(kept) - 1)
                    break
        return components

    def _blocks(self, n_rows: int) -> Iterator[slice]:
        step = max(1, LIMITS.cells_at_once // self.model.width)
        for start in range(0, n_rows, step):
            yield slice(start, start + step)
