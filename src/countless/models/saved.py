"""Serialised bound models: a short table to bind to, levels, and hyperparameters.

A bound model depends on its table only through the origins of columns, which are subtracted, and
through their levels. The table made here has the same origins, so that the model of the same name
bound to it and to the levels is the same model. For a full covariance the table also has the base
scale matrix below its first row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from countless.kernels.models_cells_marginals import CATEGORY, COUNT
from countless.models.cells import BoundCells
from countless.models.columns import Columns
from countless.models.columnwise import Categorical
from countless.models.gaussian import BoundGaussian, Gaussian
from countless.models.named import as_model
from countless.models.protocol import BoundModel


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
    value = model.hyper.value.copy()
    levels: list[list | None] = [None] * model.n_features
    if isinstance(model, BoundGaussian):
        return PackedModel(np.vstack([model.origin, model.base_scale]), levels, value)
    if not isinstance(model, BoundCells):
        return PackedModel(model.table(np.zeros((1, model.n_features))), levels, value)
    for block in model.blocks:
        if block.levels is not None:
            plain = [v.item() if isinstance(v, np.generic) else v for v in block.levels]
            if not all(map(_is_plain, plain)):
                return None
            for j in block.columns:
                levels[j] = plain
    return PackedModel(_table_of_cells(model), levels, value)


def unpack_model(name: str, packed: PackedModel) -> BoundModel:
    """Return the model of this name that was packed; raise a ValueError if it does not fit."""
    given, (table, levels, value) = as_model(name), packed
    if len(levels) != table.shape[1] or not all(map(_are_levels, levels)):
        raise ValueError("levels must be plain values, or None, for each column")
    if isinstance(given, Categorical | Columns):
        given = Columns([None if own is None else Categorical(levels=own) for own in levels])
    elif any(own is not None for own in levels):
        raise ValueError(f"a {name} model has no levels")
    if isinstance(given, Gaussian):
        table, scale = table[:1], table[1:]
        given = Gaussian(scale=scale)
    bound = given.bind(table)
    if value.shape != bound.hyper.value.shape:
        raise ValueError(
            f"a {name} model of {table.shape[1]} columns has {len(bound.hyper.value)} "
            f"hyperparameters, not an array of shape {value.shape}"
        )
    bound.hyper.check(value)
    return bound.with_hyper(value)


def _table_of_cells(model: BoundCells) -> np.ndarray:
    """Return two rows: the mean of columns of numbers is their origin; binary ones are 0 and 1."""
    table = np.zeros((2, model.n_features))
    for block in model.blocks:
        for j in block.columns:
            if model.kind[j] == CATEGORY:
                table[1, j] = block.levels is None
            elif model.kind[j] != COUNT:
                table[0, j] = 2.0 * model.origin[j]
                if table[0, j] in (0.0, 1.0):  # otherwise taken for a binary column
                    table[:, j] = table[0, j] + 2.0, -2.0
    return table


def _are_levels(levels: Any) -> bool:
    return levels is None or (isinstance(levels, list) and all(map(_is_plain, levels)))


def _is_plain(level: Any) -> bool:
    # Other values do not survive a round trip through text.
    return isinstance(level, bool | int | str) or (isinstance(level, float) and np.isfinite(level))
