"""Tables that are not in memory: what can be read, and what is said about what cannot."""

import numpy as np
import pytest

from countless import DPMeans
from countless._data import stored as module
from countless._data.part import Limits
from countless._data.stored import FlatFile, as_flat_file, find_table, is_dask

X = np.random.default_rng(0).standard_normal((300, 4)).astype(np.float32)


def read_all(table, folder):
    flat = as_flat_file(table, folder)
    return flat.read(0, flat.shape[0])


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("kind", ["<f4", "<f8", ">f4", ">f8", "<f2", "i1", "<i8", "?"])
def test_npy_files_of_any_numbers(version, kind, tmp_path):
    values = np.rint(X).astype(kind)
    path = tmp_path / "rows.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, values, version=version)
    found = read_all(find_table(path), tmp_path)
    assert found.dtype == (np.float32 if kind == "<f4" else np.float64)
    np.testing.assert_array_equal(found, values)
    flat = find_table(str(path))
    np.testing.assert_array_equal(flat.read(100, 130), values[100:130])
    assert flat.n_bytes == found.nbytes


def test_npy_files_that_are_no_tables(tmp_path):
    def message(name, values=None, content=None):
        path = tmp_path / name
        if content is None:
            np.save(path, values)
        else:
            path.write_bytes(content)
        with pytest.raises(ValueError, match=name) as error:
            find_table(path)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "is stored by columns; save it with order='C'" in message("f.npy", np.asfortranarray(X))
    assert "its shape is (1200,)" in message("flat.npy", X.ravel())
    assert "its shape is (0, 4)" in message("empty.npy", X[:0])
    assert "must hold numbers" in message("text.npy", np.array([["a", "b"]]))
    assert "must hold numbers" in message("complex.npy", X.astype(complex))
    assert "is no .npy file" in message("other.npy", content=b"a,b\n1,2\n")
    assert "is no .npy file" in message("nothing.npy", content=b"")
    assert "no table that can be read in blocks" in message("rows.csv", content=b"a,b\n1,2\n")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent\.npy"):
        find_table(tmp_path / "absent.npy")


def test_a_truncated_file_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"rows\.npy ends before row 299: it was cut short"):
        DPMeans(1.0).fit(path)


def test_memory_maps_are_read_from_their_file(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for view in (mapped, mapped[20:], mapped[20:][30:70], mapped.reshape(150, 8)):
        flat = find_table(view)
        assert isinstance(flat, FlatFile)
        np.testing.assert_array_equal(flat.read(0, len(view)), view)
    raw = tmp_path / "raw"
    raw.write_bytes(b"head of 13 by" + X.tobytes())
    offset = np.memmap(raw, dtype=np.float32, mode="r", offset=13, shape=X.shape)
    np.testing.assert_array_equal(find_table(offset[7:]).read(0, 293), X[7:])


def test_memory_maps_that_the_file_does_not_show_stay_in_memory(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    private = np.load(tmp_path / "rows.npy", mmap_mode="c")
    private[0] = 5.0
    for view in (private, mapped[::2], mapped[:, :2], mapped.copy(), mapped.T):
        assert find_table(view) is None
    model = DPMeans(1e9, refine=False).fit(private)
    np.testing.assert_allclose(model.cluster_centers_[0], private.mean(axis=0), atol=1e-6)


def test_arrays_and_lists_are_in_memory():
    assert find_table(X) is None
    assert find_table([[1.0]]) is None
    assert not is_dask(X)


# Parquet


@pytest.fixture
def write(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write(file="rows.parquet", row_group_size=70, **columns):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table(columns), path, row_group_size=row_group_size)
        return path

    return write


@pytest.mark.parametrize("spool_rows", [7, 100, 2**16])
def test_parquet_is_copied_piece_by_piece(write, spool_rows, monkeypatch, tmp_path):
    monkeypatch.setattr("countless._data.part.LIMITS", Limits(rows=spool_rows))
    path = write(a=X[:, 0].copy(), b=X[:, 1].copy())
    found = read_all(find_table(path), tmp_path)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X[:, :2])


def test_columns_of_several_kinds_become_float64(write, tmp_path):
    path = write(a=X[:, 0].copy(), b=np.arange(300), c=np.arange(300) % 2 == 0)
    found = read_all(find_table(path), tmp_path)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found[:, 0], X[:, 0])
    np.testing.assert_array_equal(found[:, 1], np.arange(300))
    np.testing.assert_array_equal(found[:3, 2], [1, 0, 1])


def test_a_folder_is_read_file_by_file(write, tmp_path):
    for number, part in enumerate(np.array_split(X, 5)):
        write(f"parts/{number}.parquet", a=part[:, 0].copy(), b=part[:, 1].copy())
    (tmp_path / "parts" / "_SUCCESS").touch()
    np.testing.assert_array_equal(read_all(find_table(tmp_path / "parts"), tmp_path), X[:, :2])


def test_a_missing_value_is_named_by_row_and_column(write, tmp_path, monkeypatch):
    monkeypatch.setattr("countless._data.part.LIMITS", Limits(rows=100))
    values = X[:, 1].tolist()
    values[234] = None
    path = write(a=X[:, 0].tolist(), b=values)
    with pytest.raises(ValueError, match=r"rows\.parquet has a missing value: row 234, column 'b'"):
        DPMeans(1.0).fit(path)


def test_a_column_of_text_is_named(write):
    path = write(a=[1.0, 2.0], name=["x", "y"])
    with pytest.raises(ValueError, match=r"column 'name' of .*rows\.parquet is no number"):
        DPMeans(1.0).fit(path)


def test_parquet_that_holds_nothing(write, tmp_path):
    with pytest.raises(ValueError, match="has no rows"):
        DPMeans(1.0).fit(write(a=np.empty(0)))
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ValueError, match="holds no Parquet file"):
        DPMeans(1.0).fit(tmp_path / "nothing")


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR2, or so")
    with pytest.raises(ValueError, match=r"rows\.parquet: .*Parquet"):
        DPMeans(1.0).fit(path)


def test_too_little_space_for_a_copy_is_reported_before_writing(write, monkeypatch, tmp_path):
    class Full:
        free = 10

    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: Full)
    with pytest.raises(OSError, match="no space for a copy of the table; set TMPDIR"):
        DPMeans(1.0).fit(write(a=X[:, 0].copy()))


# Dask without a cluster


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(3), "X must have two dimensions; got 1"),
        (np.zeros((3, 0)), "it holds no value"),
        (np.array([["a"]]), "X must hold numbers"),
    ],
)
def test_dask_arrays_that_are_no_tables(values, message):
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=message):
        DPMeans(1.0).fit(da.from_array(values))


def test_dask_arrays_of_unknown_length(tmp_path):
    da = pytest.importorskip("dask.array")
    array = da.from_array(X, chunks=(70, 2))
    flat = as_flat_file(array[array[:, 0] > 0], tmp_path)
    np.testing.assert_array_equal(flat.read(0, flat.shape[0]), X[X[:, 0] > 0])
    assert sum(flat.chunks) == flat.shape[0]


def test_a_column_of_text_of_a_dask_frame_is_named():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}), npartitions=1)
    with pytest.raises(ValueError, match="column 'name' of X does not hold numbers"):
        DPMeans(1.0).fit(frame)
