"""A clustering after edits: a model that predicts, is saved, and says that it was edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import NotFittedError

from countless._data.open import open_table
from countless._edits import Atoms, State, check_sizes, find_atoms, read_edits, replay
from countless._labels import NOISE, look_up
from countless._path.micro import assign_to
from countless._path.penalty import ItemMerges, PenaltyPath, penalty_path
from countless.divergences import get_divergence

_OF_ROWS = ("split", "choose")


class EditedClustering(ClusterMixin, BaseEstimator):
    """The clusters of a model after edits. Made by `apply_edits`.

    Attributes
    ----------
    estimator_ : estimator
        The model that was edited.
    edits_ : dict
        The edits.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row of the fit, numbered by first appearance; absent if the rows are
        not known.
    n_clusters_ : int
    cluster_names_ : list of str
        The name of each cluster, empty where it has none.
    locked_ : ndarray of bool of shape (n_clusters,)
        The clusters that were locked.
    n_features_in_ : int
    """

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "edits_"):
            return "EditedClustering()"
        counts = Counter(edit["action"] for edit in self.edits_["edits"])
        done = ", ".join(f"{count} {action}" for action, count in counts.items()) or "no edits"
        name = type(self.estimator_).__name__
        return f"<EditedClustering: {name}, {self.n_clusters_} clusters; {done}>"

    def predict(self, X: Any, **extra: Any) -> np.ndarray:
        """Return the edited cluster of each row of X.

        A row is assigned to a cluster of the model first. Where that was divided, the nearest of
        its micro-clusters decides. A row of a cluster that had no row in the fit gets -1.

        Parameters
        ----------
        X : like that of the model's predict
        **extra
            As the model's predict takes it, such as ``groups``.
        """
        if not hasattr(self, "whole_"):
            raise NotFittedError("an EditedClustering is made by apply_edits")
        base = np.asarray(self.estimator_.predict(X, **extra))
        place = np.searchsorted(self.base_, base).clip(max=len(self.base_) - 1)
        known = self.base_[place] == base
        labels = np.where(known, self.whole_[place], NOISE)
        for cluster in np.unique(self.part_base_):
            rows = np.flatnonzero(base == cluster)
            if len(rows):
                labels[rows] = self._divide(X, rows, self.part_base_ == cluster)
        return labels

    def _divide(self, X: Any, rows: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Return the cluster of rows whose cluster of the model was divided."""
        divergence = get_divergence(getattr(_core(self.estimator_), "divergence", "sqeuclidean"))
        values = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
        with open_table(values, None, divergence, None) as table:
            nearest = assign_to(table, self.prototypes_[self.part_item_[parts]])
            return look_up(self.part_label_[parts], nearest.labels)


def apply_edits(
    model: Any, edits: Mapping[str, Any] | str | Path, X: Any = None
) -> EditedClustering:
    """Return a model with the clusters that edits make of those of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted.
    edits : dict, str or Path
        The edits, or the ``edits.json`` that a report saves. Their keys are ``format`` ("countless
        edits"), ``version`` (1), ``edits``, a list of steps, and optionally ``clusters``, the sizes
        that must come out. Steps have an ``action``: ``rename`` (``cluster``, ``name``), ``merge``
        (``clusters``), ``split``, ``lock`` and ``unlock`` (``cluster``), and ``choose``
        (``n_clusters``), which takes the path's clusters at another number for all rows that are
        not in a locked cluster.
    X : array-like, optional
        The rows of the fit. Needed only for a model from a file, which does not keep its path, if
        there is a split or a choice.

    Returns
    -------
    EditedClustering

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import DPMeans, apply_edits
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    >>> model = DPMeans(random_state=0).fit(X)
    >>> steps = [{"action": "merge", "clusters": [0, 2]},
    ...          {"action": "rename", "cluster": 0, "name": "left"}]
    >>> edited = apply_edits(model, {"format": "countless edits", "version": 1, "edits": steps})
    >>> edited
    <EditedClustering: DPMeans, 3 clusters; 1 merge, 1 rename>
    >>> edited.cluster_names_
    ['left', '', '']
    >>> bool((edited.predict(X) == edited.labels_).all())
    True
    """
    given = read_edits(edits)
    if isinstance(model, EditedClustering):
        raise ValueError("the model was edited already: apply all edits to the original")
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{type(model).__name__} has no rule for new rows: its clusters cannot be edited"
        )
    labels = labels_of(model, X)
    divides = any(edit["action"] in _OF_ROWS for edit in given["edits"])
    merges = (
        merges_of(model, labels, path=path_of(model, X)) if divides and labels is not None else None
    )
    if divides and (merges is None or merges.centers is None):
        raise ValueError(_no_path(model, labels, merges))
    known = labels is not None
    clusters = np.asarray(labels) if known else np.arange(model.n_clusters_)
    atoms, atom = find_atoms(clusters, merges)
    state = replay(atoms, given["edits"])
    if "clusters" in given and known:
        check_sizes(atoms, state, given["clusters"])
    return _edited(model, given, atoms, state, state.label[atom] if known else None, merges)


def _no_path(model: Any, labels: Any, merges: Any) -> str:
    if labels is None:
        return "these edits divide clusters: give the rows of the fit as X"
    if merges is None:
        return f"these edits divide clusters, and {type(model).__name__} has no path to do it by"
    return (
        f"these edits divide clusters, and new rows cannot be compared with the path of "
        f"{type(model).__name__}"
    )


def labels_of(model: Any, X: Any = None) -> np.ndarray | None:
    """Return the clusters of the rows of the fit, or of X by prediction; None if neither is known.

    Examples
    --------
    >>> from countless import DPMeans
    >>> labels_of(DPMeans().fit([[0.0], [1.0], [9.0]])).tolist()
    [0, 0, 0]
    """
    own = getattr(model, "labels_", None)
    if own is not None and (X is None or len(own) == _n_rows(X)):
        return np.asarray(own)
    return None if X is None else np.asarray(model.predict(X))


def _n_rows(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def path_of(model: Any, X: Any = None) -> Any:
    """Return the path of a model; a DPMeans from a file has that of the rows."""
    path = getattr(model, "path_", None)
    if path is not None or X is None:
        return path
    if type(model).__name__ != "DPMeans" or not isinstance(model.penalty, str):
        return None
    return penalty_path(X, divergence=model.divergence)


def merges_of(model: Any, labels: np.ndarray, *, path: Any) -> ItemMerges | None:
    """Return the micro-clusters and merges of a path, if it is one of these rows."""
    if not isinstance(path, PenaltyPath):
        return None
    merges = path.merges()
    if len(merges.items) != len(labels) or len(merges.children) == 0:
        return None
    core = _core(model)
    if merges.centers is None and getattr(core, "metric", None) in ("euclidean", "sqeuclidean"):
        centers = np.asarray(core.X_fit_)
        if len(centers) == len(merges.children) + 1:  # a tree of rows
            return merges._replace(centers=centers)
    return merges


def _core(model: Any) -> Any:
    """Return the estimator that a selecting estimator has chosen."""
    return getattr(model, "best_estimator_", model)


def _edited(
    model: Any,
    given: dict[str, Any],
    atoms: Atoms,
    state: State,
    rows: np.ndarray | None,
    merges: ItemMerges | None,
) -> EditedClustering:
    """Store the edited clusters: whole clusters of the model, and parts of the divided ones."""
    if rows is None:
        clusters = np.unique(state.label[state.label >= 0])
        number = {int(c): i for i, c in enumerate(clusters)}
    else:
        number = {}
        for cluster in rows[np.sort(np.unique(rows, return_index=True)[1])].tolist():
            if cluster >= 0:
                number[cluster] = len(number)
    final = np.array([number.get(int(c), NOISE) for c in state.label], dtype=np.int64)
    edited = EditedClustering()
    edited.estimator_, edited.edits_ = model, given
    edited.n_clusters_ = len(number)
    if rows is not None:
        edited.labels_ = np.array([number.get(int(c), NOISE) for c in rows], dtype=np.int64)
    edited.cluster_names_ = [state.names.get(c, "") for c in number]
    edited.locked_ = np.array([c in state.locked for c in number], dtype=bool)
    edited.base_ = np.unique(atoms.base)
    whole = [np.unique(final[atoms.base == base]) for base in edited.base_]
    edited.whole_ = np.array([one[0] if len(one) == 1 else NOISE for one in whole], dtype=np.int64)
    divided = np.isin(atoms.base, edited.base_[[len(one) > 1 for one in whole]])
    edited.part_base_, edited.part_label_ = atoms.base[divided], final[divided]
    used, edited.part_item_ = np.unique(atoms.item[divided], return_inverse=True)
    if merges is not None and merges.centers is not None:
        edited.prototypes_ = np.asarray(merges.centers)[used]
    else:
        edited.prototypes_ = np.empty((0, model.n_features_in_))
    edited.n_features_in_ = model.n_features_in_
    return edited
