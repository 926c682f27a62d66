"""Spectral DP-means beside scikit-learn's SpectralClustering, which is told k.

Prints Markdown tables: 5,000 rows and 15 neighbours, the growth of time with rows, and the number
of clusters found on shapes, tables and structureless data. ``README.md`` says how times are taken.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
    make_swiss_roll,
)
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from countless import SpectralDPMeans
from harness import Contestant, ContestantFailed, Limits, machine, markdown_table, measure

ARPACK = Contestant("scikit-learn, arpack, told k", "sklearn_spectral.py")
LOBPCG = Contestant("scikit-learn, lobpcg, told k", "sklearn_spectral.py")
COUNTLESS = Contestant("countless", "countless_spectral.py")
NEIGHBORS = 15
SEEDS = range(100, 110)  # draws that no constant of the method was chosen on

Record = dict[str, Any]
Data = tuple[np.ndarray, np.ndarray]  # rows, and the cluster that each was drawn from


def spirals(n: int, noise: float = 0.1, seed: int = 0) -> Data:
    """Two arms that wind around each other."""
    random = np.random.RandomState(seed)
    turn = np.sqrt(random.uniform(0.05, 1, n)) * 3 * np.pi
    arm = np.c_[turn * np.cos(turn), turn * np.sin(turn)] + noise * random.standard_normal((n, 2))
    truth = random.randint(2, size=n)
    return arm * np.where(truth, -1, 1)[:, None], truth


def one_arm(data: Data) -> np.ndarray:
    X, truth = data
    return X[truth == 0]


def blobs(n: int, d: int, deviation: float, k: int = 10) -> Data:
    return make_blobs(n, n_features=d, centers=k, cluster_std=deviation, random_state=1)


SETS: dict[str, Callable[[int], Data]] = {
    "10 blobs, 2-d": lambda n: blobs(n, 2, 0.5),
    "10 blobs, 10-d": lambda n: blobs(n, 10, 3.0),
    "10 blobs, 50-d": lambda n: blobs(n, 50, 4.0),
    "two spirals": lambda n: spirals(n),
    "moons": lambda n: make_moons(n, noise=0.05, random_state=0),
}
GROWING = ("10 blobs, 2-d", "10 blobs, 10-d")


def compare(name: str, n: int, peers, limits: Limits, repeat: int) -> list[Record]:
    """Run everybody on one set; times are also divided by the first peer's."""
    X, truth = SETS[name](n)
    k = int(truth.max()) + 1
    options: dict[Contestant, dict[str, Any]] = {
        ARPACK: {"n_clusters": k, "eigen_solver": "arpack"},
        LOBPCG: {"n_clusters": k, "eigen_solver": "lobpcg"},
        COUNTLESS: {},
    }
    records: list[Record] = []
    base = None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        for peer in peers:
            line: Record = {"set": name, "rows": n, "true k": k, "method": peer.title}
            print(f"{name}, n={n}: {peer.title}", file=sys.stderr, flush=True)
            try:
                run = measure(
                    peer, path, options[peer] | {"n_neighbors": NEIGHBORS}, repeat, limits
                )
            except ContestantFailed as failure:
                records.append(line | {"seconds": f"not run: {failure}"})
                continue
            base = base or run.seconds
            line |= {
                "seconds": run.seconds,
                "/ first": run.seconds / base,
                "k": len(np.unique(run.labels)),
                "adjusted Rand": float(adjusted_rand_score(truth, run.labels)),
                "extra MB": None if run.extra_bytes is None else run.extra_bytes / 1e6,
                "chance missed": run.details.get("chance_missed"),
            }
            records.append(line)
    return records


def grow(name: str, sizes: Iterable[int], limits: Limits) -> list[Record]:
    """Run everybody on more and more rows of a set, until one does not finish."""
    records: list[Record] = []
    peers = [ARPACK, COUNTLESS]
    for n in sizes:
        lines = compare(name, n, peers, limits, 1)
        peers = [peer for peer, line in zip(peers, lines, strict=True) if "k" in line]
        records += lines
    return records


def numbers() -> list[Record]:
    """Say how many clusters are found where the answer is known, with default parameters."""
    scale = StandardScaler().fit_transform
    random = np.random.RandomState
    cases: dict[str, tuple[int, Callable[[int], np.ndarray]]] = {
        "two spirals, 1,200 rows": (2, lambda seed: spirals(1200, seed=seed)[0]),
        "moons, noise .05": (2, lambda seed: make_moons(1000, noise=0.05, random_state=seed)[0]),
        "moons, noise .10": (2, lambda seed: make_moons(1000, noise=0.1, random_state=seed)[0]),
        "circles, noise .05": (
            2,
            lambda seed: make_circles(1000, noise=0.05, factor=0.5, random_state=seed)[0],
        ),
        "5 blobs, 2-d": (
            5,
            lambda seed: make_blobs(500, centers=5, cluster_std=0.5, random_state=seed)[0],
        ),
        "20 blobs, 5-d": (
            20,
            lambda seed: make_blobs(1000, 5, centers=20, cluster_std=1.2, random_state=seed)[0],
        ),
        "one blob, 2-d": (1, lambda seed: random(seed).standard_normal((1000, 2))),
        "one blob, 10-d": (1, lambda seed: random(seed).standard_normal((1000, 10))),
        "one ring": (1, lambda seed: make_circles((1000, 0), noise=0.05, random_state=seed)[0]),
        "one spiral": (1, lambda seed: one_arm(spirals(2000, 0.3, seed))),
        "one long blob": (1, lambda seed: random(seed).standard_normal((1000, 3)) * [6, 2, 1]),
        "heavy tails, 2-d": (1, lambda seed: random(seed).standard_t(3, (1000, 2))),
        "uniform noise, 2-d": (1, lambda seed: random(seed).uniform(size=(1000, 2))),
        "uniform noise, 30-d": (1, lambda seed: random(seed).uniform(size=(1000, 30))),
        "iris, scaled": (3, lambda seed: scale(load_iris().data)),
        "wine, scaled": (3, lambda seed: scale(load_wine().data)),
        "breast cancer, scaled": (2, lambda seed: scale(load_breast_cancer().data)),
        "digits": (10, lambda seed: load_digits().data),
    }
    records = []
    for name, (k, draw) in cases.items():
        found = [SpectralDPMeans(random_state=0).fit(draw(seed)).n_clusters_ for seed in SEEDS]
        counts = {value: found.count(value) for value in sorted(set(found))}
        listed = ", ".join(f"{value} ({count}x)" for value, count in counts.items())
        records.append({"data": name, "true k": k, "k found in 10 draws": listed})
    return records


def shapes_without_clusters(n: int, seed: int) -> dict[str, np.ndarray]:
    """Clouds, curves and surfaces that are one piece each."""
    random = np.random.RandomState(seed)
    normal, uniform = random.standard_normal, random.uniform
    shapes = {}
    for d in (1, 2, 3, 5, 10, 30):
        shapes[f"blob, {d}-d"], shapes[f"box, {d}-d"] = normal((n, d)), uniform(size=(n, d))
    for name, sides in {"stripe": [4, 1], "long stripe": [10, 1]}.items():
        shapes[name] = uniform(size=(n, 2)) * sides
    for name, axes in {"long blob": [5, 1], "long blob, 3-d": [5, 2, 1]}.items():
        shapes[name] = normal((n, len(axes))) * axes
    turn = uniform(0, 2 * np.pi, n)
    circle = np.c_[np.cos(turn), np.sin(turn)]
    shapes["ring"], shapes["thin ring"] = circle + 0.05 * normal((n, 2)), circle
    shapes["disk"] = circle * np.sqrt(uniform(size=n))[:, None]
    turn = 1 + 3 * np.pi * np.sqrt(uniform(size=n))
    spiral = np.c_[turn * np.cos(turn), turn * np.sin(turn)]
    shapes["spiral"] = spiral + 0.2 * normal((n, 2))
    sphere = normal((n, 3))
    shapes["sphere"] = sphere / np.linalg.norm(sphere, axis=1)[:, None]
    shapes["swiss roll"] = make_swiss_roll(n, random_state=seed)[0]
    shapes["exponential"] = random.exponential(size=(n, 2))
    shapes["log-normal"] = np.exp(normal((n, 2)))
    shapes["heavy tails"] = random.standard_t(3, size=(n, 2))
    return shapes


def structureless(quick: bool) -> list[Record]:
    """Count the shapes without clusters that come back as more than one."""
    records = []
    for n in (100, 300) if quick else (100, 300, 1000, 3000):
        wrong, total = [], 0
        for seed in SEEDS[:3]:
            for name, X in shapes_without_clusters(n, seed).items():
                total += 1
                k = SpectralDPMeans(random_state=0).fit(X).n_clusters_
                if k > 1:
                    wrong.append(f"{name}: {k}")
        line = {"rows": n, "shapes": total, "not one cluster": len(wrong)}
        records.append(line | {"which": ", ".join(wrong) or "none"})
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--parts", default="peers,growth,numbers,structureless", help="which tables"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows: a smoke run")
    parser.add_argument("--repeat", type=int, default=5, help="fits, of which the best counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for one contestant")
    parser.add_argument("--json", metavar="FILE", help="write the figures here, too")
    arguments = parser.parse_args()
    limits = Limits(arguments.threads, arguments.timeout)
    figures: dict[str, Any] = {"machine": machine(arguments.threads)}
    print(", ".join(f"{key}: {value}" for key, value in figures["machine"].items()), "\n")
    parts = arguments.parts.split(",")
    if "peers" in parts:
        n = 1000 if arguments.quick else 5000
        figures["peers"] = [
            record
            for name in SETS
            for record in compare(name, n, (ARPACK, LOBPCG, COUNTLESS), limits, arguments.repeat)
        ]
    if "growth" in parts:
        sizes = (1000, 2000) if arguments.quick else (5000, 20_000, 50_000, 100_000)
        figures["growth"] = [record for name in GROWING for record in grow(name, sizes, limits)]
    if "numbers" in parts:
        figures["numbers"] = numbers()
    if "structureless" in parts:
        figures["structureless"] = structureless(arguments.quick)
    for part in parts:
        print(f"## {part}\n\n{markdown_table(figures[part])}\n")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
