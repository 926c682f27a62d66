"""Serializers of baselines: scikit-learn's estimators, and k-medoids."""

from typing import Any

import numpy as np

from ..baselines import BASELINES
from .serializer import (
    NearestCenters,
    Serializer,
    State,
    check_coordinates,
    first_and_last,
    restore_attributes,
    restore_centers,
    sizes_of,
)

_COVARIANCE_SHAPES = {"full": "kdd", "tied": "dd", "diag": "kd", "spherical": "k"}


def _check_k_means(estimator: Any, state: State) -> int:
    check_coordinates(state, "cluster_centers_")
    return sizes_of(state, {"cluster_centers_": "kd"})["d"]


def _check_mixture(estimator: Any, state: State) -> int:
    shape = _COVARIANCE_SHAPES.get(estimator.covariance_type)
    if shape is None:
        raise ValueError(f"its covariance_type {estimator.covariance_type!r} is unknown")
    shapes = {"weights_": "k", "means_": "kd", "covariances_": shape, "precisions_cholesky_": shape}
    sizes = sizes_of(state, shapes)
    check_coordinates(state, "means_")
    weights, covariances = state["weights_"], state["covariances_"]
    if (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
        raise ValueError("its weights_ are not probabilities")
    if shape.endswith("dd"):
        if not np.allclose(covariances, np.swapaxes(covariances, -1, -2)):
            raise ValueError("its covariances_ are not symmetric")
        np.linalg.cholesky(covariances)  # raises where one is not positive definite
    elif not (covariances > 0).all():
        raise ValueError("its covariances_ are not positive")
    return sizes["d"]


def _restore_k_means(estimator: Any, state: State) -> None:
    # Fitting the centers to themselves makes scikit-learn set its private attributes.
    centers = state["cluster_centers_"]
    parameters = estimator.get_params(deep=False)
    estimator.set_params(n_clusters=len(centers), init=centers, n_init=1, max_iter=1, verbose=0)
    estimator.fit(centers)
    del estimator.labels_
    estimator.set_params(**parameters)
    restore_attributes(estimator, state)


def _restore_mixture(estimator: Any, state: State) -> None:
    restore_attributes(estimator, state)
    estimator.n_features_in_ = state["means_"].shape[1]


OF_BASELINES = (
    Serializer(
        BASELINES["k-medoids"].estimator,
        {"cluster_centers_": "f"},
        {"inertia_": float, "n_iter_": int},
        _check_k_means,
        restore_centers,
        first_and_last("cluster_centers_"),
    ),
    Serializer(
        BASELINES["k-means"].estimator,
        {"cluster_centers_": "f"},
        {"inertia_": float, "n_iter_": int},
        _check_k_means,
        _restore_k_means,
        first_and_last("cluster_centers_"),
        centers=lambda estimator: NearestCenters(
            estimator.cluster_centers_, np.arange(len(estimator.cluster_centers_))
        ),
    ),
    Serializer(
        BASELINES["gaussian-mixture"].estimator,
        dict.fromkeys(("weights_", "means_", "covariances_", "precisions_cholesky_"), "f"),
        {"converged_": bool, "n_iter_": int, "lower_bound_": float},
        _check_mixture,
        _restore_mixture,
        first_and_last("means_"),
    ),
)
