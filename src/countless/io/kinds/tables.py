"""Saved estimators of tables as they are: CrossCat."""

from typing import Any

from .kind import RAN, Kind, State


def _collect(estimator: Any) -> State:
    from ...bayes.crosscat.saved import pack

    ran = {name: getattr(estimator, name) for name in RAN}
    return pack(estimator.answers()) | ran | {"named": hasattr(estimator, "feature_names_in_")}


def _check(estimator: Any, state: State) -> int:
    from ...bayes.crosscat.saved import unpack

    return len(unpack(state).names)


def _restore(estimator: Any, state: State) -> None:
    from ...bayes.crosscat.saved import unpack

    estimator.restore(unpack(state), named=state["named"])
    for name in RAN:
        setattr(estimator, name, state[name])


_ARRAYS = {
    "columns": "Ui",  # (n_columns,) their names, or places
    "kinds": "U",  # (n_columns,) the names of their models
    "truth_values": "b",  # (n_columns,) whether True and False is what they hold
    "origins": "f",  # (n_columns,) what kernels take for zero
    "n_levels": "i",  # (n_columns,) of categories; 0 for others
    "level_types": "U",  # (n_columns,)
    "levels": "U",  # those of all columns, as text
    "hyper": "f",  # (n_mixtures, n_hyper); the first is that of labels_, the others are draws
    "views": "i",  # (n_mixtures, n_columns); columns that labels_ do not rest on are in none, -1
    "n_clusters": "i",  # of each view of each mixture, with the new one
    "shares": "f",  # of each of their clusters
    "statistics": "f",  # of each of their clusters
    "together": "f",  # (n_columns, n_columns) how probably two columns share a view
}

TABLES = (
    Kind(
        "countless.bayes.crosscat.estimator",
        "CrossCat",
        _ARRAYS,
        RAN | {"named": bool},
        _check,
        _restore,
        _collect,
    ),
)
