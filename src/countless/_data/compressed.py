"""Compressed text: gzip and Zstandard, recognised by their first bytes."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._errors import InputError

_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@contextmanager
def decompressed(file: Any, name: str) -> Iterator[Any]:
    """Yield a file of the plain bytes; damage is an error of one line.

    Examples
    --------
    >>> import io
    >>> with decompressed(io.BytesIO(gzip.compress(b"a,b")), "t.csv.gz") as plain:
    ...     plain.read()
    b'a,b'
    """
    start = file.read(4)
    file.seek(0)
    if start.startswith(_GZIP):
        packing, plain = "gzip", gzip.GzipFile(fileobj=file)
    elif start == _ZSTANDARD:
        import pyarrow as pa

        packing, plain = "Zstandard", pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    else:
        yield file
        return
    try:
        with plain:
            yield plain
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{name} is damaged {packing} data: {error}") from error
