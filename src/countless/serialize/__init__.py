"""Serializers of the estimators of model files: their state, its shapes, and its restoration.

`hard` has estimators of one clustering, `bayes` those with a component model, `tables` those of
unprocessed tables, `edited` edited clusterings, `baselines` scikit-learn's.
"""

from typing import Any

import numpy as np

from .baselines import OF_BASELINES
from .bayes import BAYES
from .edited import EDITED
from .hard import HARD
from .serializer import Serializer
from .tables import TABLES

SERIALIZERS = {
    each.estimator.class_name: each for each in (*HARD, *BAYES, *TABLES, *EDITED, *OF_BASELINES)
}


def serializer_of(estimator: Any) -> Serializer | None:
    """Return the serializer of an estimator, or None if its state cannot be saved.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> serializer_of(KMeans()).estimator.class_name
    'KMeans'
    """
    found = SERIALIZERS.get(type(estimator).__name__)
    if found is None or type(estimator) is not found.estimator.load():
        return None
    if found.collect is not None:
        return found
    state = vars(estimator)
    plain = all(
        isinstance(state[name], np.ndarray) and state[name].dtype.kind in letters
        for name, letters in found.arrays.items()
        if name in state
    )
    return found if plain else None
