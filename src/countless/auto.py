"""Automatic choice of the clustering method, with a reason and a confidence.

Round, elliptical and connected clusters suit different data. Each family is fitted, the same
statistics are computed for every clustering (`countless._auto.choice`), and the best supported one
is returned, or one cluster if there is no significant structure.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from countless._auto.candidates import (
    FAMILIES,
    LINKED,
    MIXED_FAMILIES,
    MOST_ROWS,
    Family,
    Fitted,
    Sampler,
    families_for,
    fit_candidates,
)
from countless._auto.choice import Comparison, agreement, compare, conditional_entropy, confidence
from countless._auto.linked import are_directions, row_lengths
from countless._auto.merged import leading_components, neighbor_links
from countless._auto.tables import MixedTable, is_graph, mixed_table
from countless._compat import CallbackSupportMixin, OnPass, report_passes, with_callbacks
from countless._numbers import validate_numbers
from countless._parameters import is_number
from countless._path.layers import LayeredMixin, Layers
from countless._show import Records
from countless._threads import count_threads
from countless.dp_means import DPMeans
from countless.graph_dp_means import GraphDPMeans

ONE = "one cluster"
# Clusterings whose adjusted mutual information is above this are reported as nearly the same.
SAME = 0.95


class Candidate(NamedTuple):
    """A candidate clustering."""

    method: str
    n_clusters: int | None  # None if it failed or was left out
    evidence: float | None  # from 0 to 1; sums to 1 over candidates
    agreement: float | None  # adjusted mutual information with the clustering that was chosen
    seconds: float
    note: str


class Outcome(NamedTuple):
    """All candidates, and the chosen one."""

    candidates: list[Candidate]
    chosen: int
    fitted: Fitted
    confidence: float
    labels: dict[str, np.ndarray]  # of each candidate, on the rows used for comparison
    places: np.ndarray  # indices of those rows


class AutoClustering(LayeredMixin, CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Cluster data of any shape, without choosing a method or the number of clusters.

    Fits round, elliptical, connected and, in many columns, densely linked clusters, and returns the
    best supported ones, or one cluster if there is no significant structure.

    Parameters
    ----------
    candidates : sequence of str or mapping from str to estimator, default=None
        The candidates: some of 'round' (`DPMeans`), 'elliptical' and 'merged' (the most probable
        `DPMixture`, unchanged and with components merged that no density valley separates),
        'connected' (`SpectralDPMeans`) and 'chained' (`DivisiveClustering('mst')`); for more than
        12 columns and for rows of unit length also 'linked' (communities of the nearest-neighbour
        graph), for more than 50 and for sparse tables only that and 'round'; for a table of mixed
        columns 'columns' (`DPMixture` with a model for each column) and 'dissimilarity'
        (`LinkageClustering`). By default all that apply to the data. A mapping gives names to
        user-defined estimators.
    time_budget : float, default=None
        Seconds after which no further candidate is started; the first is always fitted.
    random_state : int, RandomState instance or None, default=None
        Passed to candidates.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row; -1 for a row of zeros among rows of unit length, which has no
        direction (a warning counts them).
    n_clusters_ : int
    best_estimator_ : estimator
        The chosen estimator, fitted; for one cluster usually a `DPMeans`.
    best_method_ : str
        Its name among the candidates, or 'one cluster'.
    candidates_ : list of Candidate
        For each candidate: ``method``, ``n_clusters``, ``evidence`` (its share, from 0 to 1: that
        of one cluster is 1 if there is no structure, and 0 otherwise), ``agreement`` with the
        chosen clustering, ``seconds``, and a ``note`` on samples, warnings and failures.
    candidate_labels_ : dict from str to ndarray
        The clusters of each candidate, on the rows used for comparison.
    compared_rows_ : ndarray
        The indices of those rows.
    confidence_ : float
        The probability that the number of clusters is right, from 0 to 1, calibrated on generated
        data sets with known clusters.
    reason_ : str
        The reason for the choice, in a sentence.
    path_ : PenaltyPath or SpectrumPath
        The path of ``best_estimator_``, if it has one.
    layers_, layer_tree_, layer_moves_ : ndarray, LayerTree, list of ndarray
        As in `DPMeans`, if ``best_estimator_`` has a path of all rows.
    n_iter_, converged_ : int, bool
        Those of ``best_estimator_``.
    n_features_in_ : int

    Notes
    -----
    Most candidates are fitted to a sample of 5,000 rows of a longer table, on which all are
    compared, and the other rows are labelled by ``predict``; the round candidate and, in more than
    50 columns, the linked one are fitted to all rows. The sample does not depend on
    ``random_state``.

    Whether rows have unit length is looked at once, in the fit. Then directions are compared, and
    `reason_` says so.

    `save_model` writes ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from countless import AutoClustering
    >>> X, _ = make_moons(400, noise=0.05, random_state=0)
    >>> model = AutoClustering(random_state=0).fit(X)
    >>> model.n_clusters_, model.best_method_
    (2, 'connected')
    >>> for candidate in model.candidates_:
    ...     print(candidate.method, candidate.n_clusters)
    one cluster 1
    round 12
    elliptical 10
    merged 2
    connected 2
    chained 2
    """

    def __init__(self, candidates=None, *, time_budget=None, random_state=None, n_jobs=None):
        self.candidates = candidates
        self.time_budget = time_budget
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster rows, the rows of a data frame, or the nodes of a graph.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), data frame, or graph
            Numeric rows; a pandas, polars or PyArrow data frame whose columns may be of any type
            and have missing values; or a graph: of networkx or igraph, or a symmetric sparse
            matrix.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_graph(X):
            return self._fit_graph(X)
        table = mixed_table(X)
        self._mixed = table is not None
        if table is not None:
            validate_data(self, X, reset=True, skip_check_array=True)
            self._directional = False
            with report_passes(self, X) as on_pass:
                outcome = self._compare(table, self._families(MIXED_FAMILIES), on_pass)
            return self._store(outcome, X, table.numbers)
        X = validate_numbers(self, X, reset=True, accept_sparse="csr", ensure_min_samples=2)
        lengths = row_lengths(X)
        self._directional = are_directions(lengths, X.shape[1])
        usual = families_for(X.shape[1], is_directional=self._directional, is_sparse=sp.issparse(X))
        kept = self._kept(lengths)
        if kept is not None:
            X = X[kept]
        with report_passes(self, X) as on_pass:
            outcome = self._compare(X, self._families(usual), on_pass)
        self._store(outcome, X, X)
        if kept is not None:
            self._label_zeros(kept, len(lengths))
        return self

    @available_if(
        lambda self: not hasattr(self, "labels_") or hasattr(self.best_estimator_, "predict")
    )
    def predict(self, X):
        """Return the cluster of each row of X, predicted by ``best_estimator_``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "best_estimator_")
        if self._mixed:
            validate_data(self, X, reset=False, skip_check_array=True)
            if self.best_method_ == ONE:
                return np.zeros(len(X), dtype=np.int32)
        else:
            X = validate_numbers(self, X, reset=False, accept_sparse="csr")
        if not self._directional:
            return self.best_estimator_.predict(X)
        labels = np.full(X.shape[0], -1, dtype=np.int32)
        known = row_lengths(X) > 0
        if known.any():
            labels[known] = self.best_estimator_.predict(X[known])
        return labels

    @property
    def path_(self):
        return self.best_estimator_.path_

    def _layers(self) -> Layers:
        check_is_fitted(self, "best_estimator_")
        if len(getattr(self.best_estimator_, "labels_", self.labels_)) != len(self.labels_):
            raise AttributeError("the chosen clusters were found on a sample: it alone has layers")
        return super()._layers()

    def _kept(self, lengths: np.ndarray) -> np.ndarray | None:
        """Return the indices of the rows that have a direction; None if all have, or none need."""
        kept = np.flatnonzero(lengths)
        if not self._directional or len(kept) == len(lengths):
            return None
        if len(kept) < 2:
            raise ValueError(f"X has {len(kept)} row that is not zero; at least 2 are needed")
        n_zero = len(lengths) - len(kept)
        warnings.warn(
            f"{n_zero} of {len(lengths)} rows are zero and have no direction: their label is -1",
            stacklevel=4,  # this method, fit, scikit-learn's wrapper: the caller
        )
        return kept

    def _check_parameters(self) -> None:
        count_threads(self.n_jobs)
        if self.time_budget is not None and not (is_number(self.time_budget) and self.time_budget):
            raise ValueError(
                f"time_budget must be None or a number above 0; got {self.time_budget!r}"
            )

    def _families(self, usual: Mapping[str, Family]) -> dict[str, Family]:
        """Return the candidate families."""
        given = self.candidates
        if given is None:
            return dict(usual)
        if isinstance(given, Mapping):
            if not given or not all(hasattr(estimator, "fit") for estimator in given.values()):
                raise ValueError("candidates must map names to estimators, one at least")
            return {name: Family(one, None, f"Clusters by {name}") for name, one in given.items()}
        if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
            raise ValueError(f"candidates must be None, names or a mapping; got {given!r}")
        for name in given:
            if name not in usual:
                known = ", ".join(map(repr, usual))
                raise ValueError(f"candidates must be among {known} for this data; got {name!r}")
        return {name: usual[name] for name in usual if name in given}

    def _compare(self, data: Any, families: Mapping[str, Family], on_pass: OnPass) -> Outcome:
        """Fit all candidates and choose between them."""
        numbers = data.numbers if isinstance(data, MixedTable) else data
        n_rows = numbers.shape[0]
        # Candidates are compared on rows that all of them were fitted to.
        fewest = min(family.most_rows or MOST_ROWS for family in families.values())
        shown = Sampler(n_rows).places(fewest)
        compared = numbers if shown is None else numbers[shown]
        links = neighbor_links(compared, self.n_jobs)
        attempts = []
        for fitted in fit_candidates(
            families,
            partial(_take, data),
            n_rows,
            links=links,
            time_budget=self.time_budget,
            settings={"random_state": self.random_state, "n_jobs": self.n_jobs},
        ):
            attempts.append(fitted)
            if fitted.estimator is not None:
                on_pass(fitted.seconds, int(np.max(fitted.estimator.labels_)) + 1)
        done = [fitted for fitted in attempts if fitted.estimator is not None]
        if not done:
            reasons = "; ".join(f"{fitted.method} {fitted.note}" for fitted in attempts)
            raise ValueError(f"no candidate could be fitted: {reasons}")
        places = np.arange(n_rows) if shown is None else shown
        labels = {fitted.method: fitted.labels_at(places) for fitted in done}
        comparison = compare(_in_leading_components(compared), links, labels)
        if isinstance(data, MixedTable):
            comparison = comparison._replace(known=data.has_dependent_columns())
        return _choose(attempts, labels, places, comparison)

    def _fit_graph(self, graph: Any) -> AutoClustering:
        if self.candidates is not None:
            raise ValueError("candidates cannot be chosen for a graph, which has one: GraphDPMeans")
        model = GraphDPMeans(random_state=self.random_state).fit(graph)
        self.best_estimator_, self.best_method_ = model, "graph"
        self.labels_, self.n_clusters_ = model.labels_, model.n_clusters_
        self.n_features_in_ = model.n_features_in_
        self.n_iter_, self.converged_ = model.n_iter_, model.converged_
        self.candidates_ = Records([Candidate("graph", model.n_clusters_, None, 1.0, 0.0, "")])
        self.confidence_ = float(model.path_.confidence)
        self._directional = False
        self.reason_ = "Clusters of a graph: few links between them."
        return self

    def _store(self, outcome: Outcome, X: Any, numbers: Any) -> AutoClustering:
        """Set the fitted attributes, and label all rows."""
        chosen = outcome.candidates[outcome.chosen]
        if chosen.method == ONE:
            estimator = _one_cluster(numbers, outcome, self.n_jobs)
        else:
            estimator = outcome.fitted.estimator
        self.best_estimator_, self.best_method_ = estimator, chosen.method
        sampled = chosen.method != ONE and outcome.fitted.places is not None
        self.labels_ = estimator.predict(X) if sampled else estimator.labels_
        self.n_clusters_ = int(np.max(self.labels_)) + 1
        # A user's estimator may lack these attributes.
        self.n_iter_ = getattr(estimator, "n_iter_", 1)
        self.converged_ = bool(getattr(estimator, "converged_", True))
        self.candidates_, self.confidence_ = Records(outcome.candidates), outcome.confidence
        self.candidate_labels_, self.compared_rows_ = outcome.labels, outcome.places
        self.reason_ = _reason(outcome)
        if self._directional:
            self.reason_ += " Rows have unit length: directions are compared."
        return self

    def _label_zeros(self, kept: np.ndarray, n_rows: int) -> None:
        """Turn the labels of some rows into those of all: -1 for the others."""
        labels = np.full(n_rows, -1, dtype=np.int32)
        labels[kept] = self.labels_
        self.labels_ = labels
        self.compared_rows_ = kept[self.compared_rows_]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.sparse = True
        return tags


def _take(data: Any, places: np.ndarray | None) -> Any:
    """Return the rows at some indices, or all."""
    if isinstance(data, MixedTable):
        return data.take(places)
    return data if places is None else data[places]


def _in_leading_components(X: Any) -> np.ndarray:
    mean, components = leading_components(X)
    return X @ components.T - mean @ components.T


def _choose(
    attempts: Sequence[Fitted],
    labels: dict[str, np.ndarray],
    places: np.ndarray,
    comparison: Comparison,
) -> Outcome:
    """Choose the clustering with the highest expected agreement with the truth, or one cluster."""
    evidence = comparison.evidence()
    several = comparison.structure
    best = comparison.best() or ONE
    one = np.zeros(len(places), dtype=np.int32)
    chosen_labels = labels.get(best, one)
    candidates = [Candidate(ONE, 1, 1.0 - several, agreement(one, chosen_labels), 0.0, "")]
    for fitted in attempts:
        own = labels.get(fitted.method)
        candidates.append(
            Candidate(
                fitted.method,
                None if own is None else int(own.max()) + 1,
                None if own is None else evidence.get(fitted.method, 0.0),
                None if own is None else agreement(own, chosen_labels),
                fitted.seconds,
                fitted.note,
            )
        )
    chosen = next(i for i, one in enumerate(candidates) if one.method == best)
    n_clusters = {name: int(own.max()) + 1 for name, own in labels.items()}
    sure = confidence(comparison, n_clusters, best if several else None)
    done = [fitted for fitted in attempts if fitted.estimator is not None]
    winner = next((fitted for fitted in done if fitted.method == best), done[0])
    return Outcome(candidates, chosen, winner, sure, labels, places)


def _one_cluster(numbers: Any, outcome: Outcome, n_jobs: int | None) -> Any:
    """Return an estimator with one cluster: a candidate, or DP-means with a large penalty."""
    fitted = outcome.fitted
    if fitted.places is None and not np.any(fitted.estimator.labels_):
        return fitted.estimator
    numbers = numbers.astype(np.float64)
    # With the total cost of one cluster as the penalty, one cluster is optimal.
    spread = numbers.power(2) if sp.issparse(numbers) else (numbers - numbers.mean(axis=0)) ** 2
    penalty = float(spread.sum()) or 1.0
    return DPMeans(penalty, n_jobs=n_jobs).fit(numbers)


def _reason(outcome: Outcome) -> str:
    """Return a sentence with the reason for the choice."""
    families = {**FAMILIES, "linked": LINKED, **MIXED_FAMILIES}
    chosen = outcome.candidates[outcome.chosen]
    others = [one for one in outcome.candidates[1:] if one.n_clusters is not None and one != chosen]
    if chosen.method == ONE:
        if all(one.n_clusters == 1 for one in others):
            return "One cluster: no method finds more."
        if others[0].method in MIXED_FAMILIES:
            return "One cluster: the columns do not depend on each other."
        return "One cluster: where methods would cut it, the rows are as dense as on either side."
    what = families[chosen.method].clusters if chosen.method in families else chosen.method
    # 'merged' is left out: it is the same mixture as 'elliptical'.
    several = [one for one in others if (one.n_clusters or 1) > 1 and one.method != "merged"]
    if not several:
        return f"{what}: no other method finds more than one cluster."
    different = [one for one in several if (one.agreement or 0.0) <= SAME]
    if not different:
        return f"{what}: {_enumerate([one.method for one in several])} ones are nearly the same."
    rival = max(different, key=lambda one: one.evidence or 0.0)
    finer = _pieces(outcome, rival.method, chosen.method)
    coarser = _pieces(outcome, chosen.method, rival.method)
    if finer > 2 * coarser:
        return f"{what}: {rival.method} ones would cut them into {rival.n_clusters} pieces."
    if coarser > 2 * finer:
        return f"{what}: {rival.method} ones would join some that are separate."
    return f"{what}: the borders of {rival.method} ones are less clear."


def _pieces(outcome: Outcome, method: str, given: str) -> float:
    """Return the conditional entropy of one clustering given another."""
    return conditional_entropy(outcome.labels[method], outcome.labels[given])


def _enumerate(names: Sequence[str]) -> str:
    """Join names by commas and a last 'and'."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
