"""Divisive trees beside R's, and Gower's dissimilarities beside the package of that name.

Prints Markdown tables: DIANA from rows to the whole tree beside R's ``cluster::diana``, with the
agreement of both at a number of clusters; growth with the number of rows; and the mixed
dissimilarity of tables with numeric and categorical columns. R and its package ``cluster`` must be
installed (Debian: r-base-core, r-cran-cluster).
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from harness import Contestant, ContestantFailed, Limits, machine, measure, print_parts

OURS = Contestant("countless", "pairs_methods.py")
R = Contestant("R cluster::diana", "r_diana.py")
GOWER = Contestant("gower", "gower_package.py", ("gower", "pandas"))
N_FEATURES, N_CENTERS, N_CLUSTERS = 10, 12, 12
N_NUMERIC, N_CATEGORIES = 6, 6


def table_of_rows(n_rows: int) -> np.ndarray:
    """Return overlapping blobs."""
    return make_blobs(n_rows, N_FEATURES, centers=N_CENTERS, cluster_std=4.0, random_state=0)[0]


def table_of_both(n_rows: int) -> np.ndarray:
    """Return numeric columns, then codes of categories."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(n_rows, N_NUMERIC)) * np.arange(1, N_NUMERIC + 1)
    return np.column_stack([numbers, random.integers(0, 5, size=(n_rows, N_CATEGORIES))])


def run(contestant: Contestant, X: np.ndarray, settings: dict, options) -> dict | None:
    """Measure one contestant; None and a line on standard error where it cannot be."""
    print(f"{len(X)} rows: {contestant.title}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        limits = Limits(options.threads, options.timeout)
        try:
            found = measure(contestant, path, settings, options.repeat, limits)
        except ContestantFailed as failure:
            print(f"  not run: {failure}", file=sys.stderr)
            return None
    extra = found.extra_bytes
    return {
        "seconds": found.seconds,
        "CPU s": found.details["cpu"],
        "extra MB": None if extra is None else extra / 1e6,
        "labels": found.labels,
        "mean": found.details.get("mean"),
    }


def line(n_rows: int, method: str, found: dict | None, first: dict | None) -> dict:
    """Return a line of a table; times are divided by the first contestant's."""
    if found is None:
        return {"n": n_rows, "method": method, "seconds": "not run"}
    shown = {name: found[name] for name in ("seconds", "CPU s", "extra MB")}
    ratio = found["CPU s"] / first["CPU s"] if first else None
    return {"n": n_rows, "method": method, **shown, "CPU / countless": ratio}


def diana_table(options) -> list[dict]:
    """Grow the same trees here and in R."""
    lines = []
    for n_rows in (200, 400) if options.quick else (500, 1_000, 2_000):
        X = table_of_rows(n_rows)
        settings = {"n_clusters": N_CLUSTERS}
        ours = run(OURS, X, {"method": "diana", **settings}, options)
        theirs = run(R, X, settings, options)
        agreement = None
        if ours and theirs:
            agreement = float(adjusted_rand_score(ours["labels"], theirs["labels"]))
        lines.append(line(n_rows, "countless, DIANA", ours, ours))
        lines.append(line(n_rows, R.title, theirs, ours) | {"same clusters (ARI)": agreement})
    return lines


def growth_table(options) -> list[dict]:
    """Grow larger trees, from the top by three methods."""
    lines = []
    for n_rows in (500, 1_000) if options.quick else (2_000, 5_000, 10_000):
        X = table_of_rows(n_rows).astype(np.float32)
        for method in ("diana", "mst"):
            found = run(OURS, X, {"method": method, "n_clusters": N_CLUSTERS}, options)
            new = line(n_rows, f"countless, {method}, float32", found, None)
            lines.append({name: value for name, value in new.items() if "/" not in name})
    return lines


def gower_table(options) -> list[dict]:
    """Compare all rows of a mixed table."""
    n_rows = 500 if options.quick else 5_000
    X = table_of_both(n_rows)
    settings = {"method": "gower", "n_categories": N_CATEGORIES}
    ours = run(OURS, X, settings, options)
    single = run(OURS, X.astype(np.float32), settings, options)
    theirs = run(GOWER, X, settings, options)
    found = {"countless": ours, "countless, float32": single, "gower": theirs}
    return [
        line(n_rows, method, one, ours) | {"mean": one["mean"] if one else None}
        for method, one in found.items()
    ]


PARTS = {
    "diana": ("DIANA", diana_table),
    "growth": ("Growth", growth_table),
    "gower": ("Gower's dissimilarity", gower_table),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default="diana,growth,gower", help="tables to make, of diana, growth and gower")
    add("--threads", type=int, default=1, help="threads for everybody (default: %(default)s)")
    add("--repeat", type=int, default=3, help="best of this many (default: %(default)s)")
    add("--timeout", type=float, default=900.0, help="seconds for each contestant")
    add("--quick", action="store_true", help="fewer rows: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    print_parts(options.parts, PARTS, options, machine(options.threads))


if __name__ == "__main__":
    main()
