"""Serializers of estimators of one clustering: small-variance limits, exemplars and trees."""

from typing import Any

import numpy as np

from .._registry import ESTIMATORS, Estimator
from .serializer import (
    LAYERS,
    RAN,
    NearestCenters,
    Serializer,
    State,
    check_coordinates,
    check_groups,
    check_labels,
    first_and_last,
    restore_attributes,
    restore_centers,
    sizes_of,
)

_CENTERS = {"cluster_centers_": "f", "objective_history_": "f"}
_GROUPS = {"group_clusters_": "b", "groups_": "Uiubf", "n_local_clusters_": "i"}
_KERNEL = {
    "X_fit_": "f",
    "labels_": "i",
    "row_weights_": "f",
    "center_norms_": "f",
    "cluster_weights_": "f",
    "objective_history_": "f",
}
_PRICE = {"penalty_": float, "objective_": float}
_PRICES = {"local_penalty_": float, "global_penalty_": float, "objective_": float}


def _check_dp_means(estimator: Any, state: State) -> int:
    from ..divergences import get_divergence

    get_divergence(estimator.divergence)
    shapes = {"cluster_centers_": "kd", "cluster_ids_": "k", "cluster_weights_": "k"}
    sizes = sizes_of(state, shapes | {"objective_history_": "i"})
    check_coordinates(state, "cluster_centers_")
    ids = state["cluster_ids_"]
    if (ids < 0).any() or len(np.unique(ids)) < len(ids):
        raise ValueError("its cluster_ids_ are not different numbers from 0 up")
    if (state["cluster_weights_"] < 0).any():
        raise ValueError("its cluster_weights_ are negative")
    price = state["background_price_"]
    if price.ndim != 1 or len(price) > 1 or (price < 0).any():
        raise ValueError("its background_price_ is not one number from 0 up, or none")
    return sizes["d"]


def _collect_dp_means(estimator: Any) -> State:
    """Return the state; the price is an array of one, or empty where there is no background."""
    price = np.array([estimator.background_price_])
    names = ("cluster_centers_", "objective_history_", "cluster_ids_", "cluster_weights_")
    state: State = {
        name: getattr(estimator, name) for name in (*names, "penalty_", "objective_", *RAN)
    }
    return state | {"background_price_": price[np.isfinite(price)]}


def _restore_dp_means(estimator: Any, state: State) -> None:
    price = state["background_price_"]
    state = state | {"background_price_": float(price[0]) if len(price) else np.inf}
    restore_centers(estimator, state)


def _centers_of_dp_means(estimator: Any) -> NearestCenters:
    return NearestCenters(
        estimator.cluster_centers_,
        estimator.cluster_ids_,
        estimator.divergence,
        estimator.background_price_,
    )


def _check_hdp_means(estimator: Any, state: State) -> int:
    shapes = {"cluster_centers_": "kd", "group_clusters_": "jk", "groups_": "j"}
    sizes = sizes_of(state, shapes | {"n_local_clusters_": "j", "objective_history_": "i"})
    check_coordinates(state, "cluster_centers_")
    check_groups(state)
    return sizes["d"]


def _centers_of_hdp_means(estimator: Any) -> NearestCenters:
    """Return the rule for rows without a group."""
    return NearestCenters(estimator.cluster_centers_, np.arange(estimator.n_clusters_))


def _check_kernel(estimator: Any, state: State) -> int:
    from .._search.kernel.matrix import KernelFunction

    KernelFunction(estimator.kernel, {})  # rejects unknown kernels
    shapes = {"X_fit_": "nd", "labels_": "n", "row_weights_": "n"}
    sizes = sizes_of(state, shapes | {"center_norms_": "k", "cluster_weights_": "k"})
    check_coordinates(state, "X_fit_")
    labels, weight = state["labels_"], state["row_weights_"]
    check_labels(labels, sizes["k"])
    if (weight < 0).any() or not np.bincount(labels, weight, minlength=sizes["k"]).all():
        raise ValueError("its row_weights_ leave a cluster without weight")
    return sizes["d"]


def _check_kernel_hdp(estimator: Any, state: State) -> int:
    shapes = {"center_norms_": "k", "group_clusters_": "jk", "groups_": "j"}
    sizes_of(state, shapes | {"n_local_clusters_": "j"})
    check_groups(state)
    return _check_kernel(estimator, state)


def _check_spectral(estimator: Any, state: State) -> int:
    from .._spectral.affinity import NEIGHBORS

    sizes = sizes_of(state, {"X_fit_": "nd", "labels_": "n"})
    if state["eigenvalues_"].size:
        shapes = {"eigenvectors_": "nm", "eigenvalues_": "m", "cluster_centers_": "km"}
        k = sizes_of(state, {"X_fit_": "nd"} | shapes)["k"]
    else:
        k = 1
        vectors, centers = state["eigenvectors_"].shape, state["cluster_centers_"].shape
        if (vectors, centers) != ((sizes["n"], 0), (1, 0)):
            raise ValueError("it has no eigenvalues_, but eigenvectors_ or cluster_centers_")
    if estimator.kernel != NEIGHBORS:  # neighbors exist at any scale
        check_coordinates(state, "X_fit_")
    check_labels(state["labels_"], k)
    return sizes["d"]


def _check_exemplars(estimator: Any, state: State) -> int:
    shapes = {"cluster_centers_": "kd", "cluster_centers_indices_": "k", "cluster_sizes_": "k"}
    sizes = sizes_of(state, shapes)
    check_coordinates(state, "cluster_centers_")
    if (state["cluster_sizes_"] < 1).any():
        raise ValueError("its cluster_sizes_ have a cluster without rows")
    return sizes["d"]


def _check_tree(estimator: Any, state: State) -> int:
    from ..dissimilarity.pairs import METRICS

    sizes = sizes_of(state, {"X_fit_": "nd", "labels_": "n", "column_weights_": "d"})
    if state["linkage_matrix_"].shape != (sizes["n"] - 1, 4):
        raise ValueError("its linkage_matrix_ is not a tree of its rows")
    check_coordinates(state, "X_fit_", "column_weights_")
    if estimator.metric not in METRICS:
        raise ValueError(f"its metric {estimator.metric!r} is unknown")
    labels, weight = state["labels_"], state["column_weights_"]
    if labels.min() < 0 or labels.max() >= sizes["n"] or not np.bincount(labels).all():
        raise ValueError("its labels_ are not numbers of clusters")
    if (weight < 0).any() or not weight.any():
        raise ValueError("its column_weights_ leave no column")
    return sizes["d"]


def _check_linked(estimator: Any, state: State) -> int:
    sizes = sizes_of(state, {"X_fit_": "nd", "labels_": "n"})
    check_coordinates(state, "X_fit_")
    labels = state["labels_"]
    if labels.min() < 0 or labels.max() >= sizes["n"] or not np.bincount(labels).all():
        raise ValueError("its labels_ are not numbers of clusters")
    return sizes["d"]


def _restore_tree(estimator: Any, state: State) -> None:
    restore_attributes(estimator, state)
    estimator.n_clusters_ = int(state["labels_"].max()) + 1
    estimator.n_features_in_ = state["X_fit_"].shape[1]


def _restore_kernel(estimator: Any, state: State) -> None:
    restore_attributes(estimator, state)
    estimator.n_clusters_ = len(state["center_norms_"])
    estimator.n_features_in_ = state["X_fit_"].shape[1]


def _restore_spectral(estimator: Any, state: State) -> None:
    restore_attributes(estimator, state)
    estimator.n_clusters_ = len(state["cluster_centers_"])
    estimator.n_features_in_ = state["X_fit_"].shape[1]


HARD = (
    Serializer(
        Estimator("NeighborCommunities", "countless._auto.linked"),
        {"X_fit_": "f", "labels_": "i"},
        {"resolution_": float, "excess_": float, **RAN},
        _check_linked,
        _restore_tree,
        first_and_last("X_fit_"),
    ),
    Serializer(
        ESTIMATORS["DPMeans"],
        {**_CENTERS, "cluster_ids_": "i", "cluster_weights_": "f", "background_price_": "f"},
        {**_PRICE, **LAYERS, **RAN},
        _check_dp_means,
        _restore_dp_means,
        first_and_last("cluster_centers_"),
        _collect_dp_means,
        centers=_centers_of_dp_means,
    ),
    Serializer(
        ESTIMATORS["HDPMeans"],
        {**_CENTERS, **_GROUPS},
        {**_PRICES, **RAN},
        _check_hdp_means,
        restore_centers,
        first_and_last("cluster_centers_"),
        centers=_centers_of_hdp_means,
    ),
    Serializer(
        ESTIMATORS["KernelDPMeans"],
        _KERNEL,
        {"gamma_": float, **_PRICE, **LAYERS, **RAN},
        _check_kernel,
        _restore_kernel,
        first_and_last("X_fit_"),
    ),
    Serializer(
        ESTIMATORS["KernelHDPMeans"],
        {**_KERNEL, **_GROUPS},
        {"gamma_": float, **_PRICES, **RAN},
        _check_kernel_hdp,
        _restore_kernel,
        first_and_last("X_fit_"),
    ),
    Serializer(
        ESTIMATORS["SpectralDPMeans"],
        {
            "X_fit_": "f",
            "labels_": "i",
            "eigenvalues_": "f",
            "eigenvectors_": "f",
            "cluster_centers_": "f",
        },
        {"largest_degree_": float, **_PRICE, **LAYERS, **RAN},
        _check_spectral,
        _restore_spectral,
        first_and_last("X_fit_"),
    ),
    Serializer(
        ESTIMATORS["AffinityPropagation"],
        {"cluster_centers_": "f", "cluster_centers_indices_": "i", "cluster_sizes_": "i"},
        {"log_joint_": float, "damping_": float, **LAYERS, **RAN},
        _check_exemplars,
        restore_centers,
        first_and_last("cluster_centers_"),
    ),
    *(
        Serializer(
            ESTIMATORS[name],
            {"X_fit_": "f", "labels_": "i", "column_weights_": "f", "linkage_matrix_": "f"},
            LAYERS | RAN,
            _check_tree,
            _restore_tree,
            first_and_last("X_fit_"),
        )
        for name in ("DivisiveClustering", "LinkageClustering")
    ),
)
