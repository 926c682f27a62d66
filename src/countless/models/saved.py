"""Bound models as two plain arrays, for files: a short table to bind to, and the hyperparameters.

What a bound model keeps of its table is where its columns are measured from and which levels they
have. The table made here shows just that, so that the model of the same name bound to it is the
same model. A full covariance has the scale that its hyperparameters stretch below it.
"""

from __future__ import annotations

import numpy as np

from countless.kernels.models_cells_marginals import CATEGORY, COUNT
from countless.models.cells import BoundCells
from countless.models.gaussian import BoundGaussian, Gaussian
from countless.models.named import as_model
from countless.models.protocol import BoundModel


def pack_model(model: BoundModel) -> tuple[np.ndarray, np.ndarray]:
    """Return a table and hyperparameters from which `unpack_model` makes the model again.

    Examples
    --------
    >>> from countless.models import Poisson
    >>> model = Poisson().bind([[3.0], [5.0]])
    >>> unpack_model("poisson", *pack_model(model)).hyper.value == model.hyper.value
    array([ True,  True])
    """
    value = model.hyper.value.copy()
    if isinstance(model, BoundCells):
        return _table_of_cells(model), value
    if isinstance(model, BoundGaussian):
        return np.vstack([model.origin, model.base_scale]), value
    return model.table(np.zeros((1, model.n_features))), value


def unpack_model(name: str, table: np.ndarray, value: np.ndarray) -> BoundModel:
    """Return the model of this name that was packed, or say that the arrays are not such."""
    given = as_model(name)
    if isinstance(given, Gaussian):
        table, scale = table[:1], table[1:]
        given = Gaussian(scale=scale)
    bound = given.bind(table)
    if value.shape != bound.hyper.value.shape:
        raise ValueError(
            f"a {name} model of {table.shape[1]} columns has {len(bound.hyper.value)} "
            f"hyperparameters, not an array of shape {value.shape}"
        )
    return bound.with_hyper(value)


def _table_of_cells(model: BoundCells) -> np.ndarray:
    """Return a table with all levels, and with the means that numbers are measured from."""
    most = max([2, *(len(block.levels) for block in model.blocks if block.levels is not None)])
    n_rows = 2 ** int(np.ceil(np.log2(most)))  # so that sums and means of a few rows are exact
    table = np.zeros((n_rows, model.n_features), dtype=object)
    for block in model.blocks:
        for j in block.columns:
            if block.levels is not None:
                places = np.minimum(np.arange(n_rows), len(block.levels) - 1)
                table[:, j] = block.levels[places]
            elif model.kind[j] == CATEGORY:
                table[1, j] = 1.0
            elif model.kind[j] != COUNT:
                table[0, j] = n_rows * model.origin[j]
                if table[0, j] in (0.0, 1.0):  # or else it would look like a binary column
                    table[:2, j] = table[0, j] + 2.0, -2.0
    # Text stays text, even "7", and whole numbers that floats do not have stay what they are.
    plain = all(isinstance(cell, int | float) and float(cell) == cell for cell in table.flat)
    return table.astype(np.float64) if plain else table
