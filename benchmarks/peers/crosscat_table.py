"""The table of a job, as every contestant reads it: numbers, codes of levels, and NaN for gaps."""

import json
import resource
from pathlib import Path

import numpy as np


def open_job(path: str):
    """Return the job, its table, the kinds of its columns, and the hidden cells."""
    job = json.loads(Path(path).read_text())
    with np.load(job["data"]) as stored:
        cells = stored["cells"]
    return job, cells, job["kinds"], job.get("hidden") or []


def hidden_rows(hidden):
    """Yield each column with hidden cells, their rows and their values."""
    for column in sorted({column for _, column, _ in hidden}):
        own = [(row, value) for row, c, value in hidden if c == column]
        yield column, np.array([row for row, _ in own]), np.array([value for _, value in own])


def peak_megabytes() -> float:
    """Return the most memory that this process has held; Linux counts it in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def answer(path: str, result: dict) -> None:
    """Write the answer."""
    Path(path).write_text(json.dumps(result))
