"""Running contestants side by side: one fresh process each, the same threads, the same measures.

A contestant is a script in ``peers/`` that calls ``worker.serve``. It may need packages that the
project does not depend on; these are installed into a virtual environment of its own under a
temporary folder.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PEERS = Path(__file__).parent / "peers"
ENVIRONMENTS = Path(tempfile.gettempdir()) / "countless-peers"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Contestant(NamedTuple):
    """What runs, and what it needs that this interpreter may not have."""

    title: str
    script: str
    requirements: tuple[str, ...] = ()


class Measurement(NamedTuple):
    """What one contestant did on one data set."""

    seconds: float  # the best run's
    passes: int
    labels: np.ndarray
    extra_bytes: int | None  # peak memory beyond what was resident before the fit; Linux only
    details: dict[str, Any]  # what else the contestant reports


class Limits(NamedTuple):
    """What every contestant is held to."""

    threads: int
    timeout: float  # seconds for one contestant on one data set, all repeats


class ContestantFailed(Exception):
    """A contestant could not be installed or did not finish; the message is one line."""


def measure(
    contestant: Contestant, data: Path, options: Mapping[str, Any], repeat: int, limits: Limits
) -> Measurement:
    """Run a contestant on the rows stored in ``data`` and take the best of ``repeat`` fits."""
    with tempfile.TemporaryDirectory() as folder:
        labels = Path(folder) / "labels.npy"
        job = {
            "data": str(data),
            "labels": str(labels),
            "repeat": repeat,
            "threads": limits.threads,
            "options": dict(options),
        }
        result = run_isolated(contestant, job, limits)
        return Measurement(labels=np.load(labels), **result)


def run_isolated(
    contestant: Contestant,
    job: Mapping[str, Any],
    limits: Limits,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Hand ``job`` to a contestant in a fresh process; return the JSON object it answers with."""
    python = environment_python(contestant.requirements)
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(limits.threads))
    environment |= variables or {}
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "job.json", Path(folder) / "answer.json"
        question.write_text(json.dumps(job))
        command = [python, str(PEERS / contestant.script), str(question), str(answer)]
        _run(command, environment=environment, timeout=limits.timeout)
        return json.loads(answer.read_text())


def environment_python(requirements: Sequence[str]) -> str:
    """Return an interpreter that has ``requirements``, installing them the first time."""
    if not requirements:
        return sys.executable
    name = "_".join("".join(c if c.isalnum() else "-" for c in r) for r in requirements)
    folder = ENVIRONMENTS / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    finished = folder / "installed"
    if not finished.exists():
        # Old wheels stop at Python 3.11, so that version is preferred where there is one.
        _run([shutil.which("python3.11") or sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *requirements])
        finished.touch()
    return str(python)


def _run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> None:
    try:
        subprocess.run(
            command, env=environment, timeout=timeout, check=True, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise ContestantFailed(f"stopped after {timeout:g} s") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [f"exit code {error.returncode}"]
        errors = [line for line in lines if line.startswith("ERROR")]  # how pip marks its reason
        raise ContestantFailed((errors or lines)[-1]) from None


def machine(threads: int) -> dict[str, Any]:
    """Say what a figure depends on besides the code."""
    import numba
    import sklearn

    return {
        "cores": os.cpu_count(),
        "threads": threads,
        # Two threads on a busy machine can take ten times as long: figures need an idle one.
        "load before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scikit-learn": sklearn.__version__,
    }


def print_parts(
    names: str, parts: Mapping[str, tuple[str, Callable]], options: Any, about: Mapping[str, Any]
) -> None:
    """Make the tables that were asked for, print them, and write them where ``--json`` says.

    ``parts`` has the title of each table and what makes it of the options.
    """
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    tables = {}
    for name in names.split(","):
        title, make = parts[name]
        tables[name] = make(options)
        print(f"\n## {title}\n\n{markdown_table(tables[name])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "tables": tables}, indent=1))


def say(record: Mapping[str, Any]) -> None:
    """Tell a line of a table as soon as it is known, beside the tables themselves."""
    told = ", ".join(f"{key} {_cell(value)}" for key, value in record.items() if value is not None)
    print(told, file=sys.stderr, flush=True)


def markdown_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Lay out records as a Markdown table; text to the left, numbers to the right."""
    columns = list(dict.fromkeys(key for record in records for key in record))
    is_text = [all(isinstance(r.get(column), str) for r in records) for column in columns]
    lines = [columns, ["---" if text else "---:" for text in is_text]]
    lines += [[_cell(record.get(column)) for column in columns] for record in records]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 10 else f"{value:,.{1 if abs(value) < 1000 else 0}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
