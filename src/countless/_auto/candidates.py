"""The candidate methods for a table, each fitted to at most a given number of rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

from countless._auto.linked import NeighborCommunities
from countless._auto.merged import MOST_COMPONENTS, MergedMixture
from countless._labels import number_by_appearance
from countless._path.penalty import CANDIDATES
from countless.divisive import DivisiveClustering, LinkageClustering
from countless.dp_means import DPMeans
from countless.dp_mixture import DPMixture
from countless.spectral_dp_means import SpectralDPMeans

# Sample size for candidates whose cost is superlinear in the rows.
MOST_ROWS = 5_000
# The most columns of candidates with covariance matrices: 32 MB each, and seconds to factorize.
MOST_COLUMNS = 2_000
# The sample must not depend on `random_state`, so that k does not.
SAMPLE_SEED = 0
# In more columns the principal components that mixtures are fitted to say little about the rows,
# and there are nearest neighbours only; other candidates take minutes there.
MOST_COLUMNS = 50


class Family(NamedTuple):
    """A family of clusters, its default estimator, and the largest sample it is fitted to."""

    estimator: Any
    most_rows: int | None
    clusters: str  # what its clusters are called in a sentence
    most_columns: int | None = None  # beyond them it is left out


FAMILIES: Mapping[str, Family] = {
    "round": Family(DPMeans(), None, "Round clusters"),
    "elliptical": Family(
        MergedMixture(merge=False), MOST_ROWS, "Elliptical clusters", MOST_COLUMNS
    ),
    "merged": Family(
        MergedMixture(), MOST_ROWS, "Connected clusters, as unions of ellipses", MOST_COLUMNS
    ),
    "connected": Family(SpectralDPMeans(), MOST_ROWS, "Connected clusters"),
    "chained": Family(
        DivisiveClustering("mst", min_cluster_size=CANDIDATES.rows_a_cluster),
        MOST_ROWS,
        "Chained clusters",
    ),
}
LINKED = Family(NeighborCommunities(), None, "Densely linked clusters")
WIDE_FAMILIES: Mapping[str, Family] = {
    "linked": LINKED,
    "round": Family(DPMeans(), MOST_ROWS, "Round clusters"),
}
MIXED_FAMILIES: Mapping[str, Family] = {
    "columns": Family(
        DPMixture("columns", inference="map"), MOST_ROWS, "Clusters by the kind of each column"
    ),
    "dissimilarity": Family(
        LinkageClustering(metric="mixed"), 2_000, "Clusters by the dissimilarity of rows"
    ),
}


def families_for(n_columns: int, *, is_directional: bool, is_sparse: bool) -> Mapping[str, Family]:
    """Return the candidates for a table of numbers.

    Examples
    --------
    >>> list(families_for(300, is_directional=True, is_sparse=False))
    ['linked', 'round']
    >>> "linked" in families_for(2, is_directional=False, is_sparse=False)
    False
    """
    if is_sparse or n_columns > MOST_COLUMNS:
        return WIDE_FAMILIES
    if is_directional or n_columns > MOST_COMPONENTS:
        return {**FAMILIES, "linked": LINKED}
    return FAMILIES


class Fitted(NamedTuple):
    """A fitted candidate, or the reason why it failed."""

    method: str
    estimator: Any  # None if it failed
    places: np.ndarray | None  # indices of the rows it was fitted to, ascending; None: all
    seconds: float
    note: str

    def labels_at(self, places: np.ndarray) -> np.ndarray:
        """Return the clusters of some of the rows it was fitted to, numbered by appearance."""
        labels = np.asarray(self.estimator.labels_)
        at = places if self.places is None else np.searchsorted(self.places, places)
        return number_by_appearance(labels[at])[1]


class Sampler:
    """Nested samples of rows."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._order: np.ndarray | None = None

    def places(self, size: int | None) -> np.ndarray | None:
        """Return the row indices of a sample, ascending; None for all rows."""
        if size is None or size >= self._n_rows:
            return None
        if self._order is None:
            self._order = np.random.RandomState(SAMPLE_SEED).permutation(self._n_rows)
        return np.sort(self._order[:size])


def fit_candidates(
    families: Mapping[str, Family],
    take: Callable[[np.ndarray | None], Any],
    n_rows: int,
    *,
    links: sp.csr_array | None,
    time_budget: float | None,
    settings: Mapping[str, Any],
) -> Iterator[Fitted]:
    """Fit candidates one after the other.

    Parameters
    ----------
    families : mapping of Family
    take : callable
        Returns the rows at some indices, or all.
    n_rows : int
        Number of rows.
    links : CSR array, optional
        The neighbour graph of the rows that 'merged' is fitted to.
    time_budget : float, optional
        Seconds after which no further candidate is started; the first is always fitted.
    settings : mapping
        Parameters set on all estimators that have them.
    """
    begun = time.perf_counter()
    sampler = Sampler(n_rows)
    mixture: MergedMixture | None = None
    for method, family in families.items():
        start = time.perf_counter()
        late = time_budget is not None and start - begun >= time_budget
        if late and method != next(iter(families)):
            yield Fitted(method, None, None, 0.0, f"left out: {time_budget:g} s had passed")
            continue
        places = sampler.places(family.most_rows)
        rows = take(places)
        if family.most_columns is not None and rows.shape[1] > family.most_columns:
            note = f"left out: covariance matrices of more than {family.most_columns:,} columns"
            yield Fitted(method, None, None, 0.0, note)
            continue
        estimator = clone(family.estimator)
        known = estimator.get_params(deep=False)
        estimator.set_params(**{name: settings[name] for name in settings if name in known})
        notes = [] if places is None else [f"fitted to a sample of {len(places)} rows"]
        rows = take(places)
        if sp.issparse(rows) and not get_tags(estimator).input_tags.sparse:
            yield Fitted(method, None, None, 0.0, "left out: it takes no sparse matrix")
            continue
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if mixture is not None and isinstance(estimator, MergedMixture):
                    estimator.take(mixture, rows, links)  # it has been fitted already
                else:
                    estimator.fit(rows)
        except Exception as error:  # reported in the note; other candidates go on
            yield Fitted(method, None, None, time.perf_counter() - start, f"failed: {_line(error)}")
            continue
        notes += [_line(warning.message) for warning in caught]
        fitted = Fitted(
            method, estimator, places, time.perf_counter() - start, "; ".join(dict.fromkeys(notes))
        )
        if isinstance(estimator, MergedMixture):
            mixture = estimator
        yield fitted


def _line(message: Any) -> str:
    return " ".join(str(message).split())
