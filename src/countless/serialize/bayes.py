"""Serializers of estimators with a component model: sampled mixtures and Bayesian trees."""

from typing import Any

import numpy as np

from .._registry import ESTIMATORS, Estimator
from .serializer import (
    RAN,
    Serializer,
    State,
    check_coordinates,
    check_groups,
    check_mixing,
    restore_attributes,
    sizes_of,
)

_MODEL = {"model_table_": "f", "model_hyper_": "f"}
_LEVELS = {"model_levels_": list}
_MIXTURES = {
    "mixture_statistics_": "f",
    "mixture_weights_": "f",
    "mixture_hyper_": "f",
    "mixture_starts_": "i",
}


def _model_of(estimator: Any, state: State) -> Any:
    from ..models.saved import PackedModel, unpack_model

    packed = (state[f"model_{part}_"] for part in PackedModel._fields)
    return unpack_model(estimator.model, PackedModel(*packed))


def _check_mixtures(estimator: Any, state: State, weights: str = "k") -> int:
    shapes = {"model_table_": "rd", "model_hyper_": "h", "mixture_hyper_": "mh"}
    sizes = sizes_of(state, shapes | {"mixture_statistics_": "kw", "mixture_weights_": weights})
    model = _model_of(estimator, state)
    if model.width != sizes["w"]:
        raise ValueError("its mixture_statistics_ are not those of its model")
    starts = state["mixture_starts_"]
    ends = starts.shape == (sizes["m"] + 1,) and (starts[0], starts[-1]) == (0, sizes["k"])
    if not ends or (np.diff(starts) < 2).any():  # at least one cluster and a new one
        raise ValueError("its mixture_starts_ are not where mixtures begin")
    check_mixing("mixture_weights_", state["mixture_weights_"], starts)
    for first, last, hyper in zip(starts[:-1], starts[1:], state["mixture_hyper_"], strict=True):
        model.hyper.check(hyper)
        own = state["mixture_statistics_"][first:last]
        if own[-1].any() or not np.isfinite(model.with_hyper(hyper).log_marginal(own)).all():
            raise ValueError("its mixture_statistics_ are not those of rows")
    return sizes["d"]


def _check_shared_mixtures(estimator: Any, state: State) -> int:
    n_columns = _check_mixtures(estimator, state, weights="kg")
    shapes = {"groups_": "j", "n_local_clusters_": "j", "group_clusters_": "jk", "weights_": "k"}
    sizes = sizes_of(state, shapes | {"group_weights_": "jk"})
    check_groups(state)
    if state["mixture_weights_"].shape[1] != sizes["j"] + 1:
        raise ValueError("its mixture_weights_ are not those of its groups_")
    if state["mixture_starts_"][1] != sizes["k"] + 1:
        raise ValueError("its group_clusters_ are not those of its first mixture")
    return n_columns


def _check_tree(estimator: Any, state: State) -> int:
    shapes = {"model_table_": "rd", "model_hyper_": "h", "node_shares_": "mk"}
    sizes = sizes_of(state, shapes | {"node_statistics_": "mw", "node_weights_": "m"})
    if _model_of(estimator, state).width != sizes["w"]:
        raise ValueError("its node_statistics_ are not those of its model")
    if not (state["node_weights_"] > 0).all() or not state["node_shares_"][1:].any(axis=1).all():
        raise ValueError("its node_weights_ or node_shares_ leave a node without weight")
    sizes_of(state, {"children_": "le", "linkage_matrix_": "lf", "log_merge_odds_": "l"})
    return sizes["d"]


def _restore_model(estimator: Any, state: State) -> None:
    restore_attributes(estimator, state)
    estimator.model_ = _model_of(estimator, state)
    estimator.n_features_in_ = state["model_table_"].shape[1]


def _restore_mixtures(estimator: Any, state: State) -> None:
    _restore_model(estimator, state)
    estimator.n_clusters_ = int(state["mixture_starts_"][1]) - 1


def _restore_tree(estimator: Any, state: State) -> None:
    _restore_model(estimator, state)
    estimator.n_clusters_ = state["node_shares_"].shape[1]


def _example(estimator: Any) -> Any:
    """Return one row, at the origins of the model's columns."""
    return estimator.model_.table(np.zeros((1, estimator.n_features_in_)))


def _collect_merged(estimator: Any) -> State:
    mixture = estimator.mixture_
    state = {name: getattr(mixture, name) for name in (*_MODEL, *_MIXTURES, *_LEVELS)}
    return state | {name: getattr(estimator, name) for name in (*_PROJECTION, *RAN)}


def _check_merged(estimator: Any, state: State) -> int:
    from ..dp_mixture import DPMixture

    n_projected = _check_mixtures(DPMixture(), state)
    shapes = {"mean_": "d", "components_": "pd", "groups_": "k"}
    sizes = sizes_of(state, shapes)
    groups = np.unique(state["groups_"])
    if sizes["k"] != state["mixture_starts_"][1] - 1:
        raise ValueError("its groups_ are not those of its first mixture")
    check_coordinates(state, "mean_", "components_")
    if sizes["p"] != n_projected or not np.array_equal(groups, np.arange(len(groups))):
        raise ValueError("its groups_ or components_ do not fit its mixture")
    return sizes["d"]


def _restore_merged(estimator: Any, state: State) -> None:
    from ..dp_mixture import DPMixture

    own = (*_PROJECTION, *RAN)
    mixture = DPMixture(inference="map")
    _restore_mixtures(mixture, {name: state[name] for name in state if name not in _PROJECTION})
    restore_attributes(estimator, {name: state[name] for name in own})
    estimator.mixture_ = mixture
    estimator.n_clusters_ = int(state["groups_"].max()) + 1
    estimator.n_features_in_ = len(state["mean_"])


_PROJECTION = {"groups_": "i", "mean_": "f", "components_": "f"}

BAYES = (
    Serializer(
        Estimator("MergedMixture", "countless._auto.merged"),
        {**_MODEL, **_MIXTURES, **_PROJECTION},
        {**_LEVELS, **RAN},
        _check_merged,
        _restore_merged,
        lambda estimator: estimator.mean_[None],
        _collect_merged,
    ),
    Serializer(
        ESTIMATORS["DPMixture"],
        {**_MODEL, **_MIXTURES},
        {**_LEVELS, **RAN},
        _check_mixtures,
        _restore_mixtures,
        _example,
    ),
    Serializer(
        ESTIMATORS["HDPMixture"],
        {
            **_MODEL,
            **_MIXTURES,
            "groups_": "Uiubf",
            "n_local_clusters_": "i",
            "group_clusters_": "b",
            "group_weights_": "f",
            "weights_": "f",
        },
        {**_LEVELS, **RAN},
        _check_shared_mixtures,
        _restore_mixtures,
        _example,
    ),
    Serializer(
        ESTIMATORS["BayesianHierarchicalClustering"],
        {
            **_MODEL,
            "node_statistics_": "f",
            "node_weights_": "f",
            "node_shares_": "f",
            "children_": "i",
            "linkage_matrix_": "f",
            "log_merge_odds_": "f",
        },
        {"alpha_": float, "log_evidence_": float, **_LEVELS, **RAN},
        _check_tree,
        _restore_tree,
        _example,
    ),
)
