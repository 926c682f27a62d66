"""What it costs to keep rows in memory, on disk, or on Dask, as there are more and more of them.

``python benchmarks/scale.py`` makes tables ten times as long twice, and takes the same passes of
Algorithm 1 over each in every home, beside dask-ml's KMeans and scikit-learn's MiniBatchKMeans at
the same k. ``--bounded`` clusters a table from disk that is larger than the memory it may use.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from countless import farthest_first_penalty
from harness import Contestant, ContestantFailed, Limits, machine, markdown_table, run_isolated

COUNTLESS = Contestant("countless", "countless_scale.py")
KMEANS = Contestant("k-means", "kmeans_scale.py")

N_COLUMNS, N_CLUSTERS = 16, 50
PENALTY_ROWS = 20_000  # the farthest-first rule looks at this many rows
WRITE_ROWS = 2**18
BOUNDED_ROWS, BOUNDED_BYTES = 20_000_000, 2**30

Record = dict[str, Any]


@contextmanager
def table(n_rows: int) -> Iterator[tuple[Path, float]]:
    """Write rows around overlapping clusters to a .npy file, piece by piece; give a penalty."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((N_CLUSTERS, N_COLUMNS), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        rows = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, N_COLUMNS))
        for start in range(0, n_rows, WRITE_ROWS):
            part = rows[start : start + WRITE_ROWS]
            noise = 0.7 * random.standard_normal(part.shape, dtype=np.float32)
            part[:] = centers[random.integers(N_CLUSTERS, size=len(part))] + noise
        rows.flush()
        penalty = farthest_first_penalty(np.array(rows[:PENALTY_ROWS]), N_CLUSTERS)
        del rows
        yield path, penalty


def attempt(contestant: Contestant, title: str, job: Record, limits: Limits) -> Record:
    """Run one contestant; a failure becomes a line that says so."""
    print(title, file=sys.stderr, flush=True)
    try:
        done = run_isolated(contestant, job, limits)
    except ContestantFailed as failure:
        return {"method": title, "not run": str(failure)}
    print(f"  {done['seconds_a_pass']:.3f} s a pass, {done['passes']} passes", file=sys.stderr)
    return {"method": title} | done


def compare(n_rows: int, options: argparse.Namespace) -> list[Record]:
    """Take the same passes in every home; then let the others take as many at the same k."""
    with table(n_rows) as (path, penalty):
        job = {"data": str(path), "repeat": options.repeat}
        job["parameters"] = {"penalty": penalty, "max_iter": options.passes}
        found = {}
        for home, threads in [
            ("memory", 1), ("memory", 2), ("disk", 1), ("disk", 2), ("Dask", 1), ("Dask", 2),
        ]:  # fmt: skip
            unit = "workers" if home == "Dask" else "threads"
            title = f"{home}, {threads} {unit if threads > 1 else unit[:-1]}"
            limits = Limits(threads, options.timeout)
            done = attempt(COUNTLESS, title, job | {"home": home, "threads": threads}, limits)
            found[home, threads] = done
        k = next((done["k"] for done in found.values() if "k" in done), N_CLUSTERS)
        peer = {"data": str(path), "k": k, "passes": options.passes, "threads": 2}
        others = [
            attempt(KMEANS, title, peer | {"method": method}, Limits(2, options.timeout))
            for method, title in (
                ("dask-ml", "dask-ml KMeans, 2 workers"),
                ("mini-batch", "MiniBatchKMeans, memory"),
            )
        ]
    _check_same(found)
    lines = []
    for (_, threads), done in found.items():
        if "seconds_a_pass" in done and "seconds_a_pass" in found["memory", threads]:
            memory = found["memory", threads]
            done["/ memory"] = done["seconds_a_pass"] / memory["seconds_a_pass"]
            done["CPU / memory"] = done["cpu"] / memory["cpu"]
    for done in [*found.values(), *others]:
        lines.append({"rows": n_rows} | _line(done, n_rows))
    return lines


def _line(done: Record, n_rows: int) -> Record:
    if "not run" in done:
        return {"method": done["method"], "k": f"not run: {done['not run']}"}
    return {
        "method": done["method"],
        "k": done["k"],
        "passes": done["passes"],
        "seconds": done["seconds"],
        "before pass 2": done.get("opening"),
        "ms a pass": 1e3 * done["seconds_a_pass"],
        "million rows a second": n_rows / done["seconds_a_pass"] / 1e6,
        "/ memory": done.get("/ memory"),
        # Of all processes, over the whole fit: what a busy machine cannot distort.
        "CPU seconds": done.get("cpu"),
        "CPU / memory": done.get("CPU / memory"),
        "peak MB": done["peak_bytes"] / 1e6,
        "table MB": n_rows * N_COLUMNS * 4 / 1e6,
    }


def _check_same(found: dict) -> None:
    answers = {(done["k"], done["objective"]) for done in found.values() if "k" in done}
    if len(answers) > 1:
        raise SystemExit(f"homes disagree: {answers}")


def bounded(options: argparse.Namespace) -> list[Record]:
    """Cluster a table from disk, to the end, and tell the peak of memory."""
    n_rows = options.bounded_rows
    with table(n_rows) as (path, penalty):
        job = {"data": str(path), "home": "disk", "threads": options.threads, "repeat": 1}
        job["parameters"] = {"penalty": penalty, "max_iter": options.passes}
        done = attempt(COUNTLESS, "disk", job, Limits(options.threads, options.timeout))
    line = {"rows": n_rows} | _line(done, n_rows)
    if "peak_bytes" in done:
        line["under 1 GiB"] = "yes" if done["peak_bytes"] < BOUNDED_BYTES else "no"
    return [line]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rows", default="50000,500000,5000000", help="lengths of tables (default: %(default)s)")
    add("--passes", type=int, default=10, help="passes over each (default: %(default)s)")
    add("--repeat", type=int, default=3, help="best of this many fits (default: %(default)s)")
    add("--threads", type=int, default=2, help="threads for --bounded (default: %(default)s)")
    add("--timeout", type=float, default=900.0, help="seconds for each contestant")
    add("--bounded", action="store_true", help="only the table larger than its memory")
    add("--bounded-rows", type=int, default=BOUNDED_ROWS, help="its rows (default: %(default)s)")
    add("--quick", action="store_true", help="short tables, once: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rows, options.repeat, options.bounded_rows = "5000,50000", 1, 200_000
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    about = machine(options.threads)
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    lines: list[Record] = []
    if options.bounded:
        lines = bounded(options)
    else:
        for n_rows in map(int, options.rows.split(",")):
            lines += compare(n_rows, options)
    print(f"\n{markdown_table(lines)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
