"""Arrays in the one layout that kernels are compiled for, passed without reference counting.

numba recompiles a kernel for arrays that are read-only or not C-ordered, which takes longer than
most fits. Models loaded from a memory-mapped file have such arrays.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.ir_utils import alias_func_extensions
from numba.extending import intrinsic


def plain(array, dtype=None):
    """Return an array that is C-ordered and writable: the array itself, or a copy if necessary.

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
        return array  # the usual case, and called often by samplers
    return np.require(array, dtype, ("C", "W", "E"))


def _borrow(typing_context, clusters):
    """Return a tuple of arrays, or of tuples of them, without reference counting of its arrays.

    Compiled code increments and decrements the reference count of an array in each call that it is
    passed to; for a tuple of many arrays this takes longer than the computation: a sweep over
    narrow normal clusters takes two to four times as long. A kernel that calls many functions with
    a tuple borrows it from its caller, who owns the arrays, and returns none of them. Never borrow
    what is allocated in compiled code: it would be freed at once.
    """

    def generate(context, builder, signature, arguments):
        return _uncounted(context, builder, signature.args[0], arguments[0])

    return clusters(clusters), generate


borrowed: Any = intrinsic(_borrow)  # its type would otherwise make callers pass the context


def _mark_as_argument(target, arguments, aliases, argument_aliases):
    """Tell numba that what is borrowed belongs to the caller.

    Otherwise it takes the result of the call for a new array and, in kernels that inline others,
    removes assignments to its elements as dead code.
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
