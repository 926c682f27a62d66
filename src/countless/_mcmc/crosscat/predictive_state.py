"""Serialise the parts of a fitted CrossCat that queries need, as plain arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from countless._mcmc.crosscat.column_models import ColumnSubset
from countless._mcmc.crosscat.posterior import DrawMixtures, ViewMixture
from countless._mcmc.crosscat.table import Table, names_array
from countless.models.cells import BoundCells, ColumnModel
from countless.models.checks import LARGEST
from countless.models.columns import COLUMN_MODELS, Columns
from countless.models.columnwise import Categorical

_MODELS = {made.__name__: made for made in COLUMN_MODELS}
# Parsers of levels, which files store as str().
_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "True",
}


class PredictiveState(NamedTuple):
    """The data that queries about new rows need."""

    model: BoundCells
    names: list[Any]
    truth_values: np.ndarray  # (n_columns,) bool
    estimate: DrawMixtures  # with one view, that of labels_
    draws: list[DrawMixtures]  # posterior draws
    together: np.ndarray  # (n_columns, n_columns), dependence probabilities

    def filled(
        self, cells: np.ndarray, j: int, missing: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Return column j with its missing values replaced by values in the kernels' encoding."""
        block = self.model.block_of(j)
        if block.levels is not None:
            known = block.levels[values.astype(np.intp)]
        elif block.family.integer:
            known = np.round(values)
        else:
            known = values + self.model.origin[j]
        if self.truth_values[j]:
            known = known.astype(bool).astype(object)
        filled = np.empty(len(missing), dtype=known.dtype)
        filled[~missing] = cells[~missing]
        filled[missing] = known
        return filled


def pack(state: PredictiveState) -> dict[str, np.ndarray]:
    """Return the arrays to store; raise a ValueError for columns that cannot be stored."""
    model = state.model
    kinds = [""] * model.n_features
    levels: list[list[Any]] = [[]] * model.n_features
    for encoder, block in zip(model.encoders, model.blocks, strict=True):
        for j in block.columns:
            kinds[j] = type(encoder).__name__
            levels[j] = [] if block.levels is None else block.levels.tolist()
    types = [sorted({type(level).__name__ for level in own}) for own in levels]
    for j, (name, own_types) in enumerate(zip(state.names, types, strict=True)):
        if kinds[j] not in _MODELS or len(own_types) > 1 or not set(own_types) <= _TYPES.keys():
            what = " and ".join(own_types) or kinds[j]
            raise ValueError(f"a file cannot hold column {name!r}, which is of {what}")
    mixtures = [state.estimate, *state.draws]
    views = np.full((len(mixtures), model.n_features), -1, dtype=np.int64)
    for m, mixture in enumerate(mixtures):
        for v, view in enumerate(mixture.views):
            views[m, view.subset.columns] = v
    every = [view for mixture in mixtures for view in mixture.views]
    return {
        "columns": names_array(state.names),
        "kinds": np.array(kinds),
        "truth_values": state.truth_values,
        "origins": model.origin,
        "n_levels": np.array([len(own) for own in levels], dtype=np.int64),
        "level_types": np.array(["".join(own) for own in types]),
        "levels": np.array([str(level) for own in levels for level in own], dtype=np.str_),
        "hyper": np.stack([mixture.model.hyper.value for mixture in mixtures]),
        "views": views,
        "n_clusters": np.array([len(view.shares) for view in every], dtype=np.int64),
        "shares": np.concatenate([view.shares for view in every]),
        "statistics": np.concatenate([view.statistics.ravel() for view in every]),
        "together": state.together,
    }


def unpack(arrays: Mapping[str, np.ndarray]) -> PredictiveState:
    """Return what `pack` stored; raise a ValueError for inconsistent arrays."""
    names = arrays["columns"].tolist()
    d = len(names)
    for name in ("columns", "kinds", "truth_values", "origins", "n_levels", "level_types"):
        _expect(arrays[name].shape == (d,), name)
    _expect(d > 0 and len(set(names)) == d, "columns")
    together = arrays["together"]
    _expect(together.shape == (d, d), "together")
    _expect(bool(((together >= 0) & (together <= 1)).all()), "together")
    model = _model_of(arrays)
    hyper, views = arrays["hyper"], arrays["views"]
    _expect(hyper.ndim == 2 and hyper.shape[1] == len(model.hyper.value), "hyper")
    _expect(views.shape == (len(hyper), d) and len(hyper) > 1, "views")
    for m, own in enumerate(views):
        present = np.unique(own[own >= 0])
        _expect(np.array_equal(present, np.arange(len(present))), "views")
        _expect(len(present) == 1 if m == 0 else own.min() == 0, "views")
    parts = _Parts(arrays)
    draws = []
    for own_hyper, own_views in zip(hyper, views, strict=True):
        model.hyper.check(own_hyper)
        own_model = cast(BoundCells, model.with_hyper(own_hyper))
        draws.append(DrawMixtures(own_model, list(parts.views(own_model, own_views))))
    parts.end()
    truth = arrays["truth_values"]
    return PredictiveState(model, names, truth, draws[0], draws[1:], together)


class _Parts:
    """A sequential reader of the clusters of views."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._at = {"n_clusters": 0, "shares": 0, "statistics": 0}
        for name in self._at:
            _expect(arrays[name].ndim == 1, name)
        _expect(bool((arrays["shares"] >= 0).all()), "shares")

    def views(self, model: BoundCells, view_of: np.ndarray) -> Iterator[ViewMixture]:
        nothing = np.empty((0, model.n_features))
        for v in range(int(view_of.max()) + 1):
            subset = ColumnSubset(model, nothing, np.flatnonzero(view_of == v))
            n_clusters = int(self._next("n_clusters", 1)[0])
            _expect(n_clusters > 1, "n_clusters")  # one cluster, and a new one
            shares = self._next("shares", n_clusters)
            _expect(shares.sum() <= 1.0 + 1e-6 and shares[:-1].sum() > 0, "shares")
            statistics = self._next("statistics", n_clusters * subset.width)
            statistics = statistics.reshape(n_clusters, subset.width)
            yield ViewMixture(subset, np.empty(0, np.int64), statistics, shares)

    def end(self) -> None:
        for name, at in self._at.items():
            _expect(at == len(self._arrays[name]), name)

    def _next(self, name: str, count: int) -> np.ndarray:
        at = self._at[name]
        self._at[name] += count
        _expect(self._at[name] <= len(self._arrays[name]), name)
        return self._arrays[name][at : at + count]


def _model_of(arrays: Mapping[str, np.ndarray]) -> BoundCells:
    """Return the model of the columns, without its hyperparameters."""
    n_levels, levels = arrays["n_levels"], arrays["levels"]
    _expect(bool(((n_levels >= 0) & (n_levels <= levels.size)).all()), "n_levels")
    _expect(levels.shape == (n_levels.sum(),), "levels")
    texts = np.split(levels, np.cumsum(n_levels)[:-1])
    models: list[ColumnModel] = []
    cells = []
    for kind, made_of, own in zip(
        arrays["kinds"].tolist(), arrays["level_types"].tolist(), texts, strict=True
    ):
        _expect(kind in _MODELS and (kind == "Categorical") == (len(own) > 0), "kinds")
        if kind == "Categorical":
            _expect(made_of in _TYPES, "level_types")
            found = [_TYPES[made_of](text) for text in own.tolist()]
            models.append(Categorical(levels=found))
            cells.append(np.array(found[:1], dtype=object))
        else:
            models.append(_MODELS[kind]())
            cells.append(np.zeros(1))
    bound = Columns(models).bind(Table(list(range(len(models))), cells))
    moved = np.array([bound.family_of(j).centered for j in range(bound.n_features)])
    _expect(bool((np.abs(arrays["origins"]) <= LARGEST * moved).all()), "origins")
    bound.origin = arrays["origins"]
    return bound


def _expect(fits: bool, name: str) -> None:
    if not fits:
        raise ValueError(f"its {name} do not fit the rest of it")
