"""Layers: nested clusterings of the same rows, coarse to fine, from the plateaus of a path.

The clusterings of a path are refined one by one, so those of a coarse plateau need not be unions of
those of a finer one. They are nested from the finest layer up: each cluster joins the cluster of
the next coarser plateau that has most of its rows. The rows on the border between two coarse
clusters that change sides by this are *moved*. A plateau with a cluster that no finer cluster has
most of its rows in is no layer: its clusters are not made of those of the finer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from countless._labels import NOISE, number_by_appearance
from countless._show import Records, Shown


class Layer(NamedTuple):
    """One layer of a tree of clusters."""

    n_clusters: int
    penalty: float  # of its plateau
    score: float  # the evidence for its number of clusters
    n_moved: int  # rows that are in another cluster than at this penalty


class LayerTree(Shown):
    """Which cluster of each layer lies in which of the next coarser one.

    Attributes
    ----------
    layers : list of Layer
        Coarse to fine.
    parents : list of ndarray
        ``parents[j][c]`` is the cluster of layer ``j - 1`` that has the rows of cluster ``c`` of
        layer ``j``; 0 for all clusters of the first.
    sizes : list of ndarray
        The number of rows of each cluster of each layer.
    """

    def __init__(self, layers: list[Layer], parents: list[np.ndarray], sizes: list[np.ndarray]):
        self.layers, self.parents, self.sizes = Records(layers), parents, sizes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_clusters={self.n_clusters})"

    def _describe(self) -> tuple[list[str], Records]:
        counts = " > ".join(map(str, self.n_clusters))
        return [f"{type(self).__name__}: {counts} clusters, coarse to fine"], self.layers

    @property
    def n_clusters(self) -> list[int]:
        """The number of clusters of each layer."""
        return [layer.n_clusters for layer in self.layers]

    def lines(self) -> list[str]:
        """Return the tree as text: one line for each cluster, indented by its layer.

        Examples
        --------
        >>> layers = [Layer(1, 9.0, 0.0, 0), Layer(2, 1.0, 5.0, 0)]
        >>> parents = [np.array([0]), np.array([0, 0])]
        >>> tree = LayerTree(layers, parents, [np.array([5]), np.array([3, 2])])
        >>> print("\\n".join(tree.lines()))
        0: 5 rows
          0: 3 rows
          1: 2 rows
        """
        found: list[str] = []
        stack = [(0, c) for c in range(len(self.sizes[0]) - 1, -1, -1)]
        while stack:
            depth, cluster = stack.pop()
            size = int(self.sizes[depth][cluster])
            found.append(f"{'  ' * depth}{cluster}: {size} row{'s' if size != 1 else ''}")
            if depth + 1 < len(self.sizes):
                inside = np.flatnonzero(self.parents[depth + 1] == cluster)
                stack += [(depth + 1, int(c)) for c in inside[::-1]]
        return found


class Layers(NamedTuple):
    """The layers of some rows."""

    labels: np.ndarray  # (n_layers, n_rows) coarse to fine; -1 is noise
    moved: list[np.ndarray]  # of each layer, the rows that are in another cluster on the path
    tree: LayerTree


def nest(
    labelings: Mapping[int, np.ndarray], keep: int
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Make clusterings nested, from the finest up.

    Parameters
    ----------
    labelings : mapping from int to ndarray of shape (n_rows,)
        Labels 0, 1, ... by the number of clusters. Rows that are noise in one are so in all.
    keep : int
        The number of clusters that must be a layer: finer ones that its clusters are not made of
        are left out.

    Returns
    -------
    dict from int to (labels, moved)
        By the number of clusters, ascending: nested labels, numbered by first appearance, and the
        indices of the rows that they move.

    Examples
    --------
    >>> fine, coarse = np.array([0, 0, 1, 1, 2, 2, 2]), np.array([0, 0, 0, 0, 0, 1, 1])
    >>> for labels, moved in nest({3: fine, 2: coarse}, keep=2).values():
    ...     print(labels.tolist(), moved.tolist())
    [0, 0, 0, 0, 1, 1, 1] [4]
    [0, 0, 1, 1, 2, 2, 2] []
    """
    left = sorted(labelings, reverse=True)
    while True:
        found = {left[0]: (_numbered(labelings[left[0]]), np.empty(0, dtype=np.intp))}
        finer = found[left[0]][0]
        for k in left[1:]:
            inside = finer != NOISE
            shared = np.zeros((int(finer.max(initial=NOISE)) + 1, k), dtype=np.int64)
            np.add.at(shared, (finer[inside], labelings[k][inside]), 1)
            parent = shared.argmax(axis=1)
            if len(np.unique(parent)) < k:
                continue
            joined = np.where(inside, parent[finer], NOISE)
            moved = np.flatnonzero(joined != labelings[k])
            finer = _numbered(joined)
            found[k] = finer, moved
        if keep in found:
            return dict(sorted(found.items()))
        del left[0]  # finer than the layer to keep


def tree_of_layers(labels: np.ndarray, layers: list[Layer]) -> LayerTree:
    """Return which cluster of each layer lies in which of the next coarser one."""
    parents, sizes = [], []
    coarser = np.zeros(labels.shape[1], dtype=np.int32)
    for own, layer in zip(labels, layers, strict=True):
        inside = own != NOISE
        parent = np.zeros(layer.n_clusters, dtype=np.int64)
        parent[own[inside]] = coarser[inside]
        parents.append(parent)
        sizes.append(np.bincount(own[inside], minlength=layer.n_clusters))
        coarser = own
    return LayerTree(layers, parents, sizes)


def _numbered(labels: np.ndarray) -> np.ndarray:
    """Number the clusters by first appearance; noise stays."""
    full = np.full(len(labels), NOISE, dtype=np.int32)
    inside = labels != NOISE
    full[inside] = number_by_appearance(labels[inside])[1]
    return full


def pack_layers(estimator: Any) -> list[list[Any]]:
    """Return the layers of a fitted estimator as plain lists, for a file; empty without a path."""
    try:
        tree = estimator.layer_tree_
    except AttributeError:
        return []
    return [
        [*map(_finite, layer[1:3]), layer.n_moved, parent.tolist(), size.tolist()]
        for layer, parent, size in zip(tree.layers, tree.parents, tree.sizes, strict=True)
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def unpack_layers(packed: list[Any]) -> LayerTree | None:
    """Return the tree of `pack_layers`; raise ValueError if the lists are no tree of layers.

    Examples
    --------
    >>> unpack_layers([[9.0, 0.0, 0, [0], [5]], [1.0, 5.0, 0, [0, 0], [3, 2]]])
    LayerTree(n_clusters=[1, 2])
    >>> unpack_layers([[9.0, 0.0, 0, [3], [5]]])
    Traceback (most recent call last):
    ValueError: its layers are not nested
    """
    layers, parents, sizes = [], [], []
    n_coarser = 1
    for one in packed:
        if not isinstance(one, list) or len(one) != 5:
            raise ValueError("its layers have not five entries each")
        *figures, n_moved, parent, size = one
        counts = [n_moved, *parent, *size] if type(parent) is type(size) is list else [None]
        if any(x is not None and type(x) not in (int, float) for x in figures) or any(
            type(x) is not int or not 0 <= x < 2**63 for x in counts
        ):
            raise ValueError("its layers are not numbers")
        if not len(parent) == len(size) > 0 or set(parent) != set(range(n_coarser)):
            raise ValueError("its layers are not nested")
        penalty, score = (np.nan if x is None else float(x) for x in figures)
        layers.append(Layer(len(parent), penalty, score, n_moved))
        parents.append(np.array(parent))
        sizes.append(np.array(size))
        n_coarser = len(parent)
    return LayerTree(layers, parents, sizes) if layers else None


class LayeredMixin:
    """Estimators with a path, whose notable plateaus are layers of nested clusters."""

    @property
    def layers_(self) -> np.ndarray:
        """Nested labels of shape (n_layers, n_samples), coarse to fine."""
        return self._layers().labels

    @property
    def layer_moves_(self) -> list[np.ndarray]:
        """The rows of each layer that nesting has moved to another cluster."""
        return self._layers().moved

    @property
    def layer_tree_(self) -> LayerTree:
        """Which cluster of each layer lies in which of the next coarser one."""
        stored = self.__dict__.get("_layer_tree")  # of a model from a file
        return stored if stored is not None else self._layers().tree

    def _layers(self) -> Layers:
        if self.__dict__.get("_is_stream"):
            raise AttributeError("layers are those of the rows of a fit; a stream has none")
        return self.path_.layers(self.labels_)  # type: ignore[attr-defined]

    def _forget_path(self) -> None:
        """Drop the path of another fit, and what belongs to it."""
        for name in ("path_", "_layer_tree", "_is_stream"):
            self.__dict__.pop(name, None)
