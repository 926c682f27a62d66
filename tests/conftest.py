"""Settings that all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same draws in every run, and no deadline: the first call of a kernel compiles it.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("repeatable")

DATA = Path(os.environ.get("COUNTLESS_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def data_folder():
    """Return the folder of published data sets, which may not exist."""
    return DATA


@pytest.fixture
def published():
    """Return the path of a published data set; the test is skipped where there is none."""

    def find(*parts: str) -> Path:
        path = DATA.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"needs {'/'.join(parts)}: COUNTLESS_DATA names the folder of data sets")
        return path

    return find
