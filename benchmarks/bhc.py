"""Bayesian hierarchical clustering beside SciPy's average linkage, in one run.

Prints Markdown tables: times and memory from 200 to 5,000 rows, as ratios to average linkage, the
evidence beside a plain recursion, and long tables gathered to leaves. ``README.md`` says how times
are taken. R's BHC, measured once elsewhere, took 26.8 s for 1,000 rows.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from countless import BayesianHierarchicalClustering
from countless.models.registry import as_model
from harness import (
    Contestant,
    ContestantFailed,
    Limits,
    Measurement,
    machine,
    markdown_table,
    measure,
)

COUNTLESS = Contestant("countless", "countless_bhc.py")
SCIPY = Contestant("SciPy average linkage", "scipy_linkage.py")
R_SECONDS, R_ROWS = 26.8, 1_000
N_CLUSTERS = 10
# Model, columns, and whether they are cut to 0 and 1.
TABLES = {"gaussian": (2, False), "diagonal": (10, False), "bernoulli": (50, True)}

Record = dict[str, Any]


def draw(n: int, n_columns: int, binary: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(n, n_columns, centers=N_CLUSTERS, cluster_std=1.5, random_state=0)
    return (X > 0).astype(float) if binary else X, y


def plain_evidence(X: np.ndarray, model: str, run: Measurement) -> float:
    """Return the bound on the log evidence as the paper's recursion has it, node by node."""
    details = run.details
    bound = as_model(model).bind(X).with_hyper(np.array(details["hyper"]))
    alpha, n = details["alpha"], len(X)
    leaves = bound.statistics(bound.rows(X), np.arange(n))
    nodes = [(s, 1, np.log(alpha), float(bound.log_marginal(s))) for s in leaves]
    for a, b in details["children"]:
        (s_a, n_a, d_a, p_a), (s_b, n_b, d_b, p_b) = nodes[a], nodes[b]
        one = np.log(alpha) + gammaln(n_a + n_b)
        log_d = np.logaddexp(one, d_a + d_b)
        merged = one - log_d + float(bound.log_marginal(s_a + s_b))
        log_p = np.logaddexp(merged, d_a + d_b - log_d + p_a + p_b)
        nodes.append((s_a + s_b, n_a + n_b, log_d, log_p))
    *_, log_d, log_p = nodes[-1]
    return float(log_p + log_d + gammaln(alpha) - gammaln(alpha + n))


def compare(n: int, model: str, options: argparse.Namespace) -> list[Record]:
    """Run everybody on one table."""
    X, y = draw(n, *TABLES[model])
    limits = Limits(options.threads, options.timeout)
    rows: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.npy"
        np.save(data, X)

        def run(contestant: Contestant, **settings) -> Measurement:
            print(f"{model}, {n} rows: {contestant.title}", file=sys.stderr, flush=True)
            return measure(contestant, data, settings, options.repeat, limits)

        base = run(SCIPY, n_clusters=N_CLUSTERS)
        rows.append(_record(n, model, "SciPy average linkage, told k", base, base, y))
        for title, all_of_it in (("countless, the paper's algorithm", False), ("countless", True)):
            try:
                found = run(COUNTLESS, model=model, learn=all_of_it, refine=all_of_it)
            except ContestantFailed as failure:
                rows.append({"rows": n, "model": model, "method": title, "seconds": str(failure)})
                continue
            row = _record(n, model, title, found, base, y)
            if n <= 500:
                plain = plain_evidence(X, model, found)
                row["off plain evidence"] = abs(plain - found.details["log_evidence"]) / abs(plain)
            if n == R_ROWS:
                row["R's BHC / this"] = R_SECONDS / found.seconds
            rows.append(row)
    return rows


def _record(
    n: int, model: str, title: str, run: Measurement, base: Measurement, truth: np.ndarray
) -> Record:
    extra = None if run.extra_bytes is None else run.extra_bytes / 2**20
    return {
        "rows": n,
        "model": model,
        "method": title,
        "seconds": run.seconds,
        "times SciPy": run.seconds / base.seconds,
        "CPU, times SciPy": run.details["cpu"] / base.details["cpu"],
        "extra MiB": extra,
        "trees": run.passes,
        "clusters": len(np.unique(run.labels)),
        "adjusted Rand": adjusted_rand_score(truth, run.labels),
    }


def long_tables(n: int) -> list[Record]:
    """Gather many rows to few leaves."""
    X, y = draw(n, 2, False)
    rows = []
    for leaves in ("micro", "sample"):
        for n_leaves in (500, 1000, 2000):
            print(f"{n} rows: {n_leaves} leaves, {leaves}", file=sys.stderr, flush=True)
            model = BayesianHierarchicalClustering(n_leaves=n_leaves, leaves=leaves, random_state=0)
            model.fit(X[: 2 * n_leaves])  # compiles
            start = time.perf_counter()
            model.fit(X)
            row = {"rows": n, "leaves": f"{n_leaves} {leaves}"}
            row["seconds"] = time.perf_counter() - start
            row["clusters"] = model.n_clusters_
            row["adjusted Rand"] = adjusted_rand_score(y, model.labels_)
            rows.append(row | {"log evidence": model.log_evidence_})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 500, 1000, 2000, 5000])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("--quick", action="store_true", help="200 and 1,000 rows, one repeat")
    parser.add_argument("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.repeat = [200, 1000], 1
    times = [row for model in TABLES for n in options.rows for row in compare(n, model, options)]
    tables = {
        "Times": times,
        "Long tables": long_tables(10_000 if options.quick else 100_000),
    }
    about = machine(options.threads)
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for title, records in tables.items():
        print(f"\n### {title}\n\n{markdown_table(records)}")
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "tables": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
