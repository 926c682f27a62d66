"""Tables with columns of mixed types, each with its own model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from countless._data.cells import CATEGORICAL, kind_of
from countless.models.cells import BoundCells, ColumnModel, bind_blocks
from countless.models.checks import cluster_share, columns_of
from countless.models.columnwise import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    FixedGaussian,
    Poisson,
)
from countless.models.protocol import Model

# Models of single columns, and those that are chosen by the type of a column.
COLUMN_MODELS: tuple[type[ColumnModel], ...] = (
    DiagonalGaussian,
    FixedGaussian,
    Categorical,
    Bernoulli,
    Poisson,
)
BY_TYPE = {made.column_type: made for made in COLUMN_MODELS if made.column_type}


class Columns(Model):
    """Columns of mixed types, independent given the cluster; missing values are integrated out.

    Parameters
    ----------
    models : sequence or mapping, default=None
        The model of each column: ``DiagonalGaussian``, ``FixedGaussian``, ``Bernoulli``,
        ``Categorical`` or ``Poisson``, or by type ``'number'``, ``'binary'``, ``'category'`` or
        ``'count'``. A mapping, from column indices or from the names of a data frame, may omit
        columns. By default, and for omitted columns, the type is detected: numeric columns are
        numbers, or binary if all values are 0 or 1, and other columns are categories.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.models import Columns
    >>> X = np.array([[1.5, "red", 3], [np.nan, "blue", 0], [0.5, "red", 1]], dtype=object)
    >>> model = Columns(["number", "category", "count"]).bind(X)
    >>> rows = model.rows(X)
    >>> rows[:, 1]
    array([1., 0., 1.])
    >>> print(round(model.log_marginal(model.statistics(rows)), 3))
    -14.52
    """

    categorical = True
    scalable = True

    def __init__(self, models=None):
        self.models = models

    def bind(self, X: Any) -> BoundCells:
        """Return the model of the columns of ``X``, all hyperparameters set."""
        columns = columns_of(X)
        names = list(getattr(X, "columns", range(len(columns))))
        parts, share = [], cluster_share(columns)
        for j, given in enumerate(_given(self.models, names)):
            model = _detected(columns[j]) if given is None else _model(given, j)
            for block in model.blocks(columns, [j], share):
                parts.append((model, block._replace(prefix=f"{j}:")))
        return bind_blocks(parts, columns)

    def bind_packed(self, table: np.ndarray, levels: list[list | None]) -> BoundCells:
        """Return the model of columns of which those with levels are categorical."""
        return Columns([None if own is None else Categorical(levels=own) for own in levels]).bind(
            table
        )


def _given(models: Any, names: Sequence) -> list:
    """Return the given model of each column, None where none was given."""
    if models is None:
        return [None] * len(names)
    if isinstance(models, Mapping):
        places = {name: j for j, name in enumerate(names)}
        given: list = [None] * len(names)
        for key, model in models.items():
            if names.count(key) > 1:
                raise ValueError(f"models names {key!r}, as {names.count(key)} columns of X are")
            place = places.get(key, key)
            if not isinstance(place, int) or not 0 <= place < len(names):
                raise ValueError(f"models names {key!r}, which is no column of X")
            given[place] = model
        return given
    if isinstance(models, str) or not np.iterable(models):
        raise ValueError(f"models must be a sequence or a mapping; got {models!r}")
    listed = list(models)
    if len(listed) != len(names):
        raise ValueError(f"models has {len(listed)} entries; X has {len(names)} columns")
    return listed


def _model(given: Any, column: int) -> ColumnModel:
    if isinstance(given, str) and given in BY_TYPE:
        return BY_TYPE[given]()
    if isinstance(given, ColumnModel):
        return given
    raise ValueError(
        f"models must hold models of columns or of {', '.join(map(repr, BY_TYPE))}; "
        f"got {given!r} for column {column}"
    )


def _detected(values: np.ndarray) -> ColumnModel:
    """Return the default model for the detected type of a column."""
    seen = [value for value in values.tolist() if value is not None and value == value]
    if kind_of(seen) == CATEGORICAL:
        return Categorical()
    return Bernoulli() if seen and set(seen) <= {0, 1} else DiagonalGaussian()
