"""What holds for the tests and for the examples in docstrings."""

import gc
import os
import sys
import threading
from functools import wraps

# Tests run on all cores already: threads of BLAS wait for each other then, and take many times as
# long. It reads this when NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from numba.core.dispatcher import Dispatcher


def untraced(function):
    """Return a function that coverage does not watch, nor what it calls."""

    @wraps(function)
    def call(*args, **kwargs):
        trace = sys.gettrace()
        if trace is None:
            return function(*args, **kwargs)
        sys.settrace(None)
        try:
            return function(*args, **kwargs)
        finally:
            sys.settrace(trace)
            (lambda: None)()  # coverage takes over at the next call, and lines may come before it

    return call


def unwatched(test):
    """Return a test that coverage does not watch, nor the threads that it starts."""

    @wraps(test)
    def run():
        in_threads = threading.gettrace()
        threading.settrace(None)
        try:
            untraced(test)()
        finally:
            threading.settrace(in_threads)

    return run


# Watching numba compile takes half as long again, and coverage is not asked about numba.
Dispatcher.compile = untraced(Dispatcher.compile)


# Two processes begin with a half of the tests each. With those of component models in one half they
# seldom wait for the same kernel to be compiled.
OF_MODELS = ("bayes", "contracts", "models", "priors", "tree")


def pytest_collection_modifyitems(items):
    """Put the tests of component models, and of what samples them, first."""
    items.sort(key=lambda item: item.path.parent.name not in OF_MODELS)
    for item in items:
        # These run the same lines thousands of times, and being watched takes half as long again.
        if item.get_closest_marker("slow"):
            item.runtest = unwatched(item.runtest)


def pytest_collection_finish():
    """Spare the garbage collector what stays anyhow: it takes a tenth of compiling otherwise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def close_pictures():
    """Close what a test or an example has drawn, as matplotlib keeps it otherwise."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
