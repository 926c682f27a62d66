"""The reader of AnnData files: cells by genes, or a representation of the cells.

The columns of ``obs`` annotate the rows: they can be compared with, and take no part unasked.
"""

import io
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anndata
import h5py
import numpy as np
import pyarrow as pa
from scipy.sparse import issparse

from .._errors import InputError
from .._formats import Format, TextStyle
from .arrow import columns_of
from .stored import scratch_folder
from .table import Columns, Contents, Filled, Numbers, Table, listing

NAMES = "obs_names"
KEY = "countless"


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read the matrix, a layer or an embedding, and ``obs``."""
    with _read(file, name) as adata:
        key, rows, names = representation(adata, style.part)
        columns: Columns = {
            label: Numbers(values) for label, values in zip(names, rows.T, strict=True)
        }
        frame = adata.obs.reset_index(names=NAMES)
        obs = pa.Table.from_pandas(frame, preserve_index=False)
    own, n_rows = columns_of(obs, [str(label) for label in obs.column_names], name, as_text)
    aside = {}
    for label, column in own.items():
        while label in columns:
            label += "_"
        columns[label] = column
        aside[label] = f"annotates the rows; --columns {label} uses it"
    notes = () if style.part else (f"clusters by {key} (--layer)",)
    return Contents(columns, n_rows, style._replace(part=key), notes, aside)


def representation(adata: Any, key: str | None) -> tuple[str, np.ndarray, list[str]]:
    """Return a representation of the rows: its name, the numbers, and the names of columns.

    By default the principal components where there are some, else the matrix.
    """
    key = key or ("X_pca" if "X_pca" in adata.obsm else "X")
    if key == "X":
        found = adata.X
    elif key in adata.layers:
        found = adata.layers[key]
    elif key in adata.obsm:
        found = adata.obsm[key]
    else:
        known = listing(["X", *adata.layers, *adata.obsm])
        raise InputError(f"there is no layer and no embedding {key!r}; there are {known}")
    if found is None:
        raise InputError("there is no matrix X; name a layer or an embedding by --layer")
    rows = np.asarray(found.toarray() if issparse(found) else found)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise InputError(f"{key!r} is no table of numbers")
    names = [f"{key.removeprefix('X_')}_{j + 1}" for j in range(rows.shape[1])]
    if key not in adata.obsm:
        names = [str(label) for label in adata.var_names]
    return key, rows.astype(np.result_type(rows.dtype, np.float32), copy=False), names


def edit(
    file: io.BufferedIOBase,
    name: str,
    table: Table,
    added: Mapping[str, np.ndarray],
    filled: Filled,
) -> bytes:
    """Return the file with ``obs['countless']`` and ``obs['countless_distance']``."""
    with scratch_folder() as folder:
        new = folder / "new.h5ad"
        new.write_bytes(file.read())
        # Only these columns are written: all else stays as it is, bit by bit.
        with h5py.File(new, "r+") as opened:
            obs = opened["obs"]
            order = list(obs.attrs["column-order"])
            for label, values in added.items():
                clusters = label.startswith("cluster")
                key = KEY if clusters else f"{KEY}_{label}"
                column = labels_as_categories(values) if clusters else values
                anndata.io.write_elem(obs, key, column)
                order += [] if key in order else [key]
            obs.attrs["column-order"] = np.array(order, dtype=object)
        return new.read_bytes()


def labels_as_categories(labels: np.ndarray) -> Any:
    """Return labels as categories, in the manner of scanpy; NaN is missing."""
    import pandas as pd

    known = ~np.isnan(labels)
    names = [str(label) for label in np.unique(labels[known]).astype(int)]
    texts = np.full(len(labels), None, dtype=object)
    texts[known] = labels[known].astype(int).astype(str)
    return pd.Categorical(texts, categories=pd.Index(names, dtype=object))


@contextmanager
def _read(file: io.BufferedIOBase, name: str) -> Iterator[Any]:
    with scratch_folder() as folder:
        path = getattr(file, "name", None)
        if path is None:  # standard input
            path = folder / "table.h5ad"
            path.write_bytes(file.read())
        try:
            adata = anndata.read_h5ad(Path(path))
        except (OSError, KeyError, ValueError) as error:
            message = " ".join(str(error).split())
            raise InputError(f"{name} is no usable .h5ad file: {message}") from error
        yield adata
