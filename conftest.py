"""What holds for the tests and for the examples in docstrings."""

import sys

import pytest


@pytest.fixture(autouse=True)
def close_pictures():
    """Close what a test or an example has drawn, as matplotlib keeps it otherwise."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
