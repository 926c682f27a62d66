"""The reader of JSON lines: one object for each row, plain or compressed."""

import io
import json
from collections.abc import Iterator, Mapping, Set

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from .._errors import InputError
from .._formats import Format, TextStyle
from .arrow import contents_of, one_line_errors
from .compressed import decompressed
from .table import Contents, Filled, Table, shortest

_LARGEST_BLOCK = 2**31 - 1  # pyarrow counts the bytes of a block in 32 bits


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read JSON lines; a key that a line lacks is a missing value.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> file = io.BytesIO(b'{"a": 1}\\n{"a": 2.5, "b": "x"}\\n')
    >>> read(file, "t", FORMATS["jsonl"], TextStyle(), set()).columns["b"].words()
    ['', 'x']
    """
    with decompressed(file, name) as plain:
        text = plain.read()
    if not text.strip():
        raise InputError(f"{name} is empty")
    block = min(max(len(text) + 1, 1024), _LARGEST_BLOCK)
    with one_line_errors(name):
        table = arrow_json.read_json(
            pa.BufferReader(text),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=block),
        )
    return contents_of(table, name, style, as_text)


def edit(
    file: io.BufferedIOBase,
    name: str,
    table: Table,
    added: Mapping[str, np.ndarray],
    filled: Filled,
) -> bytes:
    """Return the lines with more keys of numbers, and some values replaced; NaN is null.

    All other text is unchanged, to the character.

    Examples
    --------
    >>> file = io.BytesIO(b'{"a": 1.50, "b": null}\\n')
    >>> edit(file, "t", Table("t", {}, 1), {"cluster": np.array([0.0])}, {0: {"b": "x"}})
    b'{"a": 1.50, "b": "x", "cluster": 0}\\n'
    """
    with decompressed(file, name) as plain:
        text = plain.read().decode("utf-8-sig")
    lines = text.split("\n")
    at = [place for place, line in enumerate(lines) if line.strip()]
    if len(at) != table.n_rows:
        raise InputError(f"{name} has objects that are not one in a line")
    for row, place in enumerate(at):
        line = lines[place]
        more = dict(filled.get(row, {}))
        # From right to left, so that the places on the left stay as they are.
        for key, start, stop in reversed(list(_members(line))):
            if key in more:
                line = line[:start] + _written(more.pop(key)) + line[stop:]
        more |= {key: float(values[row]) for key, values in added.items()}
        members = ", ".join(f"{json.dumps(key)}: {_written(value)}" for key, value in more.items())
        if members:
            end = line.rindex("}")
            comma = "" if line[:end].rstrip().endswith("{") else ", "
            line = f"{line[:end].rstrip()}{comma}{members}{line[end:]}"
        lines[place] = line
    return "\n".join(lines).encode()


def _members(line: str) -> Iterator[tuple[str, int, int]]:
    """Yield the keys of an object, and where their values start and end."""
    decoder = json.JSONDecoder()
    at = line.index("{") + 1
    while (at := _skip(line, at)) < len(line) and line[at] != "}":
        key, at = decoder.raw_decode(line, at)
        start = _skip(line, at)
        _, at = decoder.raw_decode(line, start)
        yield key, start, at


def _skip(line: str, at: int) -> int:
    while at < len(line) and line[at] in " \t\r,:":
        at += 1
    return at


def _written(value: float | str) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "null" if np.isnan(value) else shortest(value)
