"""What a sampler asks of the clusters of any model, and the loops that hold for all of them.

The clusters of a model are a named tuple of arrays with room for so many clusters. Its first field,
``statistics`` (room, width), adds up over rows; all other fields follow from it by ``refresh``.
The functions below are chosen by the type of the named tuple when numba compiles the caller.
``rows`` is a C-ordered array of floats, as ``BoundModel.rows`` makes it.
"""

import numpy as np
from numba import njit
from numba.extending import overload

from countless.kernels.arrays import borrowed


def refresh(clusters, c):
    """Recompute what follows from ``clusters.statistics[c]``."""
    raise NotImplementedError("compiled code only")


def add_row(clusters, c, rows, i):
    """Add row ``i`` to cluster ``c``."""
    raise NotImplementedError("compiled code only")


def remove_row(clusters, c, rows, i):
    """Take row ``i`` out of cluster ``c``, which has it."""
    raise NotImplementedError("compiled code only")


def log_predictive(clusters, c, rows, i):
    """Return the log density of row ``i`` given the rows of cluster ``c``; an empty one will do."""
    raise NotImplementedError("compiled code only")


def log_predictive_row(clusters, n_clusters, rows, i, own, out):
    """Fill ``out[c]`` with the log density of row ``i`` given each of the first clusters.

    ``own`` is the cluster that has the row, whose other rows are then meant, or -1; NaN there
    says that ``log_predictive_without`` is to be asked. This is where a sampler spends its time,
    so that clusters lie side by side for it.
    """
    raise NotImplementedError("compiled code only")


def log_predictive_without(clusters, c, rows, i):
    """Return the log density of row ``i`` given the other rows of its own cluster ``c``.

    A row that stays where it is then costs no update at all.
    """
    raise NotImplementedError("compiled code only")


def log_marginal(clusters, c):
    """Return the log density of all rows of cluster ``c``, its parameters integrated out."""
    raise NotImplementedError("compiled code only")


def fill_tables(clusters, tables):
    """Fill ``tables`` (width, n_counts) with what a count alone adds to a log marginal.

    Which rows of it have a meaning, and which, is between the model and itself.
    """
    raise NotImplementedError("compiled code only")


def log_marginals_together(clusters, tables, statistics, x, others, n_others, out):
    """Fill ``out[m]`` with the log density of the rows of x and of ``others[m]`` together.

    x and the first others are places in ``statistics`` (n_places, width). ``clusters`` is a place
    to work: the more it has room for, the more pairs are found side by side. Counts beyond the
    tables are computed, so that tables of no length will do.
    """
    raise NotImplementedError("compiled code only")


def implement(clusters_type, **answers):
    """Say which compiled function answers each question for clusters of this named tuple.

    ``refresh``, ``add_row``, ``remove_row``, ``log_predictive``, ``log_predictive_without`` and
    ``log_marginal`` must be there; ``log_predictive_row``, ``fill_tables`` and
    ``log_marginals_together`` are made of the others where they are missing.
    """
    for name in _OPTIONAL:
        answers.setdefault(name, None)
    missing = _QUESTIONS.keys() ^ answers.keys()
    if missing:
        raise TypeError(
            f"{clusters_type.__name__}: missing or unknown {', '.join(sorted(missing))}"
        )
    for name, answer in answers.items():
        question = _QUESTIONS[name]
        if name in ("refresh", "log_marginal"):
            _register_for_cluster(question, clusters_type, answer)
        elif name == "log_predictive_row":
            _register_for_clusters(question, clusters_type, answer)
        elif name == "fill_tables":
            _register_for_tables(question, clusters_type, answer)
        elif name == "log_marginals_together":
            _register_for_pairs(question, clusters_type, answer)
        else:
            _register_for_row(question, clusters_type, answer)


_QUESTIONS = {
    question.__name__: question
    for question in (
        refresh,
        add_row,
        remove_row,
        log_predictive,
        log_predictive_row,
        log_predictive_without,
        log_marginal,
        fill_tables,
        log_marginals_together,
    )
}
_OPTIONAL = ("log_predictive_row", "fill_tables", "log_marginals_together")


def _is(clusters, clusters_type):
    return getattr(clusters, "instance_class", None) is clusters_type


def _named(answer, question, clusters_type):
    # Compiled code is cached under this name: two answers under one would be taken for each other.
    answer.__qualname__ = f"{question.__name__}_of_{clusters_type.__qualname__}"
    return answer


# numba reads the names of arguments, so that each number of them needs a function of its own.
def _register_for_cluster(question, clusters_type, answer):
    def forward(clusters, c):
        return answer(borrowed(clusters), c)

    @overload(question, inline="always")
    def choose(clusters, c):
        if _is(clusters, clusters_type):
            return _named(forward, question, clusters_type)


def _register_for_row(question, clusters_type, answer):
    def forward(clusters, c, rows, i):
        return answer(borrowed(clusters), c, rows, i)

    @overload(question, inline="always")
    def choose(clusters, c, rows, i):
        if _is(clusters, clusters_type):
            return _named(forward, question, clusters_type)


def _register_for_clusters(question, clusters_type, answer):
    def forward(clusters, n_clusters, rows, i, own, out):
        answer(borrowed(clusters), n_clusters, rows, i, own, out)

    def one_by_one(clusters, n_clusters, rows, i, own, out):
        for c in range(n_clusters):
            out[c] = log_predictive(clusters, c, rows, i)
        if own >= 0:
            out[own] = log_predictive_without(clusters, own, rows, i)

    @overload(question, inline="always")
    def choose(clusters, n_clusters, rows, i, own, out):
        if _is(clusters, clusters_type):
            return _named(one_by_one if answer is None else forward, question, clusters_type)


def _register_for_tables(question, clusters_type, answer):
    def forward(clusters, tables):
        answer(clusters, tables)

    def nothing(clusters, tables):
        pass

    @overload(question, inline="always")
    def choose(clusters, tables):
        if _is(clusters, clusters_type):
            return _named(nothing if answer is None else forward, question, clusters_type)


def _register_for_pairs(question, clusters_type, answer):
    def forward(clusters, tables, statistics, x, others, n_others, out):
        answer(clusters, tables, statistics, x, others, n_others, out)

    def one_by_one(clusters, tables, statistics, x, others, n_others, out):
        for m in range(n_others):
            clusters.statistics[0] = statistics[x] + statistics[others[m]]
            refresh(clusters, 0)
            out[m] = log_marginal(clusters, 0)

    @overload(question, inline="always")
    def choose(clusters, tables, statistics, x, others, n_others, out):
        if _is(clusters, clusters_type):
            return _named(one_by_one if answer is None else forward, question, clusters_type)


@njit(nogil=True, cache=True)
def set_statistics(
    clusters,  # OUT
    c,  # IN
    statistics,  # IN (width,)
):
    """Give cluster ``c`` these statistics."""
    for w in range(statistics.shape[0]):
        clusters.statistics[c, w] = statistics[w]
    refresh(clusters, c)


@njit(nogil=True, cache=True)
def clear(
    clusters,  # OUT
    c,  # IN
):
    """Empty cluster ``c``; nothing of its rows, not even a rounding error, stays behind."""
    clusters.statistics[c] = 0.0
    refresh(clusters, c)


@njit(nogil=True, cache=True)
def count_rows(
    clusters,  # IN and OUT, cleared
    rows,  # IN (n_rows, n_features)
    labels,  # IN (n_rows,), a row with a negative label is left out
):
    """Add every row to the cluster that its label names."""
    for i in range(rows.shape[0]):
        if labels[i] >= 0:
            add_row(clusters, labels[i], rows, i)


@njit(nogil=True, cache=True)
def log_marginals(
    clusters,  # IN workspace, at least one cluster
    statistics,  # IN (n_sets, width)
    out,  # OUT (n_sets,)
):
    """Find the log marginal likelihood of each set of statistics."""
    clusters = borrowed(clusters)
    for m in range(statistics.shape[0]):
        set_statistics(clusters, 0, statistics[m])
        out[m] = log_marginal(clusters, 0)


@njit(nogil=True, cache=True)
def look_up_counts(
    tables,  # IN (width, n_counts)
    statistics,  # IN (n_places, width), counts from ``begin`` on
    x,  # IN
    y,  # IN
    begin,  # IN
):
    """Add up what the counts of places x and y together add; NaN where one is beyond the tables.

    Every step of this loop counts: models of categories spend their time here.
    """
    flat = tables.ravel()
    n_counts = np.uint64(tables.shape[1])
    if n_counts == 0:
        return np.nan
    total, largest = 0.0, np.uint64(0)
    for w in range(begin, statistics.shape[1]):
        count = np.uint64(np.int64(statistics[x, w] + statistics[y, w]))
        largest = max(largest, count)
        total += flat[np.uint64(w) * n_counts + min(count, n_counts - np.uint64(1))]
    return total if largest < n_counts else np.nan


@njit(nogil=True, cache=True)
def fill_tables_of(
    clusters,  # IN
    tables,  # OUT (width, n_counts)
):
    """Tabulate what counts add to log marginals."""
    fill_tables(clusters, tables)


@njit(nogil=True, cache=True)
def log_predictives(
    clusters,  # IN
    rows,  # IN (n_rows, n_features)
    out,  # OUT (n_rows, n_clusters)
):
    """Find the log predictive density of each row given each of the first clusters."""
    for i in range(rows.shape[0]):
        log_predictive_row(clusters, out.shape[1], rows, i, -1, out[i])


@njit(nogil=True, cache=True)
def refresh_all(
    clusters,  # OUT
):
    """Recompute what follows from the statistics of every cluster."""
    for c in range(clusters.statistics.shape[0]):
        refresh(clusters, c)
