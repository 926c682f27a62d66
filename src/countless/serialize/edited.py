"""The serializer of edited clusterings: the file of the model, and its clusters after edits."""

import json
from typing import Any

import numpy as np

from .._edits import read_edits
from .._labels import NOISE
from .._registry import EDITED_CLUSTERING
from .serializer import Serializer, State, check_coordinates, sizes_of

_NUMBERS = ("base_", "whole_", "part_base_", "part_item_", "part_label_")


def _collect(estimator: Any) -> State:
    record = {
        "edits": estimator.edits_,
        "names": estimator.cluster_names_,
        "locked": estimator.locked_.tolist(),
    }
    return {
        "prototypes_": estimator.prototypes_,
        "record_": json.dumps(record),
        **{name: np.asarray(getattr(estimator, name), dtype=np.int64) for name in _NUMBERS},
    }


def _check(estimator: Any, state: State) -> int:
    shapes = {"base_": "b", "whole_": "b"}
    if state["part_base_"].size:
        shapes |= {"part_base_": "p", "part_item_": "p", "part_label_": "p", "prototypes_": "md"}
    elif any(state[name].shape != (0,) for name in ("part_item_", "part_label_")):
        raise ValueError("it has parts of no cluster")
    sizes = sizes_of(state, shapes)
    _, names, _ = _record(state)
    labels = np.concatenate([state["whole_"], state["part_label_"]])
    if labels.min() < NOISE or labels.max() >= len(names):
        raise ValueError("its parts are in clusters that it does not have")
    if (np.diff(state["base_"]) <= 0).any():
        raise ValueError("its base_ is not ascending")
    item = state["part_item_"]
    if item.size and (item.min() < 0 or item.max() >= sizes["m"]):
        raise ValueError("its part_item_ names prototypes that it does not have")
    check_coordinates(state, "prototypes_")
    n_features = state["estimator_"].n_features_in_
    if sizes.get("d", n_features) != n_features:
        raise ValueError("its prototypes_ do not have the columns of its model")
    return n_features


def _record(state: State) -> tuple[dict[str, Any], list[str], list[bool]]:
    """Return the edits, and the names and locks of clusters."""
    record = json.loads(state["record_"])
    if not isinstance(record, dict) or set(record) != {"edits", "names", "locked"}:
        raise ValueError("its record_ must have edits, names and locked")
    names, locked = record["names"], record["locked"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its names are not texts")
    if not isinstance(locked, list) or [type(one) for one in locked] != [bool] * len(names):
        raise ValueError("its locks are not true or false for each cluster")
    return read_edits(record["edits"]), names, locked


def _restore(estimator: Any, state: State) -> None:
    estimator.estimator_ = state["estimator_"]
    estimator.edits_, estimator.cluster_names_, locked = _record(state)
    estimator.locked_ = np.array(locked, dtype=bool)
    for name in (*_NUMBERS, "prototypes_"):
        setattr(estimator, name, state[name])
    estimator.n_clusters_ = len(locked)
    estimator.n_features_in_ = estimator.estimator_.n_features_in_


EDITED = (
    Serializer(
        EDITED_CLUSTERING,
        {"model_": "u", "prototypes_": "f", **dict.fromkeys(_NUMBERS, "i")},
        {"record_": str},
        _check,
        _restore,
        None,
        _collect,
        inner="estimator_",
    ),
)
