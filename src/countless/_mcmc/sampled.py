"""What estimators that sample clusterings share: validation of input, schedules, base classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from countless._compat import CallbackSupportMixin
from countless._labels import check_labels, number_by_appearance
from countless._mcmc.chains import Schedule
from countless._mcmc.partition_chain import parameters_of
from countless._mcmc.point_estimate import LOSSES
from countless._mcmc.posterior import Posterior, diagnose
from countless._mcmc.predictive import Mixture, Packed, pack, unpack
from countless._numbers import check_column_names, in_reach, validate_numbers
from countless._parameters import check_counts, check_flags
from countless._search.dp_means import auto_labels
from countless.models import BoundModel, Model
from countless.models.registry import as_model
from countless.models.saved import pack_model
from countless.priors import DirichletProcess, Gamma, PartitionPrior


def check_table(estimator: Any, X: Any, model: Model, *, reset: bool) -> Any:
    """Validate a table for a model: numbers are returned as an array, other input unchanged."""
    if model.categorical:
        check_column_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return in_reach(validate_numbers(estimator, X, allow_nan=model.allow_nan, reset=reset))


def tag_table(tags: Any, model: Any) -> None:
    """Set scikit-learn's input tags from a model, given as an object or by its name."""
    try:
        known = as_model(model)
    except ValueError:  # which fit raises again
        return
    tags.input_tags.allow_nan, tags.input_tags.categorical = known.allow_nan, known.categorical


def first_labels(init: Any, rows: np.ndarray, seed: int, n_jobs: int | None) -> np.ndarray:
    """Return initial labels: all rows in one cluster, those of DP-means, or given ones."""
    if isinstance(init, str):
        if init == "one":
            return np.zeros(len(rows), dtype=np.int32)
        if init == "dp-means":
            if np.isnan(rows).any():
                raise ValueError("init='dp-means' takes no missing values; use init='one'")
            return auto_labels(rows, seed, n_jobs)
        raise ValueError(f"init must be 'one', 'dp-means' or a label for each row; got {init!r}")
    labels = check_labels("init", init)
    if len(labels) != len(rows):
        raise ValueError(f"init has {len(labels)} labels; X has {len(rows)} rows")
    return number_by_appearance(labels)[1]


@dataclass(frozen=True)
class Tuning:
    """When chains stop, and how many of their draws predict."""

    highest_r_hat: float = 1.1  # chains with a higher one have not converged
    first_test: int = 60  # with n_sweeps='auto', sweeps before the first convergence test
    test_growth: float = 1.25  # factor from the sweeps of one test to those of the next
    most_sweeps: int = 1000
    single_chain_sweeps: int = 200  # of one chain, which has no R-hat
    averaged_draws: int = 32  # that predictive densities are averaged over


TUNING = Tuning()

ParametersOf = Callable[[Sequence[Sequence[Any]]], dict[str, np.ndarray]]


class Sampled(CallbackSupportMixin, BaseEstimator):
    """An estimator whose ``posterior_`` is sampled by Markov chains."""

    posterior_: Posterior
    n_iter_: int

    def _check_schedule(self, *, may_be_auto: bool = False) -> Schedule:
        """Validate the parameters of the chains; return their schedule."""
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be {' or '.join(map(repr, LOSSES))}; got {self.loss!r}")
        check_flags(self, "split_merge", "sample_hyper")
        if may_be_auto and isinstance(self.n_sweeps, str) and self.n_sweeps == "auto":
            return schedule_until_agreed(self)
        return schedule_of(self)

    def _advice(self) -> str:
        """Return the advice that the convergence warning ends with."""
        return "raise n_sweeps"

    def _judge_chains(self, stacklevel: int = 5) -> None:
        """Set ``converged_`` from R-hat, and warn if the chains disagree.

        The default ``stacklevel`` reaches the caller of ``fit``, from a method that ``fit`` calls
        and through scikit-learn's wrapper of ``fit``.
        """
        found = self.posterior_.diagnostics()
        apart = {name: d.r_hat for name, d in found.items() if d.r_hat > TUNING.highest_r_hat}
        self.converged_ = not apart
        if apart:
            name = max(apart, key=lambda name: apart[name])
            warnings.warn(
                f"{type(self).__name__}'s chains disagree on {name} (R-hat {apart[name]:.2f}) "
                f"after {self.n_iter_} sweeps; {self._advice()}",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )


class SampledMixture(DensityMixin, ClusterMixin, Sampled):
    """A sampled mixture model, which has a predictive density of rows."""

    model_: BoundModel
    model_table_: np.ndarray | None
    model_levels_: list | None
    model_hyper_: np.ndarray | None
    mixture_statistics_: np.ndarray
    mixture_weights_: np.ndarray
    mixture_hyper_: np.ndarray
    mixture_starts_: np.ndarray

    def _store_mixtures(self, model: BoundModel, mixtures: Sequence[Mixture]) -> None:
        """Store mixtures for predictions as arrays: that of ``labels_``, then those of draws."""
        self.model_ = model
        # Only a model given by its name can be saved; an arbitrary Model object cannot.
        saved = pack_model(model) if isinstance(self.model, str) else None
        self.model_table_, self.model_levels_, self.model_hyper_ = saved or (None, None, None)
        packed = pack(mixtures)
        self.mixture_statistics_, self.mixture_weights_ = packed.statistics, packed.weights
        self.mixture_hyper_, self.mixture_starts_ = packed.hyper, packed.starts

    def _mixtures(self) -> list[Mixture]:
        """Return the clusters of ``labels_``, then those of draws, as mixtures."""
        return unpack(
            Packed(
                self.mixture_statistics_,
                self.mixture_weights_,
                self.mixture_hyper_,
                self.mixture_starts_,
            )
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tag_table(tags, self.model)
        return tags


def schedule_of(estimator: Any) -> Schedule:
    """Validate ``n_sweeps``, ``burn_in`` and ``thin``, and return the schedule."""
    check_counts(estimator, "n_chains", "n_sweeps", "thin")
    n_sweeps, thin = estimator.n_sweeps, estimator.thin
    burn_in = n_sweeps // 2 if estimator.burn_in is None else estimator.burn_in
    _check_burn_in(burn_in, n_sweeps, thin)
    return Schedule(n_sweeps, int(burn_in), thin)


def schedule_until_agreed(estimator: Any) -> Schedule:
    """Validate ``burn_in`` and ``thin``; return the schedule of chains that run until they agree.

    Convergence is tested at a geometric sequence of numbers of sweeps.
    """
    check_counts(estimator, "n_chains", "thin")
    thin, most, halve = estimator.thin, most_sweeps(estimator), estimator.burn_in is None
    burn_in = most // 2 if halve else estimator.burn_in
    _check_burn_in(burn_in, most, thin)
    test_sweep = max(TUNING.first_test, 8 * thin, 0 if halve else 2 * int(burn_in))
    test_sweeps = []
    while test_sweep < most and estimator.n_chains > 1:
        test_sweeps.append(test_sweep)
        test_sweep = int(TUNING.test_growth * test_sweep)
    return Schedule(most, int(burn_in), thin, tuple(test_sweeps), halve)


def most_sweeps(estimator: Any) -> int:
    """Return the largest number of sweeps of a chain of an estimator."""
    if estimator.n_sweeps != "auto":
        return estimator.n_sweeps
    return TUNING.most_sweeps if estimator.n_chains > 1 else TUNING.single_chain_sweeps


def _check_burn_in(burn_in: Any, n_sweeps: int, thin: int) -> None:
    if not isinstance(burn_in, Integral) or not 0 <= int(burn_in) <= n_sweeps - thin:
        raise ValueError(
            f"burn_in must leave a sweep of n_sweeps={n_sweeps} with thin={thin}; got {burn_in!r}"
        )


def chains_agree(
    draws: Sequence[Sequence[Any]], parameters_of: ParametersOf = parameters_of
) -> bool:
    """Return whether R-hat is low for k, the log joint density and the prior's parameters."""
    log_joint = np.array([[draw.log_joint for draw in chain] for chain in draws])
    n_clusters = np.array([[draw.labels.max() for draw in chain] for chain in draws])
    numbers = [n_clusters, log_joint, *parameters_of(draws).values()]
    return all(diagnose(each).r_hat <= TUNING.highest_r_hat for each in numbers)


def as_prior(name: str, prior: Any) -> PartitionPrior:
    """Validate a prior; None is a Dirichlet process with a prior on its concentration."""
    if prior is None:
        return DirichletProcess(Gamma(1.0, 1.0))
    if not isinstance(prior, PartitionPrior):
        raise ValueError(f"{name} must be None or one of countless.priors; got {prior!r}")
    return prior


def posterior_of(
    draws: Sequence[Sequence[Any]], thin: int, parameters_of: ParametersOf = parameters_of
) -> Posterior:
    """Return the draws of chains, of partitions and parameters of their prior, as a Posterior."""
    return Posterior(
        [[draw.labels for draw in chain] for chain in draws],
        [[draw.log_joint for draw in chain] for chain in draws],
        parameters_of(draws),
        thin=thin,
    )


def averaged(draws: Sequence[Any]) -> list[Any]:
    """Return the draws that predictive densities are averaged over, evenly spaced."""
    places = (
        np.linspace(0, len(draws) - 1, min(TUNING.averaged_draws, len(draws))).round().astype(int)
    )
    return [draws[place] for place in places]
