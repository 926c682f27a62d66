"""Rows that belong to no cluster: planted background, found by DPMeans and by density methods.

    python benchmarks/background.py [--quick] [--json FILE]

Clusters are normal with deviation 1 around centers that are apart from each other; background is
uniform over the box that bounds them. Of each method: the share called background, the number of
clusters, and the AMI of the planted clusters' rows. ``possible`` is what the true densities call
background, row by row: uniform rows inside a cluster are nobody's to find, and the outermost rows
of a cluster, more likely background, cost some AMI.
HDBSCAN is scikit-learn's, and PLSCAN that of fast_hdbscan, if it is installed; with defaults.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_mutual_info_score

from countless import DPMeans

DIMENSIONS, CLUSTERS = (2, 8, 64), (3, 10, 40)
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)
ROWS, MANY_ROWS = 2000, 4000  # the latter for 40 clusters


class Planted(NamedTuple):
    """Rows, the clusters that they were drawn from (-1: background), and the centers."""

    rows: np.ndarray
    label: np.ndarray
    centers: np.ndarray

    def possible(self) -> np.ndarray:
        """Return the labels of highest true density."""
        n_columns = self.rows.shape[1]
        share = float(np.mean(self.label < 0))
        distance = cdist(self.rows, self.centers, "sqeuclidean")
        label = distance.argmin(axis=1)
        if share:
            log_volume = np.log(np.ptp(self.rows, axis=0)).sum()
            inside = np.log((1 - share) / len(self.centers)) - n_columns / 2 * np.log(2 * np.pi)
            label[np.log(share) - log_volume > inside - distance.min(axis=1) / 2] = -1
        return label


def plant(k: int, n_columns: int, share: float, seed: int) -> Planted:
    """Draw clusters around centers at least ``apart`` from each other, and background."""
    random = np.random.default_rng(seed)
    n_rows = MANY_ROWS if k == max(CLUSTERS) else ROWS
    n_far = round(share * n_rows)
    apart = 14.0 if n_columns == 2 else 8.0 + np.sqrt(n_columns)
    if n_columns == 2:
        side = 1.7 * apart * np.sqrt(k)
    else:
        side = 1.6 * apart * np.sqrt(max(1.0, k / 10) / (n_columns / 3))
    centers: list[np.ndarray] = []
    for _ in range(1_000_000):
        if len(centers) == k:
            break
        center = random.uniform(0, side, n_columns)
        if all(np.linalg.norm(center - other) >= apart for other in centers):
            centers.append(center)
    else:
        raise ValueError(f"{k} centers that are {apart:g} apart do not fit into a side of {side:g}")
    label = random.integers(k, size=n_rows - n_far)
    rows = np.array(centers)[label] + random.normal(size=(n_rows - n_far, n_columns))
    far = random.uniform(rows.min(axis=0), rows.max(axis=0), (n_far, n_columns))
    order = random.permutation(n_rows)
    label = np.append(label, np.full(n_far, -1))
    return Planted(np.vstack([rows, far])[order], label[order], np.array(centers))


def contestants() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return the methods as functions from rows to labels."""
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "DPMeans": lambda rows: DPMeans(background="auto").fit_predict(rows),
        "HDBSCAN": lambda rows: HDBSCAN(copy=True).fit_predict(rows),
    }
    try:
        from fast_hdbscan import PLSCAN
    except ImportError:
        return found
    return found | {"PLSCAN": lambda rows: PLSCAN().fit_predict(rows)}


def measure(planted: Planted, labels: np.ndarray) -> dict[str, float]:
    """Return the share of background, the number of clusters, and the AMI of the rest."""
    inside = planted.label >= 0
    return {
        "share": float(np.mean(labels < 0)),
        "k": len(np.unique(labels[labels >= 0])),
        "ami": float(adjusted_mutual_info_score(planted.label[inside], labels[inside])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one dimension, two shares")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    dimensions, shares = ((8,), (0.0, 0.1)) if options.quick else (DIMENSIONS, SHARES)
    methods = contestants()
    heads = [f"{name}: share | k | AMI" for name in methods]
    print("| columns | k | planted | possible: share | AMI |", " | ".join(heads), "|")
    print("|", " | ".join(["---"] * (5 + 3 * len(methods))), "|")
    figures = []
    for n_columns in dimensions:
        for k in CLUSTERS:
            for share in shares:
                planted = plant(k, n_columns, share, seed=0)
                possible = measure(planted, planted.possible())
                cells = [f"{n_columns}", f"{k}", f"{share:.2f}"]
                cells += [f"{possible['share']:.3f}", f"{possible['ami']:.3f}"]
                for name, method in methods.items():
                    one = measure(planted, method(planted.rows))
                    cells += [f"{one['share']:.3f}", f"{one['k']}", f"{one['ami']:.3f}"]
                    figures.append(
                        {"columns": n_columns, "clusters": k, "planted": share, "method": name}
                        | {"possible": possible, **one}
                    )
                print("|", " | ".join(cells), "|", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
