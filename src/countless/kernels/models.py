"""The interface between samplers and the clusters of any model, and loops common to all models.

The clusters of a model are a named tuple of arrays with a fixed capacity. Its first field,
``statistics`` (capacity, width), has the additive sufficient statistics; ``refresh`` derives all
other fields from it. The functions below are dispatched on the type of the named tuple when numba
compiles the caller. ``rows`` is a C-ordered array of floats, as ``BoundModel.rows`` makes it.

numba compiles a function once more where an argument is a literal. So kernels pass indices that are
constants as ``np.int64(0)``, which is like any other index.
"""

import numpy as np
from numba import njit
from numba.extending import overload

from countless.kernels.arrays import borrowed


def refresh(clusters, c):
    """Recompute the fields derived from ``clusters.statistics[c]``."""
    raise NotImplementedError("compiled code only")


def add_row(clusters, c, rows, i):
    """Add row ``i`` to cluster ``c``."""
    raise NotImplementedError("compiled code only")


def remove_row(clusters, c, rows, i):
    """Remove row ``i`` from cluster ``c``, which contains it."""
    raise NotImplementedError("compiled code only")


def log_predictive(clusters, c, rows, i):
    """Return the log predictive density of row ``i`` given the rows of cluster ``c`` (or none)."""
    raise NotImplementedError("compiled code only")


def log_predictive_row(clusters, n_clusters, rows, i, own, out):
    """Fill ``out[c]`` with the log predictive density of row ``i`` in each of the first clusters.

    ``own`` is the cluster that contains the row, or -1; its density is given its other rows, or
    NaN where ``log_predictive_without`` must be called. Samplers spend most of their time here, so
    the arrays it reads are contiguous over clusters.
    """
    raise NotImplementedError("compiled code only")


def log_predictive_without(clusters, c, rows, i):
    """Return the log predictive density of row ``i`` given the other rows of its own cluster ``c``.

    Thus a row that does not move needs no update of the statistics.
    """
    raise NotImplementedError("compiled code only")


def log_marginal(clusters, c):
    """Return the log marginal likelihood of the rows of cluster ``c``."""
    raise NotImplementedError("compiled code only")


def fill_tables(clusters, tables):
    """Fill ``tables`` (width, n_counts) with the terms of log marginals that depend on one count.

    The layout is private to each model.
    """
    raise NotImplementedError("compiled code only")


def log_marginals_together(clusters, tables, statistics, x, others, n_others, out):
    """Fill ``out[m]`` with the log marginal likelihood of the rows of x and ``others[m]`` together.

    x and the first others are indices into ``statistics`` (n_places, width). ``clusters`` is
    workspace: the larger its capacity, the more pairs are computed in one loop. Counts beyond the
    tables are computed, so that empty tables are valid.
    """
    raise NotImplementedError("compiled code only")


def implement(clusters_type, **implementations):
    """Register the compiled functions that implement the interface for this named tuple.

    ``refresh``, ``add_row``, ``remove_row``, ``log_predictive``, ``log_predictive_without`` and
    ``log_marginal`` are required; ``log_predictive_row``, ``fill_tables`` and
    ``log_marginals_together`` are derived from the others by default.
    """
    for name in _OPTIONAL:
        implementations.setdefault(name, None)
    missing = _INTERFACE.keys() ^ implementations.keys()
    if missing:
        raise TypeError(
            f"{clusters_type.__name__}: missing or unknown {', '.join(sorted(missing))}"
        )
    for name, implementation in implementations.items():
        function = _INTERFACE[name]
        if name in ("refresh", "log_marginal"):
            _register_for_cluster(function, clusters_type, implementation)
        elif name == "log_predictive_row":
            _register_for_clusters(function, clusters_type, implementation)
        elif name == "fill_tables":
            _register_for_tables(function, clusters_type, implementation)
        elif name == "log_marginals_together":
            _register_for_pairs(function, clusters_type, implementation)
        else:
            _register_for_row(function, clusters_type, implementation)


_INTERFACE = {
    function.__name__: function
    for function in (
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


def _named(implementation, function, clusters_type):
    # Compiled code is cached under this name, so that it must be unique.
    implementation.__qualname__ = f"{function.__name__}_of_{clusters_type.__qualname__}"
    return implementation


# numba reads the names of arguments, so that each signature needs a separate function.
def _register_for_cluster(function, clusters_type, implementation):
    def forward(clusters, c):
        return implementation(borrowed(clusters), c)

    @overload(function, inline="always")
    def choose(clusters, c):
        if _is(clusters, clusters_type):
            return _named(forward, function, clusters_type)


def _register_for_row(function, clusters_type, implementation):
    def forward(clusters, c, rows, i):
        return implementation(borrowed(clusters), c, rows, i)

    @overload(function, inline="always")
    def choose(clusters, c, rows, i):
        if _is(clusters, clusters_type):
            return _named(forward, function, clusters_type)


def _register_for_clusters(function, clusters_type, implementation):
    def forward(clusters, n_clusters, rows, i, own, out):
        implementation(borrowed(clusters), n_clusters, rows, i, own, out)

    def one_by_one(clusters, n_clusters, rows, i, own, out):
        for c in range(n_clusters):
            out[c] = log_predictive(clusters, c, rows, i)
        if own >= 0:
            out[own] = log_predictive_without(clusters, own, rows, i)

    @overload(function, inline="always")
    def choose(clusters, n_clusters, rows, i, own, out):
        if _is(clusters, clusters_type):
            return _named(
                one_by_one if implementation is None else forward, function, clusters_type
            )


def _register_for_tables(function, clusters_type, implementation):
    def forward(clusters, tables):
        implementation(clusters, tables)

    def nothing(clusters, tables):
        pass

    @overload(function, inline="always")
    def choose(clusters, tables):
        if _is(clusters, clusters_type):
            return _named(forward if implementation else nothing, function, clusters_type)


def _register_for_pairs(function, clusters_type, implementation):
    def forward(clusters, tables, statistics, x, others, n_others, out):
        implementation(clusters, tables, statistics, x, others, n_others, out)

    def one_by_one(clusters, tables, statistics, x, others, n_others, out):
        for m in range(n_others):
            clusters.statistics[0] = statistics[x] + statistics[others[m]]
            refresh(clusters, np.int64(0))
            out[m] = log_marginal(clusters, np.int64(0))

    @overload(function, inline="always")
    def choose(clusters, tables, statistics, x, others, n_others, out):
        if _is(clusters, clusters_type):
            return _named(
                one_by_one if implementation is None else forward, function, clusters_type
            )


@njit(nogil=True, cache=True)
def set_statistics(
    clusters,  # OUT
    c,  # IN
    statistics,  # IN (width,)
):
    """Set the statistics of cluster ``c``."""
    for w in range(statistics.shape[0]):
        clusters.statistics[c, w] = statistics[w]
    refresh(clusters, c)


@njit(nogil=True, cache=True)
def clear(
    clusters,  # OUT
    c,  # IN
):
    """Empty cluster ``c`` exactly, without residual rounding errors."""
    clusters.statistics[c] = 0.0
    refresh(clusters, c)


@njit(nogil=True, cache=True)
def count_rows(
    clusters,  # IN and OUT, cleared
    rows,  # IN (n_rows, n_features)
    labels,  # IN (n_rows,), rows with a negative label are left out
):
    """Add every row to the cluster of its label."""
    for i in range(rows.shape[0]):
        if labels[i] >= 0:
            add_row(clusters, labels[i], rows, i)


@njit(nogil=True, cache=True)
def log_marginals(
    clusters,  # IN workspace, at least one cluster
    statistics,  # IN (n_sets, width)
    out,  # OUT (n_sets,)
):
    """Compute the log marginal likelihood of each set of statistics."""
    clusters = borrowed(clusters)
    for m in range(statistics.shape[0]):
        set_statistics(clusters, np.int64(0), statistics[m])
        out[m] = log_marginal(clusters, np.int64(0))


@njit(nogil=True, cache=True)
def look_up_counts(
    tables,  # IN (width, n_counts)
    statistics,  # IN (n_places, width), counts from ``begin`` on
    x,  # IN
    y,  # IN
    begin,  # IN
):
    """Sum the tabulated terms of the counts of x plus y; NaN where one is beyond the tables.

    This is the innermost loop of models of categories.
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
    """Tabulate the terms of log marginals that depend on one count."""
    fill_tables(clusters, tables)


@njit(nogil=True, cache=True)
def log_predictives(
    clusters,  # IN
    rows,  # IN (n_rows, n_features)
    out,  # OUT (n_rows, n_clusters)
):
    """Compute the log predictive density of each row given each of the first clusters."""
    for i in range(rows.shape[0]):
        log_predictive_row(clusters, out.shape[1], rows, i, np.int64(-1), out[i])


@njit(nogil=True, cache=True)
def refresh_all(
    clusters,  # OUT
):
    """Recompute the derived fields of every cluster."""
    for c in range(clusters.statistics.shape[0]):
        refresh(clusters, c)
