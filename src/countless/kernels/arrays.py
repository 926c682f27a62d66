"""Arrays in the one form that kernels are compiled for, and handed on at no cost.

numba compiles a kernel anew for arrays that are read-only or not C-ordered, and that takes longer
than most fits. Models of a file that was mapped into memory have such arrays.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.ir_utils import alias_func_extensions
from numba.extending import intrinsic


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


def _borrow(typing_context, clusters):
    """Return a tuple of arrays, or of tuples of them, whose arrays are not counted.

    Compiled code counts who holds an array, up and down by each call that it is handed to; for a
    tuple of many arrays that takes longer than what is asked of them: a sweep over narrow normal
    clusters takes two to four times as long. A kernel that asks much of a tuple borrows it from its
    caller, who holds the arrays, and returns none of them. So never borrow what is made in compiled
    code: it would be freed at once.
    """

    def generate(context, builder, signature, arguments):
        return _uncounted(context, builder, signature.args[0], arguments[0])

    return clusters(clusters), generate


borrowed: Any = intrinsic(_borrow)  # its type says that callers hand over the context


def _mark_as_argument(target, arguments, aliases, argument_aliases):
    """Tell numba that what is borrowed is the caller's.

    It takes what a call returns for a new array otherwise, and removes assignments to cells of it
    as dead code, in kernels that inline others.
    """
    argument_aliases.add(target)


alias_func_extensions[_borrow.__name__, __name__] = _mark_as_argument


def _uncounted(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for place, part in enumerate(kind.types):  # type: ignore[attr-defined]
            own = _uncounted(context, builder, part, builder.extract_value(value, place))
            value = builder.insert_value(value, own, place)
    return value
