"""Edits of a clustering: rename, merge, split and lock clusters, or take another number of them.

Edits act on *atoms*, the rows that share a cluster of the model and a micro-cluster of its path
(`Atoms`). The page replays the same list of edits by the same rules, so that the clusters it shows
are those of the edited model.

A list of edits is a dictionary::

    {"format": "countless edits", "version": 1,
     "edits": [{"action": "choose", "n_clusters": 5},
               {"action": "rename", "cluster": 0, "name": "small"},
               {"action": "merge", "clusters": [1, 3]},
               {"action": "split", "cluster": 2},
               {"action": "lock", "cluster": 2}],
     "clusters": [{"cluster": 0, "name": "small", "rows": 120}, ...]}

Clusters have the labels of the model. A merge keeps the first of its clusters. A split gives the
smaller part the next unused number. ``choose`` takes the path's clusters at another number for all
rows that are not in a locked cluster, under the next unused numbers, or from 0 if none is locked.
``clusters`` is optional: if it is there, the result must have these sizes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countless._labels import NOISE, number_by_appearance

FORMAT, VERSION = "countless edits", 1
# A split takes the topmost merge whose smaller side has at least one row in this many of the
# cluster's; stray rows that join later stay with the larger part.
SMALLEST_PART = 20
MOST_EDITS, LONGEST_NAME = 10_000, 200

_KEYS = {
    "choose": {"n_clusters"},
    "rename": {"cluster", "name"},
    "merge": {"clusters"},
    "split": {"cluster"},
    "lock": {"cluster"},
    "unlock": {"cluster"},
}


class Atoms(NamedTuple):
    """Groups of rows that edits cannot separate, and the merges of their micro-clusters."""

    base: np.ndarray  # (n_atoms,) the cluster of the model
    item: np.ndarray  # (n_atoms,) the micro-cluster; 0 without a path
    rows: np.ndarray  # (n_atoms,) how many rows
    children: np.ndarray  # (m - 1, 2) merges of micro-clusters; empty without a path
    refined: Mapping[int, np.ndarray]  # labels of micro-clusters by number of clusters

    @property
    def n_items(self) -> int:
        return len(self.children) + 1


@dataclass
class State:
    """The clusters after some edits."""

    label: np.ndarray  # (n_atoms,) numbers of clusters; -1 is noise
    names: dict[int, str] = field(default_factory=dict)
    locked: set[int] = field(default_factory=set)
    unused: int = 0  # the next unused number


def find_atoms(labels: np.ndarray, merges: Any = None) -> tuple[Atoms, np.ndarray]:
    """Return the atoms of a clustering, and the atom of each row.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        The clusters of the model.
    merges : ItemMerges, optional
        Of the path of the same rows.

    Examples
    --------
    >>> atoms, atom = find_atoms(np.array([0, 0, 1, 0]))
    >>> atoms.rows.tolist(), atom.tolist()
    ([3, 1], [0, 0, 1, 0])
    """
    labels = np.asarray(labels).astype(np.int64)
    items = np.zeros(len(labels), dtype=np.int64)
    children, refined = np.empty((0, 2), dtype=np.int64), {}
    if merges is not None:
        items = np.asarray(merges.items).astype(np.int64)
        children, refined = merges.children, merges.refined
    pairs, atom, rows = np.unique(
        np.column_stack([labels, items]), axis=0, return_inverse=True, return_counts=True
    )
    atom = atom.ravel()  # of another shape in some versions of NumPy
    return Atoms(pairs[:, 0], pairs[:, 1], rows, children, refined), atom


def replay(atoms: Atoms, edits: Sequence[Mapping[str, Any]]) -> State:
    """Apply edits one after the other.

    Examples
    --------
    >>> atoms, _ = find_atoms(np.array([0, 0, 1, 2]))
    >>> state = replay(atoms, [{"action": "merge", "clusters": [2, 0]}])
    >>> state.label.tolist()
    [2, 1, 2]
    """
    state = State(atoms.base.copy(), unused=int(atoms.base.max(initial=-1)) + 1)
    for number, edit in enumerate(edits, start=1):
        try:
            _STEPS[edit["action"]](atoms, state, edit)
        except ValueError as error:
            raise ValueError(f"edit {number} ({edit['action']}): {error}") from None
    return state


def _choose(atoms: Atoms, state: State, edit: Mapping[str, Any]) -> None:
    k = edit["n_clusters"]
    locked = np.isin(state.label, sorted(state.locked))
    labels = _labels_at(atoms, k)
    free = ~locked & (state.label != NOISE)
    used, place = np.unique(labels[free], return_inverse=True)
    start = state.unused if locked.any() else 0
    state.label[free] = start + place
    state.unused = start + len(used)
    state.names = {c: name for c, name in state.names.items() if c in state.locked}


def _labels_at(atoms: Atoms, k: int) -> np.ndarray:
    """Return the path's cluster of each atom at a number of clusters."""
    if not len(atoms.children):
        raise ValueError("the model has no path to choose a number of clusters from")
    m = atoms.n_items
    if not 1 <= k <= m:
        raise ValueError(f"n_clusters must be from 1 to {m}; got {k}")
    if k in atoms.refined:
        return atoms.refined[k][atoms.item]
    root = np.arange(2 * m - k)
    for merge in range(m - k - 1, -1, -1):  # parents first
        root[atoms.children[merge]] = root[m + merge]
    return number_by_appearance(root[:m])[1][atoms.item]


def _rename(atoms: Atoms, state: State, edit: Mapping[str, Any]) -> None:
    state.names[_known(state, edit["cluster"])] = edit["name"]


def _merge(atoms: Atoms, state: State, edit: Mapping[str, Any]) -> None:
    first, *others = (_unlocked(state, cluster) for cluster in edit["clusters"])
    for other in others:
        state.label[state.label == other] = first
        state.names.pop(other, None)


def _split(atoms: Atoms, state: State, edit: Mapping[str, Any]) -> None:
    cluster = _unlocked(state, edit["cluster"])
    inside = state.label == cluster
    part = next_split(atoms, inside)
    if part is None:
        raise ValueError(f"cluster {cluster} has no split on the path")
    state.label[part] = state.unused
    state.unused += 1


def next_split(atoms: Atoms, inside: np.ndarray) -> np.ndarray | None:
    """Return the atoms of the smaller part of the path's next split of a cluster, or None.

    It is the topmost merge of the path that joins two considerable parts of the cluster.

    Examples
    --------
    >>> from countless._path.penalty import ItemMerges
    >>> children = np.array([[0, 1], [2, 3], [4, 5]])
    >>> atoms, _ = find_atoms(np.zeros(5, dtype=int), ItemMerges(
    ...     np.array([0, 1, 2, 3, 3]), children, np.arange(3.0), {}, None))
    >>> next_split(atoms, np.ones(4, dtype=bool)).tolist()
    [True, True, False, False]
    """
    m = atoms.n_items
    size = np.zeros(2 * m - 1, dtype=np.int64)
    np.add.at(size, atoms.item[inside], atoms.rows[inside])
    for merge, (a, b) in enumerate(atoms.children):
        size[m + merge] = size[a] + size[b]
    smaller = size[atoms.children].min(axis=1, initial=np.iinfo(np.int64).max)
    for least in (size[-1] / SMALLEST_PART, 0):
        found = np.flatnonzero((smaller > 0) & (smaller >= least))
        if len(found):
            a, b = atoms.children[found[-1]]
            return inside & _below(atoms, a if size[a] < size[b] else b)
    return None


def _below(atoms: Atoms, node: int) -> np.ndarray:
    """Return True for each atom whose micro-cluster is below a node."""
    m = atoms.n_items
    below = np.zeros(2 * m - 1, dtype=bool)
    below[node] = True
    for merge in range(m - 2, -1, -1):
        below[atoms.children[merge]] |= below[m + merge]
    return below[:m][atoms.item]


def _lock(atoms: Atoms, state: State, edit: Mapping[str, Any]) -> None:
    state.locked.add(_known(state, edit["cluster"]))


def _unlock(atoms: Atoms, state: State, edit: Mapping[str, Any]) -> None:
    state.locked.discard(_known(state, edit["cluster"]))


_STEPS = {
    "choose": _choose,
    "rename": _rename,
    "merge": _merge,
    "split": _split,
    "lock": _lock,
    "unlock": _unlock,
}


def _known(state: State, cluster: int) -> int:
    if cluster < 0 or not (state.label == cluster).any():
        raise ValueError(f"there is no cluster {cluster}")
    return cluster


def _unlocked(state: State, cluster: int) -> int:
    if _known(state, cluster) in state.locked:
        raise ValueError(f"cluster {cluster} is locked")
    return cluster


def check_sizes(atoms: Atoms, state: State, expected: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if the clusters are not those that the edits were made on."""
    found = {int(c): int(atoms.rows[state.label == c].sum()) for c in np.unique(state.label)}
    found.pop(NOISE, None)
    stated = {entry["cluster"]: entry["rows"] for entry in expected}
    if found != stated:
        raise ValueError(
            "the edits were made on another clustering: they give clusters of "
            f"{_sizes(stated)} rows, and this model clusters of {_sizes(found)}"
        )


def _sizes(sizes: Mapping[int, int]) -> str:
    shown = [f"{rows}" for _, rows in sorted(sizes.items())]
    return ", ".join(shown[:8]) + (f", ... ({len(shown)} clusters)" if len(shown) > 8 else "")


def read_edits(edits: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    """Return edits as a validated dictionary; a path is read as JSON.

    Examples
    --------
    >>> read_edits({"format": "countless edits", "version": 1, "edits": [{"action": "drop"}]})
    Traceback (most recent call last):
    ValueError: edit 1 has the action 'drop'; it must be choose, rename, merge, split, lock, unlock
    """
    if isinstance(edits, str | Path):
        try:
            edits = json.loads(Path(edits).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"cannot read {edits}: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{edits} is not JSON: {error}") from error
    if not isinstance(edits, Mapping) or edits.get("format") != FORMAT:
        raise ValueError(f"these are no edits: format must be {FORMAT!r}")
    if edits.get("version") != VERSION:
        raise ValueError(
            f"edits have version {edits.get('version')!r}; this countless reads version {VERSION}"
        )
    steps = edits.get("edits")
    if not isinstance(steps, list) or len(steps) > MOST_EDITS:
        raise ValueError(f"edits must be a list of at most {MOST_EDITS} edits")
    plain = {"format": FORMAT, "version": VERSION}
    plain["edits"] = [_checked(number, step) for number, step in enumerate(steps, start=1)]
    clusters = edits.get("clusters")
    if clusters is None:
        return plain
    if not isinstance(clusters, list) or not all(map(_is_size, clusters)):
        raise ValueError("clusters must be a list of entries with cluster and rows")
    return plain | {"clusters": [dict(entry) for entry in clusters]}


def _checked(number: int, step: Any) -> dict[str, Any]:
    action = step.get("action") if isinstance(step, Mapping) else None
    if not isinstance(action, str) or action not in _KEYS:
        known = ", ".join(_KEYS)
        raise ValueError(f"edit {number} has the action {action!r}; it must be {known}")
    if set(step) != _KEYS[action] | {"action"}:
        raise ValueError(f"edit {number} ({action}) must have {', '.join(sorted(_KEYS[action]))}")
    for key in _KEYS[action] - {"name", "clusters"}:
        if not _is_count(step[key]):
            raise ValueError(f"edit {number} ({action}): {key} must be an integer from 0 up")
    if action == "rename":
        name = step["name"]
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
            raise ValueError(
                f"edit {number} (rename): name must be text of 1 to {LONGEST_NAME} characters"
            )
    if action == "merge":
        clusters = step["clusters"]
        several = isinstance(clusters, list) and all(map(_is_count, clusters))
        if not several or len(clusters) < 2 or len(set(clusters)) < len(clusters):
            raise ValueError(f"edit {number} (merge): clusters must be two different ones or more")
    return dict(step)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_size(entry: Any) -> bool:
    return isinstance(entry, Mapping) and all(_is_count(entry.get(k)) for k in ("cluster", "rows"))
