"""DPBiclustering on planted blocks of zeros and ones: CPU seconds of a sweep, and what it finds.

Prints a Markdown table. A sweep costs the difference of a long and a short run over the sweeps
between them; the short one holds the start. scikit-learn's SpectralBiclustering stands beside it,
which is told both numbers of clusters.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from harness import Contestant, ContestantFailed, Limits, machine, markdown_table, run_isolated

METHODS = Contestant("countless", "bicluster_methods.py")
SIZES = {200: 10, 500: 10, 1_000: 20, 2_000: 20}  # clusters of either side, by the length of it
SHORT, LONG = 5, 25  # sweeps


def planted(side, n_clusters, seed):
    """Return a square table of blocks, and the clusters of its rows and columns."""
    random = np.random.default_rng(seed)
    row, column = random.integers(n_clusters, size=(2, side))
    share = random.beta(0.5, 0.5, (n_clusters, n_clusters))
    return random.random((side, side)) < share[row][:, column], row, column


def run(path, options, **job):
    """Run one contestant; None and a line on standard error where it cannot be."""
    job = {"data": str(path), "seed": options.seed, "n_sweeps": 0, "n_clusters": None, **job}
    try:
        return run_isolated(METHODS, job, Limits(1, options.timeout))
    except ContestantFailed as failure:
        print(f"{job['method']} not run: {failure}", file=sys.stderr)
        return None


def lines_of(side, n_clusters, options):
    """Return a line for each method on one table."""
    table, *truth = planted(side, n_clusters, options.seed)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        np.save(path, table)
        runs = [("DPBiclustering", {"method": "ours", "n_sweeps": LONG})]
        told = {"method": "spectral", "n_clusters": [n_clusters, n_clusters]}
        runs.append(("SpectralBiclustering, k told", told))
        for title, job in runs:
            print(f"{side} x {side}: {title}", file=sys.stderr, flush=True)
            found = run(path, options, **job)
            if not found:
                continue
            line = {"table": f"{side} x {side}", "planted": n_clusters, "method": title}
            line["CPU s"] = found["cpu"]
            short = job["method"] == "ours" and run(path, options, **{**job, "n_sweeps": SHORT})
            if short:
                line["CPU s a sweep"] = (found["cpu"] - short["cpu"]) / (LONG - SHORT)
                line["ns a cell"] = line["CPU s a sweep"] / side**2 * 1e9
            for side_name, labels in zip(("rows", "columns"), truth, strict=True):
                line[f"ARI of {side_name}"] = float(adjusted_rand_score(labels, found[side_name]))
            lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--seed", type=int, default=0)
    add("--timeout", type=float, default=600.0, help="seconds for each contestant")
    add("--quick", action="store_true", help="the two smallest tables: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    about = machine(1)
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    sizes = list(SIZES.items())[: 2 if options.quick else None]
    lines = [line for size in sizes for line in lines_of(*size, options)]
    print(f"\n## Planted blocks\n\n{markdown_table(lines)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "blocks": lines}, indent=1))


if __name__ == "__main__":
    main()
