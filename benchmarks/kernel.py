"""DP-means in the feature space of a kernel, beside the memory limit and beside its peers.

Prints Markdown tables: a pass over a precomputed float32 kernel beside one product of the kernel
with a vector, the least that reading it once can take; and fits beside scikit-learn's, with time,
memory and agreement with the truth.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from harness import (
    Contestant,
    ContestantFailed,
    Limits,
    machine,
    measure,
    print_parts,
    run_isolated,
)

PASS = Contestant("a pass", "kernel_pass.py")
METHODS = "kernel_methods.py"
N_CLUSTERS = 20
FIT_ROWS, LONG_ROWS = 5_000, 100_000


def pass_table(options) -> list[dict]:
    """Time passes over one kernel, and one product with a vector."""
    rows = []
    for n_rows in (2_000, 4_000) if options.quick else (10_000, 20_000):
        job = {
            "n_rows": n_rows,
            "n_clusters": N_CLUSTERS,
            "penalty": 0.5,
            "threads": options.threads,
            "repeat": options.repeat,
        }
        found = run_isolated(PASS, job, Limits(options.threads, options.timeout))
        plain, refined, sweep = found["plain"], found["refined"], found["sweep"]
        extra = found["extra_bytes"]
        rows.append(
            {
                "n": n_rows,
                "kernel MB": found["bytes"] / 1e6,
                "computed in, s": found["making"],
                "checked in, s": found["checking"],
                "product with a vector, s": sweep,
                "pass that moves all rows, s": found["fullest"],
                "/ product": found["fullest"] / sweep,
                "average pass of Algorithm 1, s": plain["seconds"] / plain["passes"],
                "average / product": plain["seconds"] / plain["passes"] / sweep,
                "passes": plain["passes"],
                "k": plain["k"],
                "refined fit, s": refined["seconds"],
                "refined k": refined["k"],
                "extra MB": None if extra is None else extra / 1e6,
            }
        )
    return rows


def fit_table(options) -> list[dict]:
    """Fit blobs by a kernel, by its approximation, and by what is told k."""
    rows = []
    sizes = (1_000, 4_000) if options.quick else (FIT_ROWS, LONG_ROWS)
    for n_rows in sizes:
        contestants = [
            ("Nystroem (300) and DPMeans", {"method": "nystroem", "n_components": 300}),
            ("KMeans, told k, 10 starts", {"method": "kmeans", "n_clusters": N_CLUSTERS}),
        ]
        if n_rows == sizes[0]:
            contestants += [
                ("KernelDPMeans", {"method": "kernel"}),
                ("SpectralClustering, told k", {"method": "spectral", "n_clusters": N_CLUSTERS}),
            ]
        X, truth = make_blobs(n_rows, 8, centers=N_CLUSTERS, cluster_std=1.5, random_state=0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.npy"
            np.save(path, X.astype(np.float32))
            for title, settings in contestants:
                rows.append(fit_line(title, settings, path, truth, options))
    return rows


def fit_line(title, settings, path, truth, options) -> dict:
    print(f"{len(truth)} rows: {title}", file=sys.stderr, flush=True)
    line = {"n": len(truth), "method": title}
    limits = Limits(options.threads, options.timeout)
    try:
        found = measure(Contestant(title, METHODS), path, settings, options.repeat, limits)
    except ContestantFailed as failure:
        return line | {"seconds": f"not run: {failure}"}
    return line | {
        "seconds": found.seconds,
        "k": len(np.unique(found.labels)),
        "adjusted Rand": float(adjusted_rand_score(truth, found.labels)),
        "extra MB": None if found.extra_bytes is None else found.extra_bytes / 1e6,
    }


PARTS = {"pass": ("A pass", pass_table), "fits": ("Fits", fit_table)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default="pass,fits", help="tables to make, of pass and fits")
    add("--threads", type=int, default=2, help="threads for everybody (default: %(default)s)")
    add("--repeat", type=int, default=3, help="best of this many (default: %(default)s)")
    add("--timeout", type=float, default=900.0, help="seconds for each contestant")
    add("--quick", action="store_true", help="fewer rows: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    print_parts(options.parts, PARTS, options, machine(options.threads))


if __name__ == "__main__":
    main()
