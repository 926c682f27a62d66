"""Blocks come to kernels in one form, so that these are compiled once."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import typeof

from countless._data.block import make_block, slice_block, unit_weights
from countless.divergences import get_divergence

X = np.arange(12.0).reshape(4, 3)


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix])
def test_read_only_tables_and_all_kinds_of_weights_have_one_type(kind):
    divergence = get_divergence("sqeuclidean")
    blocks = [
        make_block(0, kind(X), None, divergence),
        make_block(0, kind(X), np.ones(4), divergence),
        make_block(0, kind(X), frozen(np.ones(4)), divergence).pick(np.array([0, 2])),
    ]
    read_only = kind(X)
    if kind is np.array:
        read_only = frozen(read_only)
    else:
        read_only.data = frozen(read_only.data)
    blocks.append(make_block(0, read_only, None, divergence))
    if kind is np.array:
        blocks.append(make_block(0, np.asfortranarray(X), None, divergence))
    blocks.append(slice_block(blocks[0], 3, 4))
    assert len({typeof((block.form, block.weight)) for block in blocks}) == 1


def test_what_is_given_stays_writable():
    given = X.copy()
    make_block(0, given, None, get_divergence("sqeuclidean"))
    given[0, 0] = 1.0


def test_a_cut_of_a_long_table_has_weights_in_the_same_form():
    n_rows = 2**14 + 1
    whole = make_block(0, np.zeros((n_rows, 1)), None, get_divergence("sqeuclidean"))
    assert whole.weight.strides == (0,)  # of no room
    part = slice_block(whole, 1, n_rows)
    assert part.n_rows == n_rows - 1
    assert typeof(part.weight) == typeof(unit_weights(1))
    assert (part.weight == 1.0).all()
