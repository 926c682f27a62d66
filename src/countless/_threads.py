"""Thread pools, and limiting the threads of BLAS and OpenMP while ours run."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from numbers import Integral
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

# SciPy starts any number of threads without checking the limits of the system.
MOST_THREADS = 4096

Each = Callable[[Callable, Any], list]


def count_threads(n_jobs: Any) -> int:
    """Return the number of threads for ``n_jobs``, as in scikit-learn."""
    is_count = isinstance(n_jobs, Integral) and n_jobs not in (0, False)
    if n_jobs is not None and (n_jobs is True or not is_count or n_jobs > MOST_THREADS):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0, at most {MOST_THREADS:,}; "
            f"got {n_jobs!r:.100}"
        )
    return effective_n_jobs(n_jobs)


@contextmanager
def open_threads(n_jobs: int | None) -> Iterator[Each]:
    """Yield a function that maps another over items on threads; BLAS uses one thread in each."""
    n_threads = count_threads(n_jobs)
    with one_library_thread():
        if n_threads == 1:
            yield lambda function, items: [function(*item) for item in items]
            return
        with ThreadPoolExecutor(n_threads) as pool:
            yield lambda function, items: list(pool.map(lambda item: function(*item), items))


def steps(n: int, size: int) -> list[tuple[int, int]]:
    """Return the (start, stop) of consecutive ranges of a size that cover 0 to n."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def one_library_thread(kind: str | None = "blas") -> AbstractContextManager:
    """Return a context manager that limits BLAS (None: OpenMP, too) to one thread."""
    return _libraries().limit(limits=1, user_api=kind)


@cache
def _libraries() -> ThreadpoolController:
    # Cached: finding the libraries takes longer than the fit of a small table.
    return ThreadpoolController()
