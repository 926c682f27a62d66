"""Bound models as plain arrays: a short table to bind to, levels, and hyperparameters.

A bound model depends on its table only through the origins of columns, which are subtracted, and
through their levels. The table made here has the same origins, so that the model of the same name
bound to it and to the levels is the same model. For a full covariance the table also has the base
scale matrix below its first row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from countless.models.protocol import BoundModel
from countless.models.registry import as_model


class PackedModel(NamedTuple):
    """A serialised bound model, without its name."""

    table: np.ndarray  # (a few, n_features)
    levels: list[list | None]  # of each column; None if it is not categorical
    hyper: np.ndarray  # (n_hyper,)


def pack_model(model: BoundModel) -> PackedModel | None:
    """Serialise a model for `unpack_model`; None if a level is not a plain value.

    Examples
    --------
    >>> from countless.models import Categorical
    >>> model = Categorical().bind([["red"], ["blue"]])
    >>> packed = pack_model(model)
    >>> packed.levels
    [['blue', 'red']]
    >>> unpack_model("categorical", packed).rows([["red"]])
    array([[1.]])
    """
    levels = model.levels()
    if not all(map(_are_levels, levels)):
        return None
    return PackedModel(model.packed_table(), levels, model.hyper.value.copy())


def unpack_model(name: str, packed: PackedModel) -> BoundModel:
    """Return the model of this name that was packed; raise a ValueError if it does not fit."""
    given, (table, levels, value) = as_model(name), packed
    if len(levels) != table.shape[1] or not all(map(_are_levels, levels)):
        raise ValueError("levels must be plain values, or None, for each column")
    bound = given.bind_packed(table, levels)
    if value.shape != bound.hyper.value.shape:
        raise ValueError(
            f"a {name} model of {table.shape[1]} columns has {len(bound.hyper.value)} "
            f"hyperparameters, not an array of shape {value.shape}"
        )
    bound.hyper.check(value)
    return bound.with_hyper(value)


def _are_levels(levels: Any) -> bool:
    return levels is None or (isinstance(levels, list) and all(map(_is_plain, levels)))


def _is_plain(level: Any) -> bool:
    # Other values do not survive a round trip through text.
    return isinstance(level, bool | int | str) or (isinstance(level, float) and np.isfinite(level))
