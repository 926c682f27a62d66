"""Serializers of estimators of unprocessed tables: CrossCat and DPBiclustering."""

from typing import Any

import numpy as np

from .._registry import ESTIMATORS
from .serializer import RAN, Serializer, State, restore_attributes, sizes_of


def _collect(estimator: Any) -> State:
    from .._mcmc.crosscat.predictive_state import pack

    ran = {name: getattr(estimator, name) for name in RAN}
    return (
        pack(estimator.predictive_state())
        | ran
        | {"named": hasattr(estimator, "feature_names_in_")}
    )


def _check(estimator: Any, state: State) -> int:
    from .._mcmc.crosscat.predictive_state import unpack

    return len(unpack(state).names)


def _restore(estimator: Any, state: State) -> None:
    from .._mcmc.crosscat.predictive_state import unpack

    estimator.restore(unpack(state), named=state["named"])
    for name in RAN:
        setattr(estimator, name, state[name])


def _example(estimator: Any) -> Any:
    """Return one row, at the origins of the model's columns."""
    return estimator.predictive_state().model.table(np.zeros((1, estimator.n_features_in_)))


_ARRAYS = {
    "columns": "Ui",  # (n_columns,) their names, or positions
    "kinds": "U",  # (n_columns,) the names of their models
    "truth_values": "b",  # (n_columns,) whether they are Boolean
    "origins": "f",  # (n_columns,) subtracted from values by the kernels
    "n_levels": "i",  # (n_columns,) of categorical columns; 0 for others
    "level_types": "U",  # (n_columns,)
    "levels": "U",  # those of all columns, as text
    "hyper": "f",  # (n_mixtures, n_hyper); the first is that of labels_, the others are draws
    "views": "i",  # (n_mixtures, n_columns); -1 for columns without influence on labels_
    "n_clusters": "i",  # of each view of each mixture, with the new one
    "shares": "f",  # of each of their clusters
    "statistics": "f",  # of each of their clusters
    "together": "f",  # (n_columns, n_columns) posterior probability that two columns share a view
}

_BLOCKS = {
    "column_labels_": "i",  # (n_columns,)
    "block_statistics_": "f",  # (n_clusters, n_column_clusters * width of a cell)
    "row_log_weights_": "f",  # (n_clusters,)
}


def _collect_blocks(estimator: Any) -> State:
    from .._mcmc.crosscat.table import names_array
    from ..models.registry import MODELS, model_class
    from ..models.saved import pack_model

    model = type(estimator.model_.encoders[0])
    packed = pack_model(estimator.model_)
    if packed is None:
        raise ValueError("a file cannot hold cells that are no plain values")
    return {name: getattr(estimator, name) for name in (*_BLOCKS, *RAN)} | {
        "columns": names_array(estimator.column_names_),
        "named": hasattr(estimator, "feature_names_in_"),
        "cell_model": next(name for name in MODELS if model_class(name) is model),
        "cell_table": packed.table,
        "cell_levels": packed.levels,
        "cell_hyper": packed.hyper,
    }


def _cell_model(state: State) -> Any:
    from ..models.registry import MODELS, model_class
    from ..models.saved import PackedModel, unpack_model

    name = state["cell_model"]
    if name not in MODELS or not model_class(name).for_cells:
        raise ValueError(f"its cell_model {name!r} is not one of cells")
    packed = (state[f"cell_{part}"] for part in PackedModel._fields)
    return unpack_model(name, PackedModel(*packed))


def _check_blocks(estimator: Any, state: State) -> int:
    shapes = {"columns": "d", "column_labels_": "d", "cell_table": "rc", "cell_hyper": "h"}
    sizes = sizes_of(state, shapes | {"block_statistics_": "kw", "row_log_weights_": "k"})
    if len(set(state["columns"].tolist())) < sizes["d"]:
        raise ValueError("its columns are not all different")
    parts = np.unique(state["column_labels_"])
    if not np.array_equal(parts, np.arange(len(parts))):
        raise ValueError("its column_labels_ are not the numbers of clusters")
    if sizes["c"] != 1 or sizes["w"] != len(parts) * _cell_model(state).width:
        raise ValueError("its block_statistics_ are not those of its cell_model")
    return sizes["d"]


def _restore_blocks(estimator: Any, state: State) -> None:
    restore_attributes(estimator, {name: state[name] for name in (*_BLOCKS, *RAN)})
    estimator.model_ = _cell_model(state)
    estimator.column_names_ = state["columns"].tolist()
    estimator.n_features_in_ = len(estimator.column_names_)
    estimator.n_clusters_ = len(state["row_log_weights_"])
    estimator.n_column_clusters_ = int(state["column_labels_"].max()) + 1
    if state["named"]:
        estimator.feature_names_in_ = np.array(estimator.column_names_, dtype=object)


def _example_blocks(estimator: Any) -> Any:
    cell = estimator.model_.table(np.zeros((1, 1)))
    return np.repeat(cell, estimator.n_features_in_, axis=1)


TABLES = (
    Serializer(
        ESTIMATORS["CrossCat"],
        _ARRAYS,
        RAN | {"named": bool},
        _check,
        _restore,
        _example,
        _collect,
    ),
    Serializer(
        ESTIMATORS["DPBiclustering"],
        {
            **_BLOCKS,
            "columns": "Ui",  # (n_columns,) their names, or positions
            "cell_table": "f",  # (a few, 1) of a packed model
            "cell_hyper": "f",
        },
        RAN | {"named": bool, "cell_model": str, "cell_levels": list},
        _check_blocks,
        _restore_blocks,
        _example_blocks,
        _collect_blocks,
    ),
)
