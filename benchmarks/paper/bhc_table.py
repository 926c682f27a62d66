"""Table 1 of Heller and Ghahramani (2005), which is Murphy's table 25.1: purity of trees.

``python benchmarks/paper/bhc_table.py`` prints the dendrogram purity of Bayesian hierarchical
clustering beside single, complete and average linkage, and what the paper has. Sizes are the
paper's; its own draws of documents, mails and digits are not published, so draws are repeated here.
Real features are scaled to unit variance for everybody.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import linkage

from countless import BayesianHierarchicalClustering
from countless._tree.dendrogram import dendrogram_purity

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness import markdown_table

DATA = Path(os.environ.get("COUNTLESS_DATA", Path(__file__).parents[3] / "shared" / "data"))
LINKAGES = ("single", "complete", "average")
PAPER = {
    "synthetic": (0.599, 0.634, 0.668, 0.828),
    "newsgroups": (0.275, 0.315, 0.282, 0.465),
    "spambase": (0.598, 0.699, 0.668, 0.728),
    "digits": (0.224, 0.299, 0.342, 0.393),
    "glass": (0.478, 0.476, 0.491, 0.467),
}


def read(*parts: str) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(DATA.joinpath(*parts))
    return table.drop(columns=["class", "name"], errors="ignore").to_numpy(float), table["class"]


def synthetic(random) -> tuple[np.ndarray, np.ndarray]:
    """Draw 200 rows of four normal clusters of any shape in two dimensions, which overlap."""
    classes = np.repeat(np.arange(4), 50)
    shapes = random.normal(size=(4, 2, 2))
    rows = np.einsum("nij,nj->ni", shapes[classes], random.normal(size=(200, 2)))
    return rows + 2.0 * random.normal(size=(4, 2))[classes], classes


def some_of_each(X, y, n_each: int, random) -> tuple[np.ndarray, np.ndarray]:
    """Draw so many rows of each class."""
    kinds = np.unique(y)
    rows = [random.choice(np.flatnonzero(y == kind), n_each, replace=False) for kind in kinds]
    rows = np.concatenate(rows)
    return X[rows], np.asarray(y)[rows]


def draw(name: str, random) -> tuple[np.ndarray, np.ndarray, str]:
    """Return rows, classes and the model of one repetition."""
    if name == "synthetic":
        return *synthetic(random), "gaussian"
    if name == "newsgroups":
        return *read("newsgroups4", "newsgroups4_binary50.csv"), "bernoulli"
    if name == "spambase":
        X, y = read("spambase", "spambase.csv.gz")
        return *some_of_each((np.median(X, axis=0) < X).astype(float), y, 50, random), "bernoulli"
    if name == "digits":
        # CEDAR's digits from Buffalo are those of USPS; four pixels become one.
        with np.load(DATA / "usps" / "usps_train.npz") as usps:
            pixels, y = usps["X"].reshape(-1, 8, 2, 8, 2).mean(axis=(2, 4)), usps["y"]
        X = (pixels.reshape(-1, 64) > 0).astype(float)
        return *some_of_each(X, y, 20, random), "bernoulli"
    X, y = read("glass", "glass.csv")
    return X, np.asarray(y), "gaussian"


def purities(name: str, seed: int) -> dict[str, float]:
    X, y, model = draw(name, np.random.default_rng(seed))
    if model == "gaussian":
        X = X / X.std(axis=0)
    found = {way: dendrogram_purity(linkage(X, way), y) for way in LINKAGES}
    for title, refine in (("BHC", False), ("BHC, refined", True)):
        tree = BayesianHierarchicalClustering(model, refine=refine).fit(X)
        found[title] = dendrogram_purity(tree.children_, y)
    return found | {"clusters": tree.n_clusters_}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=10, help="draws of each set")
    parser.add_argument("--quick", action="store_true", help="two draws")
    parser.add_argument("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    records: list[dict[str, Any]] = []
    for name, published in PAPER.items():
        drawn = name not in ("newsgroups", "glass")  # the others are used whole
        n_draws = (2 if options.quick else options.repeat) if drawn else 1
        runs = pd.DataFrame([purities(name, seed) for seed in range(n_draws)])
        error = runs.std() / np.sqrt(n_draws) if n_draws > 1 else None
        record: dict[str, Any] = {"set": name, "draws": n_draws}
        for column, mean in runs.mean().items():
            shown = f"{mean:.1f}" if column == "clusters" else f"{mean:.3f}"
            if error is not None and column != "clusters":
                shown += f" ± {error[column]:.3f}"
            record[str(column)] = shown
        for way, value in zip((*LINKAGES, "BHC"), published, strict=True):
            record[f"paper: {way}"] = value
        records.append(record)
    print(markdown_table(records))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
