"""One table has the same kinds of columns wherever it comes from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from countless._data.cells import CATEGORICAL, NUMERIC, read_columns
from countless._data.columns import Roles, examine_columns
from countless._data.read import read_table

TABLE = {
    "yes or no": [True, False, True, True, False],
    "with a missing value": [True, None, False, True, True],
    "text": ["True", "False", "True", "True", "False"],
    "number": [0.5, 1.5, -2.0, 0.25, 8.0],
    "zeros and ones": [0.0, 1.0, 1.0, 0.0, 1.0],
}
KINDS = {name: CATEGORICAL for name in TABLE} | {"number": NUMERIC, "zeros and ones": NUMERIC}
FILE_KINDS = KINDS | {"zeros and ones": "binary"}


@pytest.mark.parametrize("package", [pd, pl], ids=["pandas", "polars"])
def test_frames_have_the_kinds_of_the_files_they_are_written_to(package, tmp_path):
    frame = package.DataFrame(TABLE)
    assert {column.name: column.kind for column in read_columns(frame)} == KINDS
    text, parquet = tmp_path / "table.csv", tmp_path / "table.parquet"
    if package is pd:
        frame.to_csv(text, index=False)
        frame.to_parquet(parquet)
    else:
        frame.write_csv(text)
        frame.write_parquet(parquet)
    for path in (text, parquet):
        found = examine_columns(read_table(str(path)), Roles())
        # Binary columns are numbers that count as a category of two.
        assert {column.name: column.kind for column in found} == FILE_KINDS


def test_arrays_of_truth_values_are_categorical():
    assert [column.kind for column in read_columns(np.array([[True], [False]]))] == [CATEGORICAL]
