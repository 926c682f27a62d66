"""What holds for the tests and for the examples in docstrings."""

import gc
import os
import sys
import threading
from contextlib import contextmanager

# Tests run on all cores already: threads of BLAS wait for each other then, and take many times as
# long. It reads this when NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from numba.core.dispatcher import Dispatcher


@contextmanager
def untraced():
    """Keep coverage from watching what runs meanwhile."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        if trace is not None:
            sys.settrace(trace)
            (lambda: None)()  # coverage takes over at the next call, and lines may come before it


# Watching numba compile takes half as long again, and coverage is not asked about numba.
Dispatcher.compile = untraced()(Dispatcher.compile)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Keep coverage from watching slow tests, their fixtures, and the threads that they start.

    They run the same lines thousands of times, and being watched takes half as long again.
    """
    if not item.get_closest_marker("slow"):
        return (yield)
    in_threads = threading.gettrace()
    threading.settrace(None)
    try:
        with untraced():
            return (yield)
    finally:
        threading.settrace(in_threads)


# Two processes begin with a half of the tests each. With those of component models in one half they
# seldom wait for the same kernel to be compiled.
OF_MODELS = ("contracts", "mcmc", "models", "priors", "tree")


def pytest_collection_modifyitems(items):
    """Put the tests of component models, and of what samples them, first."""
    items.sort(key=lambda item: item.path.parent.name not in OF_MODELS)


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
