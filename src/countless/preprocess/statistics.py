"""Preprocessing out of core: column statistics from one pass over the parts of a table.

Ranges, means and deviations are additive over blocks, so numeric columns can be scaled and rows
with missing values left out. Text, and a median for imputation, would need the whole column: they
are rejected.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from .._data.columns import ColumnFacts, Roles, choose_columns, is_binary
from .._data.part import Part
from .._data.sources import Source
from .._data.table import PLAIN, Numbers, Table, Unusable, Words, counted, listing
from .._errors import InputError, shift_rows
from .plan import ColumnReport, block_weights, decide, numeric_step
from .prepare import NumericStep, Preparation

# Maps a function over the parts, on any machine, and returns the results in order.
Each = Callable[[Callable[[Part], "Statistics"], Sequence[Part]], list["Statistics"]]


class Statistics(NamedTuple):
    """Statistics of some columns over some rows, one value per column; additive over blocks."""

    n_rows: int
    # Positions of the rows with missing values, by blocks that have some.
    left_out: list[np.ndarray]
    weight: list[np.ndarray]  # of the rows used, by blocks, if there are weights
    total_weight: float
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    squares: np.ndarray  # sums of squares about the mean
    n_missing: np.ndarray
    first_missing: np.ndarray  # the position of the first missing value, or infinity
    binary: np.ndarray  # whether all values are 0 or 1
    offset: np.ndarray  # value minus position, if constant over all rows; else NaN

    @property
    def n_kept(self) -> int:
        """The number of rows without missing values."""
        return self.n_rows - sum(map(len, self.left_out))


class Survey(NamedTuple):
    """How a table in parts is transformed to a matrix."""

    preparation: Preparation
    columns: list[ColumnReport]
    n_rows: int
    kept: np.ndarray | range  # positions of the rows that are used
    n_kept: list[int]  # by part
    weight: np.ndarray | None

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return len(self.kept), len(self.preparation.features())


def survey_source(
    source: Source,
    first: Table,
    roles: Roles,
    *,
    missing: str,
    scale: bool,
    each: Each | None = None,
) -> Survey:
    """Compute statistics over all rows of a table in parts, and decide how each column is used.

    Parameters
    ----------
    source : Source
    first : Table
        Its first rows, which determine the kind of each column.
    roles : Roles
        The roles of columns given by the user.
    missing : {'error', 'drop'}
        Reject missing values, or leave out the rows that have one.
    scale : bool
        Whether columns are standardized to mean 0 and standard deviation 1.
    each : callable, optional
        Maps a function over the parts; by default sequentially in this thread.

    Returns
    -------
    Survey

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from countless._data.sources import open_source
    >>> path = pathlib.Path(tempfile.mkdtemp(), "t.npy")
    >>> np.save(path, np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> source = open_source(str(path))
    >>> _, first = next(source.tables())
    >>> survey = survey_source(source, first, Roles(), missing="error", scale=True)
    >>> [column.done for column in survey.columns]
    ['standardised', 'left out: always 5']
    """
    facts = {column.name: column for column in _first_facts(first, roles)}
    names = [name for name, column in facts.items() if column.used]
    while True:
        measure = partial(part_statistics, names=tuple(names), weight=roles.weight)
        found = each(measure, source.parts) if each else [measure(part) for part in source.parts]
        whole = reduce(_join, found)
        if whole.n_rows == 1:
            raise InputError(f"{source.name} has one row only: there is nothing to cluster")
        _check_rows(whole, names, missing, source.name)
        facts |= {name: _fact(whole, j, name, facts[name].unit) for j, name in enumerate(names)}
        chosen = choose_columns(facts.values(), roles, source.name)
        used = [column.name for column in chosen if column.used]
        # Without the other columns fewer rows may have missing values, so the statistics change.
        if used == names or whole.n_kept == whole.n_rows:
            break
        names = used
    steps = {name: _step(whole, names.index(name), facts[name], scale) for name in used}
    preparation, reports = decide(first, chosen, steps, missing=missing, scale=scale)
    kept: np.ndarray | range = range(whole.n_rows)
    if whole.left_out:
        kept = np.delete(np.arange(whole.n_rows), np.concatenate(whole.left_out))
    return Survey(
        preparation,
        reports,
        whole.n_rows,
        kept,
        [statistics.n_kept for statistics in found],
        np.concatenate(whole.weight) if roles.weight else None,
    )


def part_statistics(part: Part, *, names: tuple[str, ...], weight: str | None) -> Statistics:
    """Compute the statistics of all rows of a part."""
    columns = [*names, weight] if weight else list(names)
    blocks = (_block_statistics(at, table, names, weight) for at, table in part.tables(columns))
    return reduce(_join, blocks)


def prepared_blocks(part: Part, preparation: Preparation) -> Iterator[np.ndarray]:
    """Yield blocks of a part's rows, transformed."""
    for at, table in part.tables([step.name for step in preparation.steps]):
        with shift_rows(at):
            yield preparation.apply(table).matrix


def prepared_part(part: Part, preparation: Preparation) -> np.ndarray:
    """Return the rows of a part, transformed."""
    return np.concatenate(list(prepared_blocks(part, preparation)))


def _first_facts(first: Table, roles: Roles) -> list[ColumnFacts]:
    """Describe columns as far as their kind tells; reject text columns that would be used."""
    facts, text = [], []
    aside = roles.set_aside()
    for name, column in first.columns.items():
        wanted = name not in aside and (not roles.columns or name in roles.columns)
        if isinstance(column, Unusable) and column.what != "nothing":
            facts.append(ColumnFacts(name, "other", column.n_missing, None, f"holds {column.what}"))
            continue
        if isinstance(column, Words) and wanted:
            text.append(name)
        kind = "text" if isinstance(column, Words) else "numeric"
        unit = column.unit if isinstance(column, Numbers) else PLAIN
        facts.append(ColumnFacts(name, kind, 0, None, None if wanted else "set aside", unit))
    if text:
        raise InputError(
            f"{counted(len(text), 'column')} of text ({listing(map(repr, text))}) cannot be used "
            f"unless the whole table is in memory: --exclude {','.join(text)}"
        )
    return choose_columns(facts, roles, first.source)


def _block_statistics(
    first_row: int, table: Table, names: Sequence[str], weight_name: str | None
) -> Statistics:
    with shift_rows(first_row):
        values = np.stack([_numbers(table, name) for name in names])  # by column: each is summed
        weight = block_weights(table, weight_name) if weight_name else np.ones(table.n_rows)
        offset = _offsets(values, first_row)
        n_missing, first_missing = np.zeros(len(names), dtype=np.int64), np.full(len(names), np.inf)
        left_out = []
        if not np.isfinite(values).all():
            if np.isinf(values).any():
                column, row = np.argwhere(np.isinf(values))[0]
                raise InputError(f"column {names[column]!r}, row {row + 1} is infinite")
            empty = np.isnan(values)
            n_missing = empty.sum(axis=1)
            first_missing = np.where(n_missing > 0, first_row + empty.argmax(axis=1), np.inf)
            kept = ~empty.any(axis=0)
            left_out = [first_row + np.flatnonzero(~kept)]
            values, weight = values[:, kept], weight[kept]
    total_weight = float(weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        mean = values @ weight / (total_weight or 1.0)
        squares = np.square(values - mean[:, None]) @ weight
    return Statistics(
        table.n_rows,
        left_out,
        [weight] if weight_name else [],
        total_weight,
        values.min(axis=1, initial=np.inf),
        values.max(axis=1, initial=-np.inf),
        mean,
        squares,
        n_missing,
        first_missing,
        np.array([is_binary(column[weight > 0]) for column in values], dtype=bool),
        offset,
    )


def _offsets(values: np.ndarray, first_row: int) -> np.ndarray:
    """Return value minus position of columns that number the rows; NaN for the others."""
    place = np.arange(values.shape[1])
    counting = [
        column[-1] - column[0] == place[-1] and np.array_equal(column, column[0] + place)
        for column in values
    ]
    return np.where(counting, values[:, 0] - first_row, np.nan)


def _numbers(table: Table, name: str) -> np.ndarray:
    """Return a column as float64; one that is empty in this block is all NaN."""
    column = table.columns[name]
    if isinstance(column, Unusable) and column.what == "nothing":
        return np.full(table.n_rows, np.nan)
    return table.numbers(name).astype(np.float64)


def _join(a: Statistics, b: Statistics) -> Statistics:
    """Merge the statistics of two blocks."""
    total = a.total_weight + b.total_weight
    share = b.total_weight / total if total else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        apart = b.mean - a.mean
        squares = a.squares + b.squares + np.square(apart) * a.total_weight * share
    return Statistics(
        a.n_rows + b.n_rows,
        a.left_out + b.left_out,
        a.weight + b.weight,
        total,
        np.minimum(a.low, b.low),
        np.maximum(a.high, b.high),
        a.mean + share * apart,
        squares,
        a.n_missing + b.n_missing,
        np.minimum(a.first_missing, b.first_missing),
        a.binary & b.binary,
        np.where(a.offset == b.offset, a.offset, np.nan),
    )


def _check_rows(found: Statistics, names: Sequence[str], missing: str, source: str) -> None:
    if missing == "error" and found.n_missing.any():
        j = int(np.argmax(found.n_missing > 0))
        n = int(found.n_missing.sum())
        total = f" ({n} missing values in all)" if (found.n_missing > 0).sum() > 1 else ""
        values = counted(int(found.n_missing[j]), "missing value")
        raise InputError(
            f"column {names[j]!r} has {values}, the first in row "
            f"{found.first_missing[j] + 1:.0f}{total}; say --missing drop"
        )
    if not found.n_kept:
        raise InputError(f"every row of {source} has a missing value")
    if not found.total_weight:
        raise InputError("the rows that are used have no weight")


def _fact(found: Statistics, j: int, name: str, unit: str) -> ColumnFacts:
    n_missing = int(found.n_missing[j])
    if found.low[j] == found.high[j]:
        return ColumnFacts(name, "constant", n_missing, 1, f"always {found.low[j]:g}")
    if found.offset[j] in (0, 1) and found.n_rows > 2:
        return ColumnFacts(name, "identifier", 0, found.n_rows, "counts the rows")
    kind = "binary" if found.binary[j] else "numeric"
    return ColumnFacts(name, kind, n_missing, None, None, unit)


def _step(found: Statistics, j: int, fact: ColumnFacts, scale: bool) -> NumericStep:
    """Return the step for one column; the mean replaces missing values of new rows."""
    name, binary = fact.name, bool(found.binary[j])
    mean, deviation = float(found.mean[j]), float(np.sqrt(found.squares[j] / found.total_weight))
    step = numeric_step(name, fill=mean, mean=mean, deviation=deviation, scale=scale, binary=binary)
    if step is None:
        raise InputError(f"column {name!r} holds numbers too alike to standardise")
    return replace(step, unit=fact.unit)
