"""Embeddings and other tables of many columns: `AutoClustering` beside what people use for them.

    python benchmarks/embeddings.py FOLDER --peers PEERS/bin/python      # all sets, three seeds
    python benchmarks/embeddings.py FOLDER --sets digits usps --methods countless k-means

FOLDER holds the data sets as ``papers/data.py`` lists them. PEERS is an environment with evoc,
umap-learn and hdbscan (``pip install evoc umap-learn hdbscan``); without it they are left out.
Every method gets the same rows and no parameter, but k-means, which is told k. Prints for each set
and method the number of clusters, the adjusted mutual information with the classes (mean of the
seeds; noise is one more cluster), the share of rows that got no cluster, the adjusted Rand index
between seeds, and seconds, wall and CPU, after a first fit to 400 rows, for compilation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

SEEDS = (0, 1, 2)
SPHERE = {"directions": 0.0, "directions, 10 % background": 0.1, "directions, 30 %": 0.3}
TEXTS = ("20 newsgroups", "4 newsgroups")
SETS = (
    *("digits", "usps", "penguins", "wdbc", "breast cancer", "yeast cho", "yeast eisen", "w100"),
    *(f"{texts} {form}" for texts in TEXTS for form in ("TF-IDF", "LSA 100", "LSA 256")),
    *SPHERE,
)


def load(name: str, folder: Path):
    """Return the rows of a set, and their classes: -1 for none, or None if there are none."""
    if name in SPHERE:
        return directions(SPHERE[name])
    if name.startswith(TEXTS):
        texts, _, form = name.partition("newsgroups ")
        return newsgroups(folder, texts.strip(), form)
    if name == "usps":
        parts = [np.load(folder / "usps" / f"usps_{part}.npz") for part in ("train", "test")]
        X = np.vstack([part["X"] for part in parts]).astype(np.float32) / 1000
        return X, np.concatenate([part["y"] for part in parts])
    if name == "w100":
        words = np.load(folder / "newsgroups_w100" / "newsgroups_w100.npz")
        return words["X"].astype(np.float64), words["y"]
    import pandas

    path, scaled = {
        "digits": ("digits8x8/digits8x8.csv.gz", False),
        "penguins": ("penguins/penguins.csv", True),
        "wdbc": ("wdbc/wdbc.csv", True),
        "breast cancer": ("breast_cancer_wisconsin/breast_cancer_wisconsin.csv", False),
        "yeast cho": ("yeast_expression/yeast_cho.csv", False),
        "yeast eisen": ("yeast_expression/yeast_eisen.csv.gz", False),
    }[name]
    table = pandas.read_csv(folder / path)
    columns = table.drop(columns=["class", "year"], errors="ignore").select_dtypes("number")
    known = columns.notna().all(axis=1)
    X = columns[known].to_numpy(dtype=np.float64)
    y = pandas.factorize(table["class"][known])[0] if "class" in table else None
    return ((X - X.mean(axis=0)) / X.std(axis=0) if scaled else X), y


def newsgroups(folder: Path, texts: str, form: str):
    """Return TF-IDF weights of the words, or their leading components scaled to unit length."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import normalize

    counts = np.load(folder / f"newsgroups{texts}" / f"newsgroups{texts}_counts.npz")
    arrays = counts["data"].astype(np.float64), counts["indices"], counts["indptr"]
    X = TfidfTransformer(sublinear_tf=True).fit_transform(sp.csr_matrix(arrays, counts["shape"]))
    if form == "TF-IDF":
        return X, counts["y"]
    size = int(form.removeprefix("LSA "))
    X = TruncatedSVD(size, random_state=0).fit_transform(X)
    return normalize(X).astype(np.float32), counts["y"]


def directions(background: float, n_rows=8000, n_clusters=40, n_columns=64):
    """Draw rows around 40 directions, and a share of rows in any direction."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(n_clusters, n_columns))
    centers /= np.linalg.norm(centers, axis=1)[:, None]
    n_away = int(n_rows * background)
    y = random.integers(n_clusters, size=n_rows - n_away)
    near = centers[y] + 0.6 / np.sqrt(n_columns) * random.normal(size=(len(y), n_columns))
    X = np.vstack([near, random.normal(size=(n_away, n_columns))])
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X.astype(np.float32), np.append(y, np.full(n_away, -1))


def countless(X, seed, n_clusters):
    from countless import AutoClustering

    return AutoClustering(random_state=seed).fit(X).labels_


def evoc(X, seed, n_clusters):
    from evoc import EVoC

    dense = X.toarray() if sp.issparse(X) else X
    return EVoC(random_state=seed).fit_predict(dense.astype(np.float32))


def umap_hdbscan(X, seed, n_clusters):
    from hdbscan import HDBSCAN
    from umap import UMAP

    low = UMAP(n_components=5, metric="cosine", min_dist=0.0, random_state=seed).fit_transform(X)
    return HDBSCAN(min_cluster_size=15).fit_predict(low)


def kmeans(X, seed, n_clusters):
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(X)


METHODS = {"countless": countless, "EVoC": evoc, "UMAP + HDBSCAN": umap_hdbscan, "k-means": kmeans}
PEERS = ("EVoC", "UMAP + HDBSCAN")


def run(method: str, name: str, folder: Path) -> dict:
    """Return the scores of one method on one set."""
    warnings.simplefilter("ignore")
    X, y = load(name, folder)
    if method == "k-means" and y is None:
        raise ValueError("k is unknown")
    n_clusters = 2 if y is None else len(np.unique(y[y >= 0]))
    METHODS[method](X[:400], 0, n_clusters)
    wall, cpu = time.perf_counter(), time.process_time()
    found = [np.asarray(METHODS[method](X, seed, n_clusters)) for seed in SEEDS]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    known = slice(None) if y is None else y >= 0
    scores = [np.nan if y is None else adjusted_mutual_info_score(y[known], labels[known])
              for labels in found]  # fmt: skip
    return {
        "k": [len(np.unique(labels[labels >= 0])) for labels in found],
        "ami": float(np.mean(scores)),
        "lost": float(np.mean([np.mean(labels < 0) for labels in found])),
        "same": min(adjusted_rand_score(one, other) for one, other in combinations(found, 2)),
        "wall": wall / len(SEEDS),
        "cpu": cpu / len(SEEDS),
    }


def run_elsewhere(python: str, method: str, name: str, folder: Path) -> dict:
    """Return the same, from another environment."""
    with tempfile.TemporaryDirectory() as work:
        out = Path(work) / "scores.json"
        command = [python, __file__, str(folder), "--sets", name, "--methods", method]
        subprocess.run([*command, "--json", str(out)], check=True, capture_output=True)
        return json.loads(out.read_text(encoding="utf-8"))[f"{name}/{method}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--peers", help="the Python of an environment with EVoC, UMAP and HDBSCAN")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    scores = {}
    print("| set | method | k | AMI | lost | ARI of seeds | s | CPU s |\n" + "| --- " * 8 + "|")
    for name in args.sets:
        for method in args.methods:
            try:
                if method in PEERS and args.peers:
                    found = run_elsewhere(args.peers, method, name, args.folder)
                else:
                    found = run(method, name, args.folder)
            except (ImportError, ValueError, subprocess.CalledProcessError) as error:
                why = (getattr(error, "stderr", None) or str(error).encode()).decode()
                print(f"| {name} | {method} | {why.strip().splitlines()[-1]} |", flush=True)
                continue
            scores[f"{name}/{method}"] = found
            k = "/".join(map(str, dict.fromkeys(found["k"])))
            print(
                f"| {name} | {method} | {k} | {found['ami']:.3f} | {found['lost']:.2f} "
                f"| {found['same']:.2f} | {found['wall']:.1f} | {found['cpu']:.1f} |",
                flush=True,
            )
    for method in args.methods:
        of = [one["ami"] for key, one in scores.items() if key.endswith(f"/{method}")]
        if of:
            print(f"{method}: mean AMI {np.nanmean(of):.3f} on {np.isfinite(of).sum()} sets")
    if args.json:
        args.json.write_text(json.dumps(scores), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
