"""The two penalties of the hard HDP, from approximate numbers of clusters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from countless._data.open import check_table
from countless._path.farthest import farthest_first_penalty
from countless._search.groups.groups import check_groups
from countless.divergences import get_divergence


class HDPPenalties(NamedTuple):
    """The penalties of a local and of a global cluster."""

    local_penalty: float
    global_penalty: float


def hdp_penalties(X: Any, groups: Any, n_local: int, n_global: int) -> HDPPenalties:
    """Return penalties at which the hard HDP finds roughly the given numbers of clusters.

    This is the farthest-first heuristic of Kulis and Jordan, section 6.1, which the paper only
    sketches for several data sets. The interpretation used here, with squared distances throughout:

    * *local*: `farthest_first_penalty` of each data set separately, which starts from its own mean
      and makes ``n_local`` rounds; the average over data sets. A data set with fewer rows makes as
      many rounds as it has rows.
    * *global*: a set T starts with the mean of all rows. The distance of a data set from T is the
      sum over its rows of the distance to the nearest element of T. In each of ``n_global`` rounds
      the row of the farthest data set that is farthest from T is added to T. The penalty is the
      largest distance in the last round, before a row is added.

    If data sets were compared with one element of T at a time, their internal scatter would
    dominate, and Algorithm 2 would find a single cluster in the paper's own experiment.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    groups : array-like of shape (n_samples,) or None
        The data set of each row; None is one data set.
    n_local : int
        Approximate number of clusters per data set.
    n_global : int
        Approximate number of global clusters.

    Returns
    -------
    HDPPenalties
        ``local_penalty`` and ``global_penalty``.

    Examples
    --------
    >>> from countless import hdp_penalties
    >>> X = [[0.0], [1.0], [10.0], [11.0], [0.0], [30.0]]
    >>> local, everywhere = hdp_penalties(X, list("aaaabb"), n_local=2, n_global=2)
    >>> local, round(everywhere, 1)
    (127.625, 141.1)
    """
    X = check_table(X, get_divergence("sqeuclidean"))
    groups = check_groups(groups, len(X))
    for name, value in (("n_local", n_local), ("n_global", n_global)):
        if not isinstance(value, int | np.integer) or not 1 <= value <= len(X):
            raise ValueError(
                f"{name} must be an integer from 1 to the number of rows, {len(X)}; got {value!r}"
            )
    order, starts = groups.sorted()
    rows = np.arange(len(X)) if order is None else order
    members = [rows[first:last] for first, last in pairwise(starts)]
    local = [farthest_first_penalty(X[some], min(n_local, len(some))) for some in members]
    distance = np.full(len(X), np.inf)
    center = X.mean(axis=0, dtype=np.float64)
    for _ in range(n_global):
        difference = X - center
        np.minimum(distance, np.einsum("ij,ij->i", difference, difference), out=distance)
        spread = np.bincount(groups.number, distance)
        some = members[int(spread.argmax())]
        center = X[some[distance[some].argmax()]].astype(np.float64)
    return HDPPenalties(float(np.mean(local)), float(spread.max()))
