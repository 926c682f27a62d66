"""Arrays that change in place hold what a copy would."""

import ctypes
import mmap
import sys
from typing import ClassVar

import numpy as np
import pytest

from countless._data import inplace


class Sizes(ctypes.Structure):
    _fields_: ClassVar = [("of", ctypes.c_size_t * 10)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(inplace, "CHUNK_VALUES", 6)


@pytest.mark.parametrize("shape", [(20,), (20, 1), (20, 3), (20, 50)])
def test_rows_that_stay_keep_their_values_and_order(shape):
    random = np.random.RandomState(0)
    for share in (0.0, 0.3, 0.9, 1.0):
        array = random.standard_normal(shape)
        stays = random.uniform(size=20) < share
        expected = array[stays]
        inplace.keep(array, stays)
        assert np.array_equal(array, expected)


@pytest.mark.parametrize("shape", [(20,), (20, 1), (20, 3), (20, 50)])
def test_another_order(shape):
    random = np.random.RandomState(1)
    array, order = random.standard_normal(shape), random.permutation(20)
    expected = array[order]
    inplace.reorder(array, order)
    assert np.array_equal(array, expected)


def test_what_grows_never_joins_what_the_allocator_keeps():
    """glibc says how much is mapped for single arrays; copied ones are not once it has adapted."""
    info = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if info is None:
        pytest.skip("the allocator does not tell")
    info.restype = Sizes
    array = inplace.growing((10, 100), np.float64)
    before = info().of[4]
    inplace.resize(array, 2000)
    assert info().of[4] - before == pytest.approx(1990 * 100 * 8, abs=2 * mmap.PAGESIZE)


def test_more_rows_are_zeros_and_fewer_are_the_first():
    array = np.array([[0, 1], [2, 3], [4, 5]])
    inplace.resize(array, 5)
    assert array.tolist() == [[0, 1], [2, 3], [4, 5], [0, 0], [0, 0]]
    inplace.resize(array, 1)
    assert array.tolist() == [[0, 1]]


def test_chunks_cover_all_rows_once():
    for n_rows in (0, 1, 7, 20):
        covered = [
            row for part in inplace.chunks(np.empty((20, 3)), n_rows) for row in range(20)[part]
        ]
        assert covered == list(range(n_rows))


def test_arrays_born_to_grow_hold_zeros_and_keep_what_they_held():
    array = inplace.growing((2, 3), np.float32)
    assert array.tolist() == [[0.0] * 3] * 2
    array[:] = 7.0
    inplace.resize(array, 50_000)
    assert array[:2].tolist() == [[7.0] * 3] * 2
    assert not array[2:].any()
    inplace.give_back()
    inplace.resize(array, 1)
    assert array.tolist() == [[7.0] * 3]
