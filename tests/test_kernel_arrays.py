"""Arrays that kernels borrow are those of the caller, whatever numba does to the code."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from countless.kernels.arrays import borrowed


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def _inlined(x):
    raise NotImplementedError("compiled code only")


@overload(_inlined, inline="always")
def _choose(x):
    def add_one(x):
        return x + 1.0

    return add_one


@njit
def fill(pair):
    pair = borrowed(pair)
    for i in range(pair.first.shape[0]):
        pair.first[i] = 1.0
        pair.second[i, 1] = 2.0
    # Once something has been inlined, numba removes what it takes for dead code.
    return _inlined(3.0)


def test_cells_of_borrowed_arrays_are_assigned_in_a_kernel_that_inlines_another():
    pair = Pair(np.zeros(3), np.zeros((3, 2)))
    assert fill(pair) == 4.0
    np.testing.assert_array_equal(pair.first, 1.0)
    np.testing.assert_array_equal(pair.second, [[0.0, 2.0]] * 3)
