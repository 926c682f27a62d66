"""Holding the threads of other libraries back while ours run."""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_library_thread(kind: str | None = "blas") -> AbstractContextManager:
    """Let BLAS (None: OpenMP, too) use one thread for a while."""
    return _libraries().limit(limits=1, user_api=kind)


@cache
def _libraries() -> ThreadpoolController:
    # Looking for them takes longer than the fit of a small table, so it is done once.
    return ThreadpoolController()
