"""What a model file says of one estimator class, and the checks that all of them share."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

State = dict[str, Any]  # arrays and plain values by their names

RAN = {"n_iter_": int, "converged_": bool}


class Kind(NamedTuple):
    """One estimator class: what of its fitted state is saved.

    ``arrays`` gives the NumPy kind letters of each array, ``values`` the type of each plain value;
    what is in a list, ``check`` must look at. It raises ValueError for a state that does not fit
    together or to the parameters, and returns the number of columns the model expects.
    ``restore`` puts the state into a new estimator. ``collect`` makes the state where that is not
    attributes of the same names.
    """

    module: str
    class_name: str
    arrays: dict[str, str]
    values: dict[str, type]
    check: Callable[[Any, State], int]
    restore: Callable[[Any, State], None]
    collect: Callable[[Any], State] | None = None

    def load(self) -> type:
        """Import the class."""
        return getattr(import_module(self.module), self.class_name)

    def state(self, estimator: Any) -> State:
        """Return what is saved of a fitted estimator."""
        if self.collect is not None:
            return self.collect(estimator)
        return {name: getattr(estimator, name) for name in (*self.arrays, *self.values)}


def sizes_of(state: State, shapes: dict[str, str]) -> dict[str, int]:
    """Return what the letters of the shapes stand for; raise where two arrays disagree."""
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
    """Raise where two data sets have one name."""
    if len(np.unique(state["groups_"])) < len(state["groups_"]):
        raise ValueError("its groups_ are not all different")


def restore_attributes(estimator: Any, state: State) -> None:
    """Put the state into the estimator as it is."""
    for name, value in state.items():
        setattr(estimator, name, value)


def restore_centers(estimator: Any, state: State) -> None:
    """Put the state of an estimator that has a center for each cluster into it."""
    restore_attributes(estimator, state)
    estimator.n_clusters_, estimator.n_features_in_ = state["cluster_centers_"].shape
