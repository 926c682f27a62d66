"""The estimators that a model file can hold: their state, its shapes, and how it is put back."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]

_COVARIANCE_SHAPES = {"full": "kdd", "tied": "dd", "diag": "kd", "spherical": "k"}


class Kind(NamedTuple):
    """One estimator class: what of its fitted state is saved.

    ``arrays`` gives the NumPy kind letters of each array, ``values`` the type of each plain value.
    ``check`` raises ValueError for arrays or parameters that do not fit together, and returns the
    number of columns the model expects; ``restore`` puts the state into a new estimator.
    """

    module: str
    class_name: str
    arrays: dict[str, str]
    values: dict[str, type]
    check: Callable[[Any, Arrays], int]
    restore: Callable[[Any, Arrays, dict[str, Any]], None]

    def load(self) -> type:
        """Import the class."""
        return getattr(import_module(self.module), self.class_name)


def kind_of(estimator: Any) -> Kind | None:
    """Return the kind of an estimator, or None when its state cannot be saved.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> kind_of(KMeans()).class_name
    'KMeans'
    """
    kind = KINDS.get(type(estimator).__name__)
    if kind is None or type(estimator) is not kind.load():
        return None
    state = vars(estimator)
    plain = all(
        isinstance(state[name], np.ndarray) and state[name].dtype.kind in letters
        for name, letters in kind.arrays.items()
        if name in state
    )
    return kind if plain else None


def _sizes(arrays: Arrays, shapes: dict[str, str]) -> dict[str, int]:
    """Return what the letters of the shapes stand for; raise where two arrays disagree."""
    sizes: dict[str, int] = {}
    for name, letters in shapes.items():
        shape = arrays[name].shape
        if len(shape) != len(letters):
            raise ValueError(f"its {name} has {len(shape)} dimensions, expected {len(letters)}")
        for letter, length in zip(letters, shape, strict=True):
            if length < 1 or sizes.setdefault(letter, length) != length:
                raise ValueError(f"the shape {shape} of its {name} does not fit")
    return sizes


def _check_centers(estimator: Any, arrays: Arrays) -> int:
    return _sizes(arrays, {"cluster_centers_": "kd"})["d"]


def _check_dp_means(estimator: Any, arrays: Arrays) -> int:
    from ..hard.divergence import get_divergence

    get_divergence(estimator.divergence)
    shapes = {"cluster_centers_": "kd", "cluster_ids_": "k", "cluster_weights_": "k"}
    sizes = _sizes(arrays, shapes | {"objective_history_": "i"})
    ids = arrays["cluster_ids_"]
    if (ids < 0).any() or len(np.unique(ids)) < len(ids):
        raise ValueError("its cluster_ids_ are not different numbers from 0 up")
    if (arrays["cluster_weights_"] < 0).any():
        raise ValueError("its cluster_weights_ are negative")
    return sizes["d"]


def _check_kernel(estimator: Any, arrays: Arrays) -> int:
    from ..hard.kernel.matrix import KernelFunction

    KernelFunction(estimator.kernel, {})  # refuses what it does not know
    shapes = {"X_fit_": "nd", "labels_": "n", "row_weights_": "n"}
    sizes = _sizes(arrays, shapes | {"center_norms_": "k", "cluster_weights_": "k"})
    labels, weight = arrays["labels_"], arrays["row_weights_"]
    if (labels < 0).any() or (labels >= sizes["k"]).any():
        raise ValueError("its labels_ name clusters that it does not have")
    if (weight < 0).any() or not np.bincount(labels, weight, minlength=sizes["k"]).all():
        raise ValueError("its row_weights_ leave a cluster without weight")
    return sizes["d"]


def _check_hdp_means(estimator: Any, arrays: Arrays) -> int:
    shapes = {"cluster_centers_": "kd", "group_clusters_": "jk", "groups_": "j"}
    sizes = _sizes(arrays, shapes | {"n_local_clusters_": "j", "objective_history_": "i"})
    if len(np.unique(arrays["groups_"])) < sizes["j"]:
        raise ValueError("its groups_ are not all different")
    return sizes["d"]


def _check_kernel_hdp(estimator: Any, arrays: Arrays) -> int:
    shapes = {"center_norms_": "k", "group_clusters_": "jk", "groups_": "j"}
    sizes = _sizes(arrays, shapes | {"n_local_clusters_": "j"})
    if len(np.unique(arrays["groups_"])) < sizes["j"]:
        raise ValueError("its groups_ are not all different")
    return _check_kernel(estimator, arrays)


def _check_spectral(estimator: Any, arrays: Arrays) -> int:
    shapes = {"X_fit_": "nd", "labels_": "n"}
    if arrays["eigenvalues_"].size:
        shapes |= {"eigenvectors_": "nm", "eigenvalues_": "m", "cluster_centers_": "km"}
    return _sizes(arrays, shapes)["d"]


def _check_mixture(estimator: Any, arrays: Arrays) -> int:
    shape = _COVARIANCE_SHAPES.get(estimator.covariance_type)
    if shape is None:
        raise ValueError(f"its covariance_type {estimator.covariance_type!r} is unknown")
    shapes = {"weights_": "k", "means_": "kd", "covariances_": shape, "precisions_cholesky_": shape}
    sizes = _sizes(arrays, shapes)
    if (arrays["weights_"] < 0).any():
        raise ValueError("its weights_ are negative")
    return sizes["d"]


def _check_hdp_mixture(estimator: Any, arrays: Arrays) -> int:
    n_columns = _check_dp_mixture(estimator, arrays, weights="kg")
    shapes = {"groups_": "j", "n_local_clusters_": "j", "group_clusters_": "jk", "weights_": "k"}
    sizes = _sizes(arrays, shapes | {"group_weights_": "jk"})
    if len(np.unique(arrays["groups_"])) < sizes["j"]:
        raise ValueError("its groups_ are not all different")
    if arrays["mixture_weights_"].shape[1] != sizes["j"] + 1:
        raise ValueError("its mixture_weights_ are not those of its groups_")
    if arrays["mixture_starts_"][1] != sizes["k"] + 1:
        raise ValueError("its group_clusters_ are not those of its first mixture")
    return n_columns


def _check_bhc(estimator: Any, arrays: Arrays) -> int:
    from ..models.saved import unpack_model

    shapes = {"model_table_": "rd", "model_hyper_": "h", "node_shares_": "mk"}
    sizes = _sizes(arrays, shapes | {"node_statistics_": "mw", "node_weights_": "m"})
    model = unpack_model(estimator.model, arrays["model_table_"], arrays["model_hyper_"])
    if model.width != sizes["w"]:
        raise ValueError("its node_statistics_ are not those of its model")
    if not (arrays["node_weights_"] > 0).all() or not arrays["node_shares_"][1:].any(axis=1).all():
        raise ValueError("its node_weights_ or node_shares_ leave a node without weight")
    _sizes(arrays, {"children_": "le", "linkage_matrix_": "lf", "log_merge_odds_": "l"})
    return sizes["d"]


def _check_dp_mixture(estimator: Any, arrays: Arrays, weights: str = "k") -> int:
    from ..models.saved import unpack_model

    shapes = {"model_table_": "rd", "model_hyper_": "h", "mixture_hyper_": "mh"}
    sizes = _sizes(arrays, shapes | {"mixture_statistics_": "kw", "mixture_weights_": weights})
    model = unpack_model(estimator.model, arrays["model_table_"], arrays["model_hyper_"])
    if model.width != sizes["w"]:
        raise ValueError("its mixture_statistics_ are not those of its model")
    starts = arrays["mixture_starts_"]
    ends = starts.shape == (sizes["m"] + 1,) and (starts[0], starts[-1]) == (0, sizes["k"])
    if not ends or (np.diff(starts) < 2).any():  # a cluster and a new one at least
        raise ValueError("its mixture_starts_ are not where mixtures begin")
    if (arrays["mixture_weights_"] < 0).any():
        raise ValueError("its mixture_weights_ are negative")
    return sizes["d"]


def _check_exemplars(estimator: Any, arrays: Arrays) -> int:
    shapes = {"cluster_centers_": "kd", "cluster_centers_indices_": "k", "cluster_sizes_": "k"}
    sizes = _sizes(arrays, shapes)
    if (arrays["cluster_sizes_"] < 1).any():
        raise ValueError("its cluster_sizes_ have a cluster without rows")
    return sizes["d"]


def _restore_attributes(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    for name, value in {**arrays, **values}.items():
        setattr(estimator, name, value)


def _restore_dp_means(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    _restore_attributes(estimator, arrays, values)
    estimator.n_clusters_, estimator.n_features_in_ = arrays["cluster_centers_"].shape


def _restore_kernel(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    _restore_attributes(estimator, arrays, values)
    estimator.n_clusters_ = len(arrays["center_norms_"])
    estimator.n_features_in_ = arrays["X_fit_"].shape[1]


def _restore_spectral(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    _restore_attributes(estimator, arrays, values)
    estimator.n_clusters_ = len(arrays["cluster_centers_"])
    estimator.n_features_in_ = arrays["X_fit_"].shape[1]


def _restore_k_means(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    # Fitting the centers to themselves makes scikit-learn set up whatever it keeps privately.
    centers = arrays["cluster_centers_"]
    parameters = estimator.get_params(deep=False)
    estimator.set_params(n_clusters=len(centers), init=centers, n_init=1, max_iter=1).fit(centers)
    del estimator.labels_
    estimator.set_params(**parameters)
    _restore_attributes(estimator, arrays, values)


def _restore_mixture(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    _restore_attributes(estimator, arrays, values)
    estimator.n_features_in_ = arrays["means_"].shape[1]


def _restore_dp_mixture(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    from ..models.saved import unpack_model

    _restore_attributes(estimator, arrays, values)
    estimator.model_ = unpack_model(estimator.model, estimator.model_table_, estimator.model_hyper_)
    estimator.n_clusters_ = int(arrays["mixture_starts_"][1]) - 1
    estimator.n_features_in_ = arrays["model_table_"].shape[1]


def _restore_bhc(estimator: Any, arrays: Arrays, values: dict[str, Any]) -> None:
    from ..models.saved import unpack_model

    _restore_attributes(estimator, arrays, values)
    estimator.model_ = unpack_model(estimator.model, estimator.model_table_, estimator.model_hyper_)
    estimator.n_clusters_ = arrays["node_shares_"].shape[1]
    estimator.n_features_in_ = arrays["model_table_"].shape[1]


KINDS = {
    kind.class_name: kind
    for kind in (
        Kind(
            "countless.hard.dp_means",
            "DPMeans",
            {
                "cluster_centers_": "f",
                "cluster_ids_": "i",
                "cluster_weights_": "f",
                "objective_history_": "f",
            },
            {"penalty_": float, "objective_": float, "n_iter_": int, "converged_": bool},
            _check_dp_means,
            _restore_dp_means,
        ),
        Kind(
            "countless.hard.hdp.estimator",
            "HDPMeans",
            {
                "cluster_centers_": "f",
                "group_clusters_": "b",
                "groups_": "Uiubf",
                "n_local_clusters_": "i",
                "objective_history_": "f",
            },
            {
                "local_penalty_": float,
                "global_penalty_": float,
                "objective_": float,
                "n_iter_": int,
                "converged_": bool,
            },
            _check_hdp_means,
            _restore_dp_means,
        ),
        Kind(
            "countless.hard.kernel.dp",
            "KernelDPMeans",
            {
                "X_fit_": "f",
                "labels_": "i",
                "row_weights_": "f",
                "center_norms_": "f",
                "cluster_weights_": "f",
                "objective_history_": "f",
            },
            {
                "gamma_": float,
                "penalty_": float,
                "objective_": float,
                "n_iter_": int,
                "converged_": bool,
            },
            _check_kernel,
            _restore_kernel,
        ),
        Kind(
            "countless.hard.kernel.hdp",
            "KernelHDPMeans",
            {
                "X_fit_": "f",
                "labels_": "i",
                "row_weights_": "f",
                "center_norms_": "f",
                "cluster_weights_": "f",
                "group_clusters_": "b",
                "groups_": "Uiubf",
                "n_local_clusters_": "i",
                "objective_history_": "f",
            },
            {
                "gamma_": float,
                "local_penalty_": float,
                "global_penalty_": float,
                "objective_": float,
                "n_iter_": int,
                "converged_": bool,
            },
            _check_kernel_hdp,
            _restore_kernel,
        ),
        Kind(
            "countless.hard.spectral.estimator",
            "SpectralDPMeans",
            {
                "X_fit_": "f",
                "labels_": "i",
                "eigenvalues_": "f",
                "eigenvectors_": "f",
                "cluster_centers_": "f",
            },
            {
                "largest_degree_": float,
                "penalty_": float,
                "objective_": float,
                "n_iter_": int,
                "converged_": bool,
            },
            _check_spectral,
            _restore_spectral,
        ),
        Kind(
            "countless.tree.bhc",
            "BayesianHierarchicalClustering",
            {
                "model_table_": "f",
                "model_hyper_": "f",
                "node_statistics_": "f",
                "node_weights_": "f",
                "node_shares_": "f",
                "children_": "i",
                "linkage_matrix_": "f",
                "log_merge_odds_": "f",
            },
            {"alpha_": float, "log_evidence_": float, "n_iter_": int, "converged_": bool},
            _check_bhc,
            _restore_bhc,
        ),
        Kind(
            "countless.bayes.mixture",
            "DPMixture",
            {
                "model_table_": "f",
                "model_hyper_": "f",
                "mixture_statistics_": "f",
                "mixture_weights_": "f",
                "mixture_hyper_": "f",
                "mixture_starts_": "i",
            },
            {"n_iter_": int, "converged_": bool},
            _check_dp_mixture,
            _restore_dp_mixture,
        ),
        Kind(
            "countless.bayes.hdp",
            "HDPMixture",
            {
                "model_table_": "f",
                "model_hyper_": "f",
                "mixture_statistics_": "f",
                "mixture_weights_": "f",
                "mixture_hyper_": "f",
                "mixture_starts_": "i",
                "groups_": "Uiubf",
                "n_local_clusters_": "i",
                "group_clusters_": "b",
                "group_weights_": "f",
                "weights_": "f",
            },
            {"n_iter_": int, "converged_": bool},
            _check_hdp_mixture,
            _restore_dp_mixture,
        ),
        Kind(
            "countless.exemplar.estimator",
            "AffinityPropagation",
            {"cluster_centers_": "f", "cluster_centers_indices_": "i", "cluster_sizes_": "i"},
            {"log_joint_": float, "damping_": float, "n_iter_": int, "converged_": bool},
            _check_exemplars,
            _restore_dp_means,
        ),
        Kind(
            "sklearn.cluster",
            "KMeans",
            {"cluster_centers_": "f"},
            {"inertia_": float, "n_iter_": int},
            _check_centers,
            _restore_k_means,
        ),
        Kind(
            "sklearn.mixture",
            "GaussianMixture",
            dict.fromkeys(("weights_", "means_", "covariances_", "precisions_cholesky_"), "f"),
            {"converged_": bool, "n_iter_": int, "lower_bound_": float},
            _check_mixture,
            _restore_mixture,
        ),
    )
}
