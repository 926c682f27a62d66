"""What is held, and what is lost, under load: long tables, streams, kills and altered files.

``python benchmarks/load.py`` clusters 20 million rows from disk and a stream of 5 million, draws
from the posteriors of large tables, kills fits and workers and goes on, and loads altered files.
Each part runs in a process of its own and checks its answer; ``lost`` counts what was not as it
should be.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from harness import Contestant, ContestantFailed, Limits, machine, print_parts, run_isolated, say

COUNTLESS = Contestant("countless", "countless_load.py")

# What each part is given, and what --quick gives it.
SIZES: dict[str, dict[str, Any]] = {
    "disk": {"n_rows": 20_000_000},
    "stream": {"n_rows": 5_000_000},
    "mixture": {"n_rows": 200_000, "n_sweeps": 30},
    "crosscat": {"n_rows": 50_000, "n_columns": 30, "n_sweeps": 100},
    "kills": {"n_rows": 300_000, "n_kills": 20},
    "dask": {"n_rows": 2_000_000, "n_kills": 5},
    "altered": {"n_files": 500},
}
QUICK: dict[str, dict[str, Any]] = {
    "disk": {"n_rows": 200_000},
    "stream": {"n_rows": 500_000},
    "mixture": {"n_rows": 2_000, "n_sweeps": 10},
    "crosscat": {"n_rows": 500, "n_columns": 9, "n_sweeps": 10},
    "kills": {"n_rows": 100_000, "n_kills": 2},
    "dask": {"n_rows": 300_000, "n_kills": 1},
    "altered": {"n_files": 50},
}


def all_parts(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the parts that were asked for, each in a fresh process."""
    lines = []
    for part in options.parts.split(","):
        job = {"part": part, "threads": options.threads}
        job |= (QUICK if options.quick else SIZES)[part]
        print(f"{part}: {job}", file=sys.stderr, flush=True)
        try:
            line = run_isolated(COUNTLESS, job, Limits(options.threads, options.timeout))
        except ContestantFailed as failure:
            line = {"part": part, "held": f"failed: {failure}", "lost": 1}
        say(line)
        lines.append(line)
    return lines


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default=",".join(SIZES), help="which of them (default: %(default)s)")
    add("--threads", type=int, default=2, help="threads, and workers of Dask")
    add("--timeout", type=float, default=3600.0, help="seconds for each part")
    add("--quick", action="store_true", help="small sizes: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts.split(",")) - set(SIZES):
        parser.error(f"--parts must be of {', '.join(SIZES)}; got {', '.join(sorted(unknown))}")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    print_parts("load", {"load": ("Under load", all_parts)}, options, machine(options.threads))


if __name__ == "__main__":
    main()
