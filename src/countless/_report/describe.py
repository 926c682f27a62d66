"""The clusters as a data frame: sizes, what sets each apart, its words, typical rows and a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.metrics import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from countless._auto.tables import is_graph
from countless._labels import NOISE
from countless._report.sheet import columns_of, encoded
from countless._report.summary import ClusterSummary, summarize_clusters
from countless._report.text import trait_label, trait_text
from countless._report.words import Word, count_words, distinctive_words, siblings_of
from countless.edited_clustering import labels_of
from countless.preprocess.prepare import Feature

# Typical rows, and borderline rows, of a cluster; numbers in a block of dense rows.
N_ROWS, BLOCK_NUMBERS = 3, 2**22
_PACKAGES = ("pandas", "polars")


class Notable(NamedTuple):
    """Positions of rows of one cluster."""

    typical: list[int]  # nearest to the mean first
    borderline: list[int]  # nearly as close to the mean of another cluster


def describe(
    model: Any,
    X: Any,
    *,
    names: Any = None,
    texts: Any = None,
    counts: Any = None,
    words: Any = None,
    rows: Any = None,
    classes: Any = None,
) -> Any:
    """Return what sets each cluster apart, as a data frame.

    Parameters
    ----------
    model : estimator
        Fitted, of countless or with scikit-learn's ``labels_`` or ``predict``.
    X : array-like, sparse matrix or data frame
        The rows of the fit; or other rows, whose clusters are then predicted. Rows are compared as
        they are here; in a data frame with categories or missing values numbers are standardized,
        and missing ones count as the mean.
    names : sequence of str, optional
        Names of the columns of ``X``.
    texts : sequence of str, optional
        The text of each row, whose words then describe the clusters. A word counts once in a text;
        English function words are left out.
    counts : array-like, sparse matrix or data frame of shape (n_samples, n_words), optional
        Counts of words instead of texts.
    words : sequence of str, optional
        The words of ``counts``; needed unless it is a data frame.
    rows : sequence of str, optional
        Names of the rows; by default their positions, from 0.
    classes : sequence, optional
        A known class of each row, to compare with.

    Returns
    -------
    data frame
        Of the library of ``X`` if that is a data frame, else of pandas or polars. It has a row for
        each cluster, the largest first and noise (-1) last, with the columns

        - ``cluster``, ``name``, ``size``, ``share``. Names are different, and short: the first of
          the words, or of what sets the cluster apart, or a name that was given in edits;
        - ``sets_apart``, a list of texts, and ``effect_sizes``: differences from the other rows in
          standard deviations of the column. Categories and 0/1 columns read as shares of rows;
        - ``words`` and ``log_odds``, with texts or counts: words that are more frequent than in the
          sibling clusters, those on the other side of the cluster's merge in the Ward tree of the
          clusters, by their log odds with an informative Dirichlet prior (Monroe, Colaresi and
          Quinn, 2008), ordered by the z-score beside siblings and all other clusters;
        - ``typical``, rows nearest to the mean of the cluster, and ``borderline``, rows nearly as
          close to the mean of another cluster;
        - ``class`` and ``class_share``, with classes: the most frequent one, and its share.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from countless import DPMeans, describe
    >>> iris = load_iris(as_frame=True)
    >>> model = DPMeans(random_state=0).fit(iris.data)
    >>> table = describe(model, iris.data, classes=iris.target_names[iris.target])
    >>> table[["name", "size", "typical", "class", "class_share"]].round(2)
                         name  size          typical      class  class_share
    0  high petal length (cm)    97  [123, 126, 133]  virginica         0.52
    1   low petal length (cm)    53      [7, 26, 39]     setosa         0.94
    >>> table["sets_apart"][1][0]
    'petal length (cm): 1.6, others 5.0 (-1.9 sd)'
    """
    check_is_fitted(model)
    matrix, features = _table_of(X, names)
    n_rows = matrix.shape[0]
    row_names = range(n_rows) if rows is None else _listed("rows", rows, n_rows, "rows")
    counted = _counts_of(texts, counts, words, n_rows)
    known = None if classes is None else _listed("classes", classes, n_rows, "rows")
    labels = np.asarray(labels_of(model, X)).astype(np.int64)
    summaries = _summaries(matrix, labels, features)
    found = {} if counted is None else words_of(matrix, labels, *counted)
    table: dict[str, list] = {
        "cluster": [one.label for one in summaries],
        "name": cluster_names(summaries, found, getattr(model, "cluster_names_", [])),
        "size": [one.size for one in summaries],
        "share": [one.share for one in summaries],
        "sets_apart": [[trait_text(trait) for trait in one.traits] for one in summaries],
        "effect_sizes": [[trait.difference for trait in one.traits] for one in summaries],
    }
    if counted is not None:
        lists = [found.get(label, []) for label in table["cluster"]]
        table["words"] = [[word.word for word in each] for each in lists]
        table["log_odds"] = [[word.log_odds for word in each] for each in lists]
    notable = notable_rows(matrix, labels)
    for kind in Notable._fields:
        places = [getattr(notable[label], kind) for label in table["cluster"]]
        table[kind] = [[row_names[place] for place in each] for each in places]
    if known is not None:
        table |= _classes(known, labels, table["cluster"])
    return _as_frame(table, X)


def words_of(
    matrix: Any, labels: np.ndarray, counts: Any, vocabulary: Sequence[str]
) -> dict[int, list[Word]]:
    """Return the words that set each cluster apart; noise has none.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_rows, n_features)
        The rows, from whose means the tree of the clusters is made.
    labels : ndarray of shape (n_rows,)
    counts : array or sparse matrix of shape (n_rows, n_words)
    vocabulary : sequence of str
    """
    rows = np.flatnonzero(labels != NOISE)
    groups = _groups(matrix[rows], labels[rows])
    siblings = siblings_of(groups.size, groups.total)
    found = distinctive_words(sp.csr_array(counts)[rows], vocabulary, groups.places, siblings)
    return dict(zip(groups.names.tolist(), found, strict=True))


def cluster_names(
    clusters: Sequence[ClusterSummary],
    words: dict[int, list[Word]],
    given: Sequence[str] = (),
) -> list[str]:
    """Return a name for each cluster: given by the user, or from its words or traits.

    Examples
    --------
    >>> from countless._labels import NOISE
    >>> from countless._report.summary import Trait
    >>> low = ClusterSummary(0, 12, 0.25, 3, [Trait("age", None, 20.0, 60.0, -2.0)])
    >>> cluster_names([low, low._replace(label=NOISE)], {})
    ['low age', 'noise']
    """
    ranked: list[list[str]] = []
    for one in clusters:
        if 0 <= one.label < len(given) and given[one.label]:
            ranked.append([given[one.label]])
        elif one.label == NOISE:
            ranked.append(["noise"])
        else:
            texts = [word.word for word in words.get(one.label, [])]
            ranked.append(texts or [trait_label(trait) for trait in one.traits])
    return short_names(ranked, [f"cluster {one.label}" for one in clusters])


def notable_rows(matrix: Any, labels: np.ndarray, n_rows: int = N_ROWS) -> dict[int, Notable]:
    """Return typical and borderline rows of each cluster, and of noise.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [4.0], [9.0], [10.0]])
    >>> notable_rows(X, np.array([0, 0, 0, 0, 1, 1]), n_rows=1)[0]
    Notable(typical=[2], borderline=[3])
    """
    groups = _groups(matrix, labels)
    means = groups.total / groups.size[:, None]
    distance, margin = np.empty(len(labels)), np.empty(len(labels))
    for start, block in _dense_blocks(matrix):
        part = slice(start, start + len(block))
        own = groups.places[part]
        distance[part] = np.square(block - means[own]).sum(axis=1)
        others = euclidean_distances(block, means, squared=True)
        others[:, groups.names == NOISE] = np.inf
        others[np.arange(len(block)), own] = np.inf
        margin[part] = others.min(axis=1) - distance[part]
    found = {}
    for place, cluster in enumerate(groups.names.tolist()):
        mine = np.flatnonzero(groups.places == place)
        mine = mine[np.argsort(distance[mine], kind="stable")]
        typical, rest = mine[:n_rows], np.sort(mine[n_rows:])
        rest = rest[np.isfinite(margin[rest]) & (cluster != NOISE)]
        borderline = rest[np.argsort(margin[rest], kind="stable")[:n_rows]]
        found[cluster] = Notable(typical.tolist(), borderline.tolist())
    return found


class Groups(NamedTuple):
    """Sums of rows by label."""

    names: np.ndarray  # (n_groups,) labels
    places: np.ndarray  # (n_rows,) the place of each row's label among them
    size: np.ndarray  # (n_groups,)
    total: np.ndarray  # (n_groups, n_features)


def _groups(matrix: Any, labels: np.ndarray) -> Groups:
    names, index, size = np.unique(labels, return_inverse=True, return_counts=True)
    member = sp.csr_array((np.ones(len(index)), (index, np.arange(len(index)))))
    total = member @ matrix
    return Groups(
        names, index, size.astype(float), total.toarray() if sp.issparse(total) else total
    )


def _dense_blocks(matrix: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Return the position of the first row and the rows of each block."""
    length = max(1, BLOCK_NUMBERS // max(1, matrix.shape[1]))
    for start in range(0, matrix.shape[0], length):
        block = matrix[start : start + length]
        yield start, block.toarray() if sp.issparse(block) else block


def _summaries(
    matrix: Any, labels: np.ndarray, features: Sequence[Feature]
) -> list[ClusterSummary]:
    def visit(function: Callable[..., Any]) -> Iterator[Any]:
        for start, block in _dense_blocks(matrix):
            yield function(start, block, labels[start : start + len(block)], None)

    return summarize_clusters(matrix, labels, features, visit=visit)


def _table_of(X: Any, names: Any) -> tuple[Any, list[Feature]]:
    """Return the rows as numbers, and what their columns mean."""
    if is_graph(X):
        raise ValueError("X is a graph: give the columns that describe its nodes instead")
    is_frame = isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)
    array: Any = X if is_frame or sp.issparse(X) else np.asarray(X)
    if is_frame or array.dtype.kind not in "biuf":
        columns = columns_of(X)
        if names is not None:
            given = _listed("names", names, len(columns), "columns")
            columns = [
                one._replace(name=str(name)) for one, name in zip(columns, given, strict=True)
            ]
        return encoded(columns)
    if array.ndim != 2:
        raise ValueError(f"X must have two dimensions; got {array.ndim}")
    array = (sp.csr_array(array) if sp.issparse(array) else array).astype(np.float64, copy=False)
    _check_finite("X", array)
    n_columns = array.shape[1]
    if names is None:
        names = [f"column {at}" for at in range(n_columns)]
    names = _listed("names", names, n_columns, "columns")
    return array, [Feature(str(name), None, 0.0, 1.0) for name in names]


def _check_finite(what: str, array: Any) -> None:
    entries = sp.coo_array(array) if sp.issparse(array) else None
    wrong = np.flatnonzero(~np.isfinite(array.ravel() if entries is None else entries.data))
    if not len(wrong):
        return
    row, column = (
        divmod(int(wrong[0]), array.shape[1])
        if entries is None
        else (int(place[wrong[0]]) for place in entries.coords)
    )
    raise ValueError(f"{what}: row {row}, column {column} is {array[row, column]}")


def _listed(what: str, values: Any, n: int, of: str) -> list[Any]:
    """Return one value for each row or column."""
    if isinstance(values, str):
        raise ValueError(f"{what} must be a list with one entry for each of the {n} {of}; got text")
    found = list(values)
    if len(found) != n:
        raise ValueError(f"{what} has {len(found)} entries for {n} {of}")
    return found


def _counts_of(texts: Any, counts: Any, words: Any, n_rows: int) -> tuple[Any, list[str]] | None:
    """Return the counts of words in each row, and the words; None if there are none."""
    if texts is not None and counts is not None:
        raise ValueError("give texts or counts, not both")
    if words is not None and counts is None:
        raise ValueError("words are the columns of counts, which is missing")
    if texts is not None:
        return count_words(_listed("texts", texts, n_rows, "rows"))
    if counts is None:
        return None
    frame = nw.from_native(counts, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        words = frame.columns if words is None else words
        counts = frame.to_numpy()
    if words is None:
        raise ValueError("words must name the columns of counts")
    table = sp.csr_array(counts, dtype=np.float64)
    if table.shape[0] != n_rows:
        raise ValueError(f"counts has {table.shape[0]} rows for {n_rows} rows of X")
    _check_finite("counts", table)
    negative = np.flatnonzero(table.data < 0)
    if len(negative):
        row = int(np.searchsorted(table.indptr, negative[0], side="right")) - 1
        raise ValueError(f"counts: row {row} has a negative count")
    return table, [str(word) for word in _listed("words", words, table.shape[1], "columns")]


def _classes(classes: Sequence[Any], labels: np.ndarray, clusters: list[int]) -> dict[str, list]:
    """Return the most frequent class of each cluster, and its share."""
    common: list[Any] = []
    shares: list[float] = []
    for cluster in clusters:
        mine = np.flatnonzero(labels == cluster).tolist()
        [(name, count)] = Counter(classes[row] for row in mine).most_common(1)
        common.append(name)
        shares.append(count / len(mine))
    return {"class": common, "class_share": shares}


def _as_frame(table: dict[str, list], X: Any) -> Any:
    """Return a data frame of the library of X, or of one that is installed."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    backend: Any = frame.implementation if isinstance(frame, nw.DataFrame) else _installed()
    return nw.from_dict(table, backend=backend).to_native()


def _installed() -> str:
    for package in _PACKAGES:
        if find_spec(package) is not None:
            return package
    raise ImportError("describe returns a data frame: pip install pandas (or polars)")


def short_names(ranked: Sequence[Sequence[str]], fallback: Sequence[str]) -> list[str]:
    """Return a name for each cluster; all are different.

    The name is the first of the texts: one text changes more rarely than several do when rows are
    resampled. Clusters that would share a name take their next texts, too.

    Parameters
    ----------
    ranked : sequence of sequences of str
        What sets each cluster apart, most first.
    fallback : sequence of str
        The different names of clusters that nothing sets apart, or nothing else than others.

    Examples
    --------
    >>> short_names([["ice", "puck"], ["ice", "rink"], []], ["cluster 0", "cluster 1", "cluster 2"])
    ['ice, puck', 'ice, rink', 'cluster 2']
    """
    lengths = [1] * len(ranked)
    while True:
        names = [
            ", ".join(texts[:length]) or other
            for texts, length, other in zip(ranked, lengths, fallback, strict=True)
        ]
        shared = [at for at, name in enumerate(names) if names.count(name) > 1]
        longer = [at for at in shared if lengths[at] < len(ranked[at])]
        if not longer:
            break
        for at in longer:
            lengths[at] += 1
    for at in shared:
        names[at] = f"{names[at]} ({fallback[at]})"
    return names
