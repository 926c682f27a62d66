"""Tables that are not in memory: files, and Dask collections.

A numeric table in a flat file (.npy, memory map) is read in place. Others (Parquet, Dask without a
cluster) are first copied to such a file, in pieces, because every pass reads the whole table.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .npy import FlatFile, npy_table

# Rows copied to a flat file at once.
SPOOL_ROWS = 2**16


class ParquetTable(NamedTuple):
    """A Parquet file, or a folder of them."""

    path: Path


def find_table(X: Any) -> Any:
    """Return the table that X refers to if it is not in memory, or None for anything else.

    Examples
    --------
    >>> find_table([[1.0, 2.0]]) is None
    True
    """
    if isinstance(X, str | Path):
        return _table_at(Path(X))
    if isinstance(X, np.memmap):
        return _mapped_file(X)
    if is_dask(X):
        return X
    return None


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame, without importing Dask."""
    return type(X).__module__.split(".")[0].startswith("dask") and hasattr(X, "__dask_graph__")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder for data that does not fit in memory."""
    with tempfile.TemporaryDirectory(prefix="countless-") as folder:
        yield Path(folder)


def as_flat_file(table: Any, folder: Path) -> FlatFile:
    """Return a table as a flat file, copied into the folder unless it is one."""
    if isinstance(table, FlatFile):
        return table
    if isinstance(table, ParquetTable):
        if importlib.util.find_spec("pyarrow") is None:
            raise ImportError("reading Parquet needs pyarrow: pip install 'countless[table]'")
        from .parquet_format import numeric_blocks

        return _spool(numeric_blocks(table.path), folder / "rows", None)
    array = dask_array(table)
    pieces = (np.asarray(chunk.compute()) for chunk in array.to_delayed().ravel())
    return _spool(pieces, folder / "rows", array.chunks[0])


def dask_array(X: Any) -> Any:
    """Return a 2D Dask array from an array or data frame, with all columns in each chunk."""
    if not hasattr(X, "chunks"):
        text = [str(name) for name, kind in X.dtypes.items() if kind.kind not in "biuf"]
        if text:
            raise ValueError(f"column {text[0]!r} of X does not hold numbers")
        X = X.to_dask_array(lengths=True)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions; got {X.ndim}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers; got {X.dtype}")
    if type(X._meta) is not np.ndarray:
        raise ValueError(f"chunks of X must be NumPy arrays; got {type(X._meta).__name__}")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: it holds no value")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    kind = np.dtype(X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
    # A chunk's dtype may differ from that of its array.
    return X.map_blocks(np.asarray, kind, dtype=kind)


def sorted_copy(table: FlatFile, order: np.ndarray, folder: Path) -> FlatFile:
    """Return a flat file of the rows in another order."""
    rows = np.memmap(table.path, table.dtype, "r", table.offset, table.shape)
    pieces = (rows[order[at : at + SPOOL_ROWS]] for at in range(0, len(order), SPOOL_ROWS))
    return _spool(pieces, folder / "sorted", None)


def _table_at(path: Path) -> FlatFile | ParquetTable:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir() or path.suffix in (".parquet", ".pq"):
        return ParquetTable(path)
    if path.suffix != ".npy":
        raise ValueError(
            f"{path} is no table that can be read in blocks: .npy, .parquet, or a folder of Parquet"
        )
    return npy_table(path)


def _mapped_file(X: np.memmap) -> FlatFile | None:
    """Return the file region of a memory map; None where it must be read as an array in memory."""
    # A copy-on-write map may differ from its file, and a view of some columns is not contiguous.
    plain = X.ndim == 2 and X.size and X.flags.c_contiguous and X.dtype.kind in "biuf"
    if not plain or X.mode == "c" or X.filename is None:
        return None
    root = X
    while isinstance(root.base, np.memmap):
        root = root.base
    start = X.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return FlatFile(Path(X.filename), root.offset + start, X.dtype, X.shape)


def _spool(pieces: Iterator[np.ndarray], path: Path, chunks) -> FlatFile:
    """Write the pieces of a table to a flat file."""
    n_rows, n_features, dtype = 0, 0, np.dtype(np.float64)
    with path.open("wb") as file:
        for piece in pieces:
            if shutil.disk_usage(path.parent).free < 2 * piece.nbytes:
                raise OSError(
                    f"{path.parent} has no space for a copy of the table; set TMPDIR to a folder "
                    "that has"
                )
            file.write(np.ascontiguousarray(piece).data)
            n_rows, n_features, dtype = n_rows + len(piece), piece.shape[1], piece.dtype
    if not n_rows or not n_features:
        raise ValueError("X holds no value")
    return FlatFile(path, 0, dtype, (n_rows, n_features), chunks)
