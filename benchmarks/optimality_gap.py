"""How far from the optimum DP-means can be: the gap of fits with the automatic penalty.

    python benchmarks/optimality_gap.py                # blobs, scikit-learn's tables, shared blobs
    python benchmarks/optimality_gap.py --rows 500     # smaller blobs

Sets that the fit calls one cluster are marked: there the gap says little. The folder named by
COUNTLESS_DATA adds its two-dimensional sets.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.preprocessing import scale

from countless import DPMeans, HDPMeans

SHAPES = ("s1", "d31", "a1", "a2", "r15", "unbalance")


def tables(n_rows: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the names and rows of the sets."""
    for seed, (k, spread, d) in enumerate(
        [(5, 1, 2), (10, 1, 2), (10, 1, 10), (20, 1, 5), (20, 2, 5), (30, 1, 3)]
    ):
        X, _ = make_blobs(n_rows, d, centers=k, cluster_std=spread, random_state=seed)
        yield f"{k} blobs, spread {spread}, {d} columns", X
    for load in (load_iris, load_wine, load_digits, load_breast_cancer):
        yield load.__name__[5:], load().data
        yield f"{load.__name__[5:]}, scaled", scale(load().data)
    if folder := os.environ.get("COUNTLESS_DATA"):
        for name in SHAPES:
            for path in sorted((Path(folder) / "shapes2d").glob(f"{name}.csv*")):
                yield name, np.loadtxt(path, delimiter=",", skiprows=1)[:, :2]


def several(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the data sets of clusters that data sets share."""
    random = np.random.RandomState(seed)
    centers = random.uniform(0, 1, (15, 2))
    chosen = [random.choice(15, 5, replace=False) for _ in range(50)]
    truth = np.concatenate([random.choice(one, 25) for one in chosen])
    X = centers[truth] + 0.1 * random.standard_normal((len(truth), 2))
    return X, np.repeat(np.arange(50), 25)


def report(name: str, model, X: np.ndarray, **groups) -> float:
    """Print the gap of a fit; return it."""
    started = time.process_time()
    gap = model.optimality_gap(X, **groups).gap
    seconds = time.process_time() - started
    line = f"{name:34} {len(X):6} rows {model.n_clusters_:3} clusters  gap {100 * gap:5.2f} %"
    print(f"{line}  {seconds:5.1f} CPU s", flush=True)
    return gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    n_rows = parser.parse_args().rows
    found = []
    for name, X in tables(n_rows):
        model = DPMeans(random_state=0).fit(X)
        gap = report(name, model, X)
        found += [gap] if model.n_clusters_ > 1 else []
    print(f"median of the sets with several clusters: {100 * np.median(found):.2f} %")
    for seed in range(2):
        X, groups = several(seed)
        model = HDPMeans(random_state=0).fit(X, groups=groups)
        report(f"HDP-means, 50 data sets, seed {seed}", model, X, groups=groups)


if __name__ == "__main__":
    main()
