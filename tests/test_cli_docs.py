"""The page on the command line is what the command says of itself."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "cli_help.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="the documentation is not part of this checkout")
def test_page_is_current():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
