"""The serializer of one estimator class, and the checks that all of them share."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._path.layers import pack_layers, unpack_layers
from .._registry import Estimator

State = dict[str, Any]  # arrays and plain values by their names

RAN = {"n_iter_": int, "converged_": bool}
LAYERS = {"layers": list}  # of an estimator with a path; empty where the penalty was given
# Exceptions of a prediction from an inconsistent state.
_MISFITS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RuntimeWarning)


class NearestCenters(NamedTuple):
    """A rule for new rows: the label of the nearest center, or -1 beyond a price."""

    centers: np.ndarray  # (n_centers, n_features)
    labels: np.ndarray  # (n_centers,)
    divergence: str = "sqeuclidean"
    price: float = np.inf


class Serializer(NamedTuple):
    """The serializer of one estimator class: which part of its fitted state is saved.

    ``arrays`` gives the NumPy kind letters of each array, ``values`` the type of each plain value;
    ``check`` validates the contents of lists. It raises ValueError for a state that is inconsistent
    in itself or with the parameters, and returns the number of columns the model expects.
    ``restore`` copies the state into a new estimator, and ``examples`` returns rows that it must
    then be able to predict. ``collect`` computes the state where it is not attributes of the same
    names. ``inner`` is the attribute with another estimator, whose own file is the array
    ``model_``; the state then has that estimator, and its examples may be those of the outer one.
    ``centers`` returns the rule for new rows where it is that of nearest centers.
    """

    estimator: Estimator
    arrays: dict[str, str]
    values: dict[str, type]
    check: Callable[[Any, State], int]
    restore: Callable[[Any, State], None]
    examples: Callable[[Any], Any] | None
    collect: Callable[[Any], State] | None = None
    inner: str | None = None
    centers: Callable[[Any], NearestCenters | None] | None = None

    def state(self, estimator: Any) -> State:
        """Return the saved state of a fitted estimator."""
        layers = {"layers": pack_layers(estimator)} if "layers" in self.values else {}
        if self.collect is not None:
            return self.collect(estimator) | layers
        names = (name for name in (*self.arrays, *self.values) if name not in layers)
        return {name: getattr(estimator, name) for name in names} | layers


def sizes_of(state: State, shapes: dict[str, str]) -> dict[str, int]:
    """Return the sizes that the letters of the shapes denote; raise where two arrays disagree."""
    sizes: dict[str, int] = {}
    for name, letters in shapes.items():
        shape = state[name].shape
        if len(shape) != len(letters):
            raise ValueError(f"its {name} has {len(shape)} dimensions, expected {len(letters)}")
        for letter, length in zip(letters, shape, strict=True):
            if length < 1 or sizes.setdefault(letter, length) != length:
                raise ValueError(f"the shape {shape} of its {name} does not fit")
    return sizes


def check_groups(state: State) -> None:
    """Raise if two groups have the same name."""
    if len(np.unique(state["groups_"])) < len(state["groups_"]):
        raise ValueError("its groups_ are not all different")


def check_coordinates(state: State, *names: str) -> None:
    """Raise if rows or centers have coordinates whose squares overflow."""
    from ..models.checks import LARGEST

    for name in names:
        if float(np.abs(state[name]).max(initial=0.0)) > LARGEST:
            raise ValueError(f"its {name} has a number beyond {LARGEST:g}")


def check_labels(labels: np.ndarray, n_clusters: int) -> None:
    """Raise if labels are not cluster numbers."""
    if (labels < 0).any() or (labels >= n_clusters).any():
        raise ValueError("its labels_ name clusters that it does not have")


def check_mixing(name: str, weights: np.ndarray, starts: np.ndarray) -> None:
    """Raise if mixing weights are not probabilities; the last of each mixture is a new cluster."""
    known = weights.copy()
    known[starts[1:] - 1] = 0.0
    total, of_known = (np.add.reduceat(each, starts[:-1]) for each in (weights, known))
    if (weights < 0).any() or (total > 1.0 + 1e-6).any() or not (of_known > 0).all():
        raise ValueError(f"its {name} are not probabilities of clusters")


def check_predictions(estimator: Any, rows: Any) -> None:
    """Raise ValueError if a restored estimator cannot predict these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # an overflow, or an invalid operation
        try:
            labels = np.asarray(estimator.predict(rows))
            densities = estimator.score_samples(rows) if hasattr(estimator, "score_samples") else 0
        except _MISFITS as error:
            raise ValueError(f"it cannot predict ({error})") from error
    is_clustering = labels.shape == (len(rows),) and labels.dtype.kind == "i"
    if not is_clustering or (labels < 0).any() or not np.isfinite(densities).all():
        raise ValueError("its predictions are not numbers of clusters, or not finite")


def restore_layers(estimator: Any, state: State) -> None:
    """Set the layers, if there are any."""
    if (tree := unpack_layers(state.pop("layers", []))) is not None:
        estimator._layer_tree = tree


def restore_attributes(estimator: Any, state: State) -> None:
    """Set the state as attributes of the estimator."""
    for name, value in state.items():
        setattr(estimator, name, value)


def restore_centers(estimator: Any, state: State) -> None:
    """Set the state of an estimator with a center for each cluster."""
    restore_attributes(estimator, state)
    estimator.n_clusters_, estimator.n_features_in_ = state["cluster_centers_"].shape


def first_and_last(name: str) -> Callable[[Any], np.ndarray]:
    """Return a function that gives the first and last row of an array of the estimator."""
    return lambda estimator: getattr(estimator, name)[[0, -1]]
