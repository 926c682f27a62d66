"""The tables, parameters and commands whose answers `answers.py` records.

A new estimator needs an entry in `ESTIMATORS`, and a new public function one in `FUNCTIONS`.
"""

from collections.abc import Callable

import dask.array as da
import numpy as np
import pandas as pd
from PIL import Image
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_array, triu
from scipy.spatial.distance import cdist
from sklearn.datasets import make_circles
from sklearn.neighbors import kneighbors_graph

import countless
from countless import models, priors
from countless.datasets import sample_exemplar_model

SEEDS = 0, 1


def blobs(random, n=200, n_features=2, k=4, spread=6.0):
    return random.normal(size=(n, n_features)) + (
        spread * random.normal(size=(k, n_features))[random.integers(k, size=n)]
    )


def with_gaps(random, X):
    X[random.random(X.shape) < 0.05] = np.nan
    return X


def mixed(random):
    a, b = blobs(random, 90, 4), random.integers(3, size=90)
    color = np.array(["red", "green", "blue"])[b]
    visits = random.poisson(1 + 4 * b)
    frame = pd.DataFrame({"x": a[:, 0], "y": a[:, 1], "color": color, "visits": visits})
    frame.loc[::17, "x"], frame.loc[::23, "color"] = np.nan, None
    return frame


def friends(random, n=120, k=4):
    group = random.integers(k, size=n)
    draws = random.random((n, n)) < np.where(group[:, None] == group, 0.3, 0.02)
    return csr_array(np.triu(draws, 1) + np.triu(draws, 1).T, dtype=float)


def circles(random):
    return make_circles(200, factor=0.4, noise=0.05, random_state=int(random.integers(999)))[0]


def gram(random):
    X = blobs(random, 120)
    return np.exp(-cdist(X, X, "sqeuclidean") / 8)


# A table is drawn from a generator; a pair is a table and further arguments of `fit`.
TABLES: dict[str, Callable] = {
    "blobs": blobs,
    "wide": lambda r: blobs(r, 300, 12, 6, 1.5),
    "long": lambda r: blobs(r, 400, 3, 9),
    "overlapping": lambda r: blobs(r, spread=1.5),
    "noise": lambda r: r.normal(size=(200, 4)),
    "uniform": lambda r: r.random((150, 2)),
    "line": lambda r: blobs(r, n_features=1, k=3),
    "circles": circles,
    "integers": lambda r: r.integers(5, size=(200, 3)),
    "repeated": lambda r: np.repeat(blobs(r, 40), 4, axis=0),
    "gaps": lambda r: with_gaps(r, blobs(r, 150, 3)),
    "float32": lambda r: blobs(r, n_features=4).astype(np.float32),
    "sparse": lambda r: csr_array(r.poisson(0.3, (150, 8)) * r.random(8)),
    "weights": lambda r: (blobs(r), {"sample_weight": r.random(200) * (r.random(200) < 0.9)}),
    "directions": lambda r: (lambda X: X / np.linalg.norm(X, axis=1)[:, None])(blobs(r, 200, 3)),
    "shares": lambda r: r.dirichlet([1, 2, 3], 50).repeat(3, axis=0) * r.gamma(9, size=(150, 1)),
    "groups": lambda r: (blobs(r, 180), {"groups": r.integers(5, size=180)}),
    "counts": lambda r: r.poisson(r.gamma(1, 6, (3, 5))[r.integers(3, size=150)]),
    "binary": lambda r: 1 * (r.random((150, 6)) < r.random((4, 6))[r.integers(4, size=150)]),
    "mixed": mixed,
    "friends": friends,
    "neighbors": lambda r: kneighbors_graph(blobs(r), 8),
    "gram": gram,
    "exemplars": lambda r: sample_exemplar_model(120, random_state=int(r.integers(999))).X,
}

SHORT = {"n_chains": 2, "n_sweeps": 12}
SMALL = "blobs noise integers float32"
# For each estimator: parameters, and the tables that it is fitted to.
ESTIMATORS: dict[str, list[tuple[dict, str]]] = {
    "AffinityPropagation": [
        ({}, "blobs integers"),
        ({"refine": True, "prior": priors.DirichletProcess(2.0)}, "exemplars line"),
        ({"solver": "icm", "prior": priors.PitmanYor(1.0, 0.3)}, "exemplars float32"),
        ({"affinity": "precomputed", "preference": 0.1}, "gram"),
    ],
    "AutoClustering": [({}, "blobs circles"), ({"n_jobs": 2}, "mixed")],
    "BayesianHierarchicalClustering": [
        ({}, "line"),
        ({"learn": False}, SMALL),
        ({"model": "bernoulli", "refine": False}, "binary"),
    ],
    "CrossCat": [(SHORT, "mixed gaps"), (SHORT | {"n_jobs": 2}, "integers")],
    "DPBiclustering": [(SHORT, "blobs gaps"), (SHORT | {"model": "bernoulli"}, "binary")],
    "DPMeans": [
        ({}, SMALL + " wide overlapping uniform line repeated sparse weights"),
        ({"penalty": 9.0, "refine": False}, SMALL + " wide repeated sparse weights"),
        ({"penalty": 9.0, "order": "random", "n_init": 3, "n_jobs": 2}, "overlapping long"),
        ({"n_clusters": 3}, SMALL),
        ({"divergence": "cosine"}, "directions"),
        ({"divergence": "kl"}, "shares"),
        ({"divergence": "itakura-saito", "penalty": 3.0}, "shares"),
        ({"divergence": "logistic"}, "binary"),
    ],
    "DPMixture": [
        (SHORT, "blobs repeated"),
        (SHORT | {"n_jobs": 2, "prior": priors.PitmanYor(1.0, 0.2)}, "float32"),
        (SHORT | {"model": "diagonal", "sampler": "uncollapsed"}, "gaps"),
        (SHORT | {"model": models.Poisson(), "prior": priors.FiniteDirichlet(1.0, 5)}, "counts"),
        (SHORT | {"model": "multinomial", "loss": "binder"}, "counts"),
        (SHORT | {"model": "bernoulli", "split_merge": False, "thin": 2}, "binary"),
        (SHORT | {"model": "columns"}, "mixed"),
        ({"inference": "map"}, SMALL + " overlapping"),
        ({"inference": "map", "model": "fixed"}, "line"),
    ],
    "DivisiveClustering": [
        ({}, SMALL + " repeated"),
        ({"method": "mst"}, "circles noise"),
        ({"method": "bisecting"}, SMALL),
        ({"n_clusters": 3, "metric": "cityblock"}, "wide"),
    ],
    "GraphDPMeans": [
        ({}, "friends neighbors"),
        ({"penalty": -0.3, "cut": "ratio"}, "friends"),
        ({"penalty": -0.2, "refine": False}, "friends neighbors"),
    ],
    "HDPMeans": [
        ({}, "groups"),
        ({"local_penalty": 20.0, "global_penalty": 60.0}, "groups integers repeated"),
        ({"local_penalty": 20.0, "global_penalty": 60.0, "refine": False}, "groups float32"),
    ],
    "HDPMixture": [(SHORT, "groups"), (SHORT | {"model": "diagonal", "n_jobs": 2}, "groups line")],
    "KernelDPMeans": [
        ({}, "blobs circles integers"),
        ({"penalty": 5.0, "refine": False}, "blobs float32 weights"),
        ({"penalty": 5.0, "kernel": "precomputed"}, "gram"),
        ({"penalty": 50.0, "kernel": "linear", "n_init": 2}, "sparse repeated"),
    ],
    "KernelHDPMeans": [
        ({}, "groups"),
        ({"local_penalty": 3.0, "global_penalty": 6.0, "refine": False}, "groups weights"),
    ],
    "LinkageClustering": [
        ({}, SMALL + " repeated"),
        ({"method": "ward"}, "wide uniform"),
        ({"method": "single", "n_clusters": 2, "min_cluster_size": 5}, "circles"),
    ],
    "SpectralDPMeans": [
        ({}, "blobs circles noise repeated"),
        ({"kernel": "rbf", "assign": "dp-means"}, "blobs"),
        ({"kernel": "precomputed"}, "gram"),
    ],
}


def load_saved(X, groups):
    countless.save_model("model.zip", countless.DPMeans(60.0).fit(X), force=True)
    return countless.load_model("model.zip").estimator.predict(X)


def merged(X, groups):
    edits = {"format": "countless edits", "version": 1}
    edits["edits"] = [{"action": "merge", "clusters": [0, 2]}]
    return countless.apply_edits(countless.DPMeans(60.0).fit(X), edits).labels_


def page(X, groups):
    """A page shows a clustering and computes none: it need only be written."""
    path = countless.report(countless.DPMeans(60.0).fit(X), X, "page.html", force=True)
    return [path.is_file()]


# For each public function, and class that is made by one: its answer on blobs in groups.
def spread(X):
    return {"variance": 1.0, "prior_variance": float(X.var()), "n_features": X.shape[1]}


FUNCTIONS: dict[str, Callable] = {
    "EditedClustering": merged,
    "aic_penalty": lambda X, g: countless.aic_penalty(variance=1.0, n_features=X.shape[1]),
    "alpha_from_penalty": lambda X, g: countless.alpha_from_penalty(60.0, **spread(X)),
    "apply_edits": merged,
    "bootstrap": lambda X, g: (
        countless.bootstrap(countless.DPMeans(60.0), X, n_draws=5, random_state=0).draws
    ),
    "cut_gap": lambda X, g: countless.cut_gap(linkage(X, "average"), X).height,
    "describe": lambda X, g: np.array(
        countless.describe(countless.DPMeans(60.0).fit(X), X)["size"]
    ),
    "farthest_first_penalty": lambda X, g: countless.farthest_first_penalty(X, 5),
    "hdp_penalties": lambda X, g: np.array(countless.hdp_penalties(X, g, 3, 5)),
    "load_model": load_saved,
    "near_duplicates": lambda X, g: countless.near_duplicates(np.vstack([X, X[:3] + 1e-9])).keep,
    "penalty_from_alpha": lambda X, g: countless.penalty_from_alpha(0.5, **spread(X)),
    "penalty_path": lambda X, g: countless.penalty_path(X).breakpoints,
    "report": page,
    "save_model": load_saved,
}


def parquet(X):
    pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).to_parquet("rows.parquet")
    return "rows.parquet"


def npy(X):
    np.save("rows.npy", X)
    return "rows.npy"


# Each takes an array to the same rows elsewhere; `DPMeans` is fitted in all of them.
BACKENDS: dict[str, Callable] = {
    "memory": lambda X: X,
    "memmap": lambda X: np.load(npy(X), mmap_mode="r"),
    "npy": npy,
    "parquet": parquet,
    "dask": lambda X: da.from_array(X, chunks=(150, X.shape[1])),
}
BACKEND_FITS: list[tuple[dict, str]] = [
    ({}, "long"),
    ({"penalty": 12.0, "refine": False}, "long integers float32"),
    ({"penalty": 12.0, "refine": False, "n_jobs": 2}, "integers float32"),
]

# Each starts in a folder of files, and may be several commands; OUT is a folder of its own.
COMMANDS = [
    "fit numbers.csv",
    "fit numbers.csv --method dp-means --seed 3 && predict OUT/model.zip numbers.csv",
    "fit numbers.npy --method dp-means --penalty 20 --set refine=false --jobs 2",
    "fit numbers.parquet --method dp-means --out-of-core"
    " && predict OUT/model.zip numbers.parquet --out-of-core",
    "fit numbers.csv --method dp-mixture --sweeps 12 --chains 2"
    " && predict OUT/model.zip numbers.csv",
    "fit numbers.csv --method bhc",
    "fit numbers.csv --method affinity",
    "fit numbers.csv --method diana --no-scale",
    "fit numbers.csv --method spectral-dp-means",
    "fit numbers.csv --method kernel-dp-means",
    "fit numbers.csv --method k-means --clusters 3",
    "fit numbers.csv --method bicluster --sweeps 12 --chains 2",
    "fit grouped.csv --group site --weight n --method kernel-hdp-means",
    "fit grouped.csv --group site --exclude n",
    "fit grouped.csv --weight n --exclude site --method dp-means",
    "fit mixed.csv --method linkage --metric mixed",
    "fit grouped.csv --method dp-mixture --model columns --inference map",
    "fit mixed.csv --method crosscat --sweeps 10 --chains 2",
    "fit edges.csv --method graph-dp-means",
    "path numbers.csv",
    "path numbers.npy --no-scale --out-of-core",
    "relate mixed.csv --sweeps 10 --chains 2 --count visits",
    "impute mixed.csv --sweeps 10 --chains 2 --out OUT.csv",
    "segment picture.png --superpixels 60 --labels npy",
    "segment picture.png --superpixels 60 --labels npy --method graph",
]


def table(name: str, seed: int) -> tuple:
    """Return a table and further arguments of `fit`; equal for equal names and seeds."""
    drawn = TABLES[name](np.random.default_rng([seed, *name.encode()]))
    return drawn if isinstance(drawn, tuple) else (drawn, {})


def write_files() -> None:
    """Write what the commands read to the working directory."""
    X, _ = table("overlapping", 0)
    np.save("numbers.npy", X)
    frame = pd.DataFrame(X, columns=["x", "y"])
    frame.to_csv("numbers.csv", index=False)
    frame.to_parquet("numbers.parquet")
    random = np.random.default_rng(0)
    frame["site"], frame["n"] = random.integers(4, size=len(X)), random.integers(1, 4, size=len(X))
    frame.to_csv("grouped.csv", index=False)
    table("mixed", 0)[0].to_csv("mixed.csv", index=False)
    source, target = triu(table("friends", 0)[0]).nonzero()
    pd.DataFrame({"source": source, "target": target}).to_csv("edges.csv", index=False)
    pixels = random.integers(20, size=(40, 60, 3), dtype=np.uint8)
    pixels[:, 30:] += 200
    pixels[:20, :20, 0] += 150
    Image.fromarray(pixels).save("picture.png")
