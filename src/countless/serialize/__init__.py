"""Serializers of the estimators of model files: their state, its shapes, and its restoration.

`hard` has estimators of one clustering, `bayes` those with a component model, `tables` those of
unprocessed tables, `edited` edited clusterings, `baselines` scikit-learn's.
"""

from typing import Any

import numpy as np

from .baselines import BASELINES
from .bayes import BAYES
from .edited import EDITED
from .hard import HARD
from .serializer import Kind
from .tables import TABLES

KINDS = {kind.class_name: kind for kind in (*HARD, *BAYES, *TABLES, *EDITED, *BASELINES)}


def kind_of(estimator: Any) -> Kind | None:
    """Return the serializer of an estimator, or None if its state cannot be saved.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> kind_of(KMeans()).class_name
    'KMeans'
    """
    kind = KINDS.get(type(estimator).__name__)
    if kind is None or type(estimator) is not kind.load():
        return None
    if kind.collect is not None:
        return kind
    state = vars(estimator)
    plain = all(
        isinstance(state[name], np.ndarray) and state[name].dtype.kind in letters
        for name, letters in kind.arrays.items()
        if name in state
    )
    return kind if plain else None
