"""How a text table is written: its encoding and its delimiter, guessed from its first bytes."""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from .._errors import InputError
from .._formats import Format, TextStyle

DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")
SAMPLE_LINES = 50

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMES = {"utf-16": "UTF-16", "cp1252": "Windows-1252", "latin-1": "Latin-1"}
_QUOTED = re.compile(r'"[^"]*"')


def guess_encoding(start: bytes, *, complete: bool) -> str:
    """Return the encoding of text: by its byte-order mark, else UTF-8 if it is valid.

    Text of one byte per character that is not UTF-8 is Windows-1252 where that has all of its
    characters, else Latin-1. ``complete`` says whether ``start`` is the whole text.

    Examples
    --------
    >>> [guess_encoding("é".encode(name), complete=True) for name in ("utf-8", "latin-1", "utf-16")]
    ['utf-8', 'cp1252', 'utf-16']
    """
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(start, final=complete)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def as_utf8(pieces: Iterable[bytes], encoding: str, name: str) -> Iterator[bytes]:
    """Yield the pieces of a text in UTF-8; pieces in UTF-8 are unchanged."""
    if encoding == "utf-8":
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            if text := decoder.decode(piece):
                yield text.encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise InputError(f"{name} is not {encoding} text: {error}") from error


def guess_delimiter(text: bytes, format: Format, header: bool) -> str:
    """Return what separates cells: that of the format, or one that divides all lines alike.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> guess_delimiter(b"a;b\\n1,5;2\\n2,5;3\\n", FORMATS["csv"], header=True)
    ';'
    """
    usual = format.delimiter
    start = _QUOTED.sub("", text[: 2**16].decode(errors="replace")).lstrip("\r\n")
    lines = [line for line in start.splitlines() if line.strip()][:SAMPLE_LINES]
    if len(text) > 2**16 and len(lines) > 1:
        lines.pop()  # it may be cut short
    if not lines:
        return usual
    counts = {mark: Counter(line.count(mark) for line in lines) for mark in DELIMITERS}
    alike = [mark for mark, found in counts.items() if len(found) == 1 and 0 not in found]
    if usual in alike and (header or ";" not in alike):
        return usual
    if others := [mark for mark in alike if mark != usual]:
        return max(others, key=lambda mark: next(iter(counts[mark])))
    if usual not in lines[0]:
        return next((mark for mark in DELIMITERS if mark in lines[0]), usual)
    return usual


def guesses(found: TextStyle, given: TextStyle, format: Format) -> tuple[str, ...]:
    """Return what was guessed about a text table and is not usual, for the user.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> guesses(TextStyle(";", ",", encoding="utf-16"), TextStyle(","), FORMATS["csv"])
    ('UTF-16 text (--encoding)', 'decimal comma (--decimal)')
    """
    said = []
    if given.encoding is None and found.encoding in _NAMES:
        said.append(f"{_NAMES[found.encoding]} text (--encoding)")
    if given.delimiter is None and found.delimiter not in (None, format.delimiter):
        said.append(f"cells separated by {DELIMITERS[found.delimiter]} (--delimiter)")
    if given.decimal is None and found.decimal == ",":
        said.append("decimal comma (--decimal)")
    return tuple(said)
