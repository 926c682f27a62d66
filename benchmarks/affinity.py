"""Affinity propagation beside scikit-learn's, R's apcluster, and FasterPAM, in one run.

Prints Markdown tables: plain messages on full similarities, on sparse ones, and with a prior.
``README.md`` says how to read them. R and its apcluster are used where they are installed.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import kneighbors_graph

from harness import (
    Contestant,
    ContestantFailed,
    Limits,
    Measurement,
    machine,
    markdown_table,
    measure,
    say,
)

SCRIPT = "affinity_methods.py"
COUNTLESS = Contestant("countless", SCRIPT)
SKLEARN = Contestant("scikit-learn", SCRIPT)
R = Contestant("R apcluster", SCRIPT)
KMEDOIDS = Contestant("kmedoids FasterPAM", SCRIPT, ("kmedoids", "numpy"))
DAMPINGS = (0.5, 0.7, 0.9)
N_NEIGHBORS = 42

Record = dict[str, Any]


class Bench:
    """The settings of one run."""

    def __init__(self, options: argparse.Namespace):
        self.limits = Limits(options.threads, options.timeout)
        self.repeat, self.quick = options.repeat, options.quick

    def run(self, contestant: Contestant, data: np.ndarray, **options: Any) -> Measurement | str:
        """Measure a contestant, or say why not."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.npy"
            np.save(path, data)
            try:
                return measure(contestant, path, options, self.repeat, self.limits)
            except ContestantFailed as failure:
                return f"not run: {failure}"


def net_similarity(S: Any, labels: np.ndarray, preference: float) -> float:
    """Return the net similarity of clusters, each under the best of its rows."""
    net = 0.0
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        within = S[np.ix_(rows, rows)]
        np.fill_diagonal(within, 0.0)
        net += float(within.sum(axis=0).max()) + preference
    return net


def line_of(title: str, run: Measurement | str, base: Measurement | None, net: float | None):
    """Return a line of a table; ratios are to the base's time and memory."""
    if isinstance(run, str):
        return {"method": title, "seconds": run}
    seconds = run.details.get("inside", run.seconds)
    line: Record = {"method": title, "seconds": seconds, "cpu seconds": run.details["cpu"]}
    line |= {"iterations": run.passes, "converged": str(run.details.get("converged", ""))}
    line |= {"k": len(np.unique(run.labels)), "net similarity": net}
    line["extra MB"] = None if run.extra_bytes is None else run.extra_bytes / 1e6
    if base is not None:
        line["times as fast"] = base.seconds / seconds
        if base.extra_bytes and run.extra_bytes:
            line["/ memory"] = run.extra_bytes / base.extra_bytes
    return line


def plain_table(bench: Bench) -> list[Record]:
    """Full similarities at the median preference; ratios are to scikit-learn at the damping."""
    return [line for n in ((500,) if bench.quick else (2000, 5000)) for line in compare(bench, n)]


def compare(bench: Bench, n: int) -> list[Record]:
    """Run everybody on rows without clusters, where messages have most to say."""
    X = np.random.RandomState(0).standard_normal((n, 10))
    squares = np.square(X).sum(axis=1)
    S = 2 * X @ X.T - squares[:, None] - squares
    preference = float(np.median(S))
    records: list[Record] = []

    def add(title: str, run: Measurement | str, base: Measurement | str | None = None) -> None:
        net = None if isinstance(run, str) else net_similarity(S, run.labels, preference)
        known = None if isinstance(base, str) else base
        records.append({"rows": n} | line_of(title, run, known, net))
        say(records[-1])

    for damping in DAMPINGS:
        theirs = bench.run(SKLEARN, X, method="scikit-learn", damping=damping)
        add(f"scikit-learn, damping {damping}", theirs, theirs)
        for title, options in {"": {}, ", refine": {"refine": True}}.items():
            ours = bench.run(COUNTLESS, X, method="countless", damping=damping, **options)
            add(f"countless, damping {damping}{title}", ours, theirs)
    single = bench.run(COUNTLESS, X, method="countless", damping=0.7, dtype="float32")
    add("countless, damping 0.7, float32", single)
    found = {
        line["k"] for line in records if line["method"].startswith("countless") and "k" in line
    }
    for k in sorted(found):
        add(f"{KMEDOIDS.title} at k={k}", bench.run(KMEDOIDS, X, method="kmedoids", n_clusters=k))
    if n <= 2000:
        settings = {"damping": 0.7, "max_iter": 200, "convergence_iter": 15}
        add("R apcluster, damping 0.7", bench.run(R, X, method="apcluster", **settings))
    return records


def sparse_table(bench: Bench) -> list[Record]:
    """The similarities of nearest neighbours; nanoseconds are of one edge in one iteration.

    FasterPAM is not there: it needs all pairs.
    """
    n = 2000 if bench.quick else 20_000
    X = np.random.RandomState(0).standard_normal((n, 5))
    graph = kneighbors_graph(X, N_NEIGHBORS, mode="distance").tocoo()
    edges = np.column_stack([graph.row, graph.col, -(graph.data**2)])
    preference = 4 * float(np.median(edges[:, 2]))
    settings = {"sparse": True, "preference": preference, "damping": 0.9}
    settings |= {"max_iter": 400, "convergence_iter": 50}
    ours = {"method": "countless"}
    records: list[Record] = []
    for title, contestant, options in (
        ("R apcluster, damping 0.9", R, {"method": "apcluster"}),
        *(
            (f"countless, damping {damping}", COUNTLESS, ours | {"damping": damping})
            for damping in DAMPINGS
        ),
        ("countless, damping 0.9, prior", COUNTLESS, ours | {"prior": "dirichlet-process"}),
    ):
        run = bench.run(contestant, edges, **settings | options)
        line = line_of(title, run, None, None)
        if not isinstance(run, str):
            line["net similarity"] = run.details["net"]
            cost = line["seconds"] / run.passes / len(edges)
            line |= {
                "ns an edge": 1e9 * cost,
                "cpu ns": 1e9 * line["cpu seconds"] / run.passes / len(edges),
            }
        records.append({"rows": n, "edges": len(edges)} | line)
        say(records[-1])
    return records


def prior_table(bench: Bench) -> list[Record]:
    """Seconds an iteration with and without a prior, and how they grow."""
    records: list[Record] = []
    before: dict[str, float] = {}
    for n in (250, 500) if bench.quick else (500, 1000, 2000, 4000):
        X = np.random.RandomState(0).standard_normal((n, 2))
        line: Record = {"rows": n}
        for title, prior in {"no prior": None, "Dirichlet process": "dirichlet-process"}.items():
            options = {"affinity": "gaussian", "noise_variance": 0.5, "prior": prior}
            run = bench.run(COUNTLESS, X, method="countless", max_iter=10, **options)
            if isinstance(run, str):
                line[f"{title}, s"] = run
                continue
            # Of 40 iterations, the time of moves at the end and of similarities included.
            seconds = run.details["cpu"] / run.passes
            line[f"{title}, cpu s"] = seconds
            line[f"{title}, ns an entry"] = 1e9 * seconds / n**2
            if title in before:
                line[f"{title}, growth"] = seconds / before[title]
            before[title] = seconds
        records.append(line)
        say(line)
    return records


PARTS: dict[str, Callable[[Bench], list[Record]]] = {
    "plain": plain_table,
    "sparse": sparse_table,
    "prior": prior_table,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="which tables")
    parser.add_argument("--quick", action="store_true", help="fewer rows: a smoke run")
    parser.add_argument("--repeat", type=int, default=2, help="fits, of which the best counts")
    parser.add_argument("--threads", type=int, default=2, help="for everybody")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one contestant")
    parser.add_argument("--json", metavar="FILE", help="write the figures here, too")
    options = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine(options.threads)}
    print(", ".join(f"{key}: {value}" for key, value in figures["machine"].items()), "\n")
    for part in options.parts.split(","):
        figures[part] = PARTS[part](Bench(options))
        print(f"## {part}\n\n{markdown_table(figures[part])}\n", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
