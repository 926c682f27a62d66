"""Arrays in the one form that kernels are compiled for.

numba compiles a kernel anew for arrays that are read-only or not C-ordered, and that takes longer
than most fits. Models of a file that was mapped into memory have such arrays.
"""

import numpy as np


def plain(array, dtype=None):
    """Return an array that is C-ordered and writable: itself, or a copy where it is not.

    Examples
    --------
    >>> import numpy as np
    >>> given = np.zeros((2, 3))
    >>> plain(given) is given
    True
    >>> plain(given.T).flags.c_contiguous
    True
    """
    if type(array) is np.ndarray and array.flags.carray and dtype in (None, array.dtype):
        return array  # as mostly, and samplers ask often
    return np.require(array, dtype, ("C", "W", "E"))
