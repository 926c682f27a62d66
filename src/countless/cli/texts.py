"""``--texts``: the text of each row, and the words and names of clusters that it gives."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._data.table import counted
from .._errors import InputError
from .._report.describe import cluster_names, words_of
from .._report.summary import ClusterSummary
from .._report.words import Word, count_words
from .data import PreparedTable


def read_texts(path: Path, n_rows: int) -> list[str]:
    """Return the lines of a file, which must be as many as rows.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "texts.txt")
    >>> path.write_text("the first\\nthe second\\n")
    21
    >>> read_texts(path, 2)
    ['the first', 'the second']
    """
    try:
        lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    if len(lines) != n_rows:
        raise InputError(f"{path} has {counted(len(lines), 'line')} for {counted(n_rows, 'row')}")
    texts = []
    for number, line in enumerate(lines, start=1):
        try:
            texts.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number} is not UTF-8") from error
    texts[0] = texts[0].removeprefix("\ufeff")
    return texts


def words_and_names(
    data: PreparedTable,
    labels: np.ndarray,
    clusters: Sequence[ClusterSummary],
    texts: Sequence[str],
    given: Sequence[str],
) -> tuple[dict[int, list[Word]], dict[int, str]]:
    """Return the words of each cluster, and its name; names that the user gave are kept."""
    used = [texts[row] for row in np.asarray(data.rows)]
    words = words_of(data.matrix, labels, *count_words(used))
    names = cluster_names(clusters, words, given)
    return words, {one.label: name for one, name in zip(clusters, names, strict=True)}
