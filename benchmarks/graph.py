"""Graph DP-means beside community detection and partitioning, in one run.

Prints Markdown tables: planted graphs of 100,000 nodes, the objective at one price for everybody's
clusters, the growth of time with links, and the real graphs where they are present. ``README.md``
says how times are taken.
"""

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from harness import Contestant, ContestantFailed, Limits, machine, markdown_table, measure

COUNTLESS = Contestant("countless", "countless_graph.py")
NETWORKIT = ("networkit", "scipy")
IGRAPH = ("igraph", "scipy")
PEERS = {
    "networkit Leiden": Contestant("networkit Leiden", "graph_networkit.py", NETWORKIT),
    "networkit PLM": Contestant("networkit PLM", "graph_networkit.py", NETWORKIT),
    "igraph Leiden": Contestant("igraph Leiden", "graph_igraph.py", IGRAPH),
    "igraph label propagation": Contestant("igraph label propagation", "graph_igraph.py", IGRAPH),
    "pymetis, told k": Contestant("pymetis, told k", "graph_pymetis.py", ("pymetis", "scipy")),
    "scikit-learn spectral, told k": Contestant(
        "scikit-learn spectral, told k", "graph_spectral.py"
    ),
}
TOLD_K = ("pymetis, told k", "scikit-learn spectral, told k")
SLOW = "scikit-learn spectral, told k"  # not tried beyond so many nodes
SLOW_NODES = 10_000
REAL = Path(__file__).parents[2] / "shared" / "data" / "graphs"

Record = dict[str, Any]


def planted(sizes: np.ndarray, degree: int = 20, inside: float = 0.7, seed: int = 0):
    """Draw links, a given share of them within the communities; return matrix and truth."""
    random = np.random.default_rng(seed)
    n = int(sizes.sum())
    truth = np.repeat(np.arange(len(sizes)), sizes)
    start = np.cumsum(sizes) - sizes
    a = random.integers(n, size=n * degree // 2)
    size = sizes[truth[a]]
    near = start[truth[a]] + (random.random(len(a)) * size).astype(np.int64)
    b = np.where(random.random(len(a)) < inside, near, random.integers(n, size=len(a)))
    a, b = a[a != b], b[a != b]
    links = sp.coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    links = (links + links.T).tocsr()
    links.data[:] = 1.0
    order = random.permutation(n)
    return links[order][:, order].tocsr(), truth[order]


def equal_communities(n: int = 100_000, k: int = 100):
    return planted(np.full(k, n // k))


def power_law_communities(n: int = 100_000, k: int = 300):
    random = np.random.default_rng(0)
    sizes = random.pareto(1.5, k) + 1
    sizes = np.maximum(30, n * sizes / sizes.sum()).astype(np.int64)
    sizes[sizes.argmax()] += n - sizes.sum()
    return planted(sizes)


def real_graph(name: str):
    """Read one of the real graphs, directions and repeats dropped, with its reference classes."""
    with (REAL / name / "nodes.csv").open(newline="") as file:
        nodes = list(csv.DictReader(file))
    place = {row["node"]: i for i, row in enumerate(nodes)}
    with (REAL / name / "edges.csv").open(newline="") as file:
        edges = list(csv.DictReader(file))
    a, b = ([place[row[end]] for row in edges] for end in ("source", "target"))
    weight = [float(row.get("weight", 1)) for row in edges]
    links = sp.coo_array((weight, (a, b)), shape=(len(nodes), len(nodes))).tocsr()
    links = links.maximum(links.T).tocsr()
    links.setdiag(0)
    links.eliminate_zeros()
    return links, np.unique([row["class"] for row in nodes], return_inverse=True)[1]


def normalized_cut(links: sp.csr_array, labels: np.ndarray) -> float:
    """Sum each cluster's share of links that lead out of it."""
    labels = np.unique(labels, return_inverse=True)[1]
    ends = links.tocoo()
    same = labels[ends.row] == labels[ends.col]
    degree = np.bincount(labels[ends.row], ends.data, labels.max() + 1)
    inside = np.bincount(labels[ends.row[same]], ends.data[same], labels.max() + 1)
    return float(np.sum((degree - inside)[degree > 0] / degree[degree > 0]))


class Bench:
    """The settings of one run, and what it takes to measure everybody on one graph."""

    def __init__(self, options: argparse.Namespace):
        self.limits = Limits(options.threads, options.timeout)
        self.repeat = options.repeat
        self.quick = options.quick

    def compare(self, name: str, links: sp.csr_array, truth: np.ndarray, peers=tuple(PEERS)):
        """Run everybody on one graph; the penalty found here judges all the clusters."""
        contestants = {"countless": COUNTLESS, **{peer: PEERS[peer] for peer in peers}}
        runs, failures = {}, {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "links.npy"
            ends = sp.triu(links).tocoo()
            np.save(path, np.stack([ends.row, ends.col, ends.data], axis=1))
            for title, contestant in contestants.items():
                if title == SLOW and links.shape[0] > SLOW_NODES:
                    failures[title] = f"not tried beyond {SLOW_NODES:,} nodes"
                    continue
                options: Record = {"n_nodes": links.shape[0], "method": title}
                if title in TOLD_K:
                    options["k"] = int(truth.max()) + 1
                print(f"{name}: {title}", file=sys.stderr, flush=True)
                try:
                    runs[title] = measure(contestant, path, options, self.repeat, self.limits)
                except ContestantFailed as failure:
                    failures[title] = f"not run: {failure}"
        penalty = runs["countless"].details["penalty"] if "countless" in runs else -0.5
        leiden = runs.get("networkit Leiden")
        n_true = int(truth.max()) + 1
        cut = normalized_cut(links, truth)
        truly = {"graph": name, "method": "the truth", "k": n_true, "normalised cut": cut}
        rows: list[Record] = [truly | {"objective": cut + penalty * n_true}]
        for title in contestants:
            row: Record = {"graph": name, "method": title}
            if title in failures:
                rows.append(row | {"seconds": failures[title]})
                continue
            run = runs[title]
            k = len(np.unique(run.labels))
            cut = normalized_cut(links, run.labels)
            row |= {
                "seconds": run.seconds,
                "/ Leiden": run.seconds / leiden.seconds if leiden else None,
                "k": k,
                "NMI": float(normalized_mutual_info_score(truth, run.labels)),
                "normalised cut": cut,
                "objective": cut + penalty * k,
                "extra MB": None if run.extra_bytes is None else run.extra_bytes / 1e6,
            }
            rows.append(row)
        return rows


def planted_table(bench: Bench) -> list[Record]:
    n = 10_000 if bench.quick else 100_000
    rows = bench.compare("100 equal", *equal_communities(n))
    k = 100 if bench.quick else 300
    return rows + bench.compare(f"{k} power-law", *power_law_communities(n, k))


def growth_table(bench: Bench) -> list[Record]:
    """Double the nodes, and with them the links; show the time and its ratio to the line above."""
    rows: list[Record] = []
    before: dict[str, float] = {}
    peers = ("networkit Leiden", "igraph Leiden")
    for n in (2_000, 4_000) if bench.quick else (25_000, 50_000, 100_000, 200_000):
        links, truth = planted(np.full(n // 500, 500))
        row: Record = {"nodes": n, "links": links.nnz // 2}
        for found in bench.compare(f"{n} nodes", links, truth, peers):
            title = found["method"]
            if isinstance(found.get("seconds"), float):
                row[title] = f"{found['seconds']:.2f} s"
                if title in before:
                    row[title] += f" (x{found['seconds'] / before[title]:.1f})"
                before[title] = found["seconds"]
        rows.append(row)
    return rows


def real_table(bench: Bench) -> list[Record]:
    if not REAL.exists():
        return [{"not run": "the real graphs are not here"}]
    rows: list[Record] = []
    for folder in sorted(REAL.iterdir()):
        rows += bench.compare(folder.name, *real_graph(folder.name))
    return rows


PARTS = {
    "planted": ("Planted communities", planted_table),
    "growth": ("Growth of time", growth_table),
    "real": ("Real graphs", real_table),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default=",".join(PARTS), help="tables to make (default: %(default)s)")
    add("--threads", type=int, default=1, help="threads for everybody (default: %(default)s)")
    add("--repeat", type=int, default=3, help="best of this many fits (default: %(default)s)")
    add("--timeout", type=float, default=300.0, help="seconds for each contestant on each graph")
    add("--quick", action="store_true", help="small graphs: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"{unknown[0]!r} is none of {', '.join(PARTS)}")
    bench = Bench(options)
    about = machine(options.threads)
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    tables: dict[str, list[Record]] = {}
    for part in parts:
        title, make = PARTS[part]
        tables[part] = make(bench)
        print(f"\n### {title}\n\n{markdown_table(tables[part])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "tables": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
