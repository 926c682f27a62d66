"""Affinity propagation and FasterPAM on the same rows or edges, each by its name."""

import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from worker import Outcome, serve

# Reads an edge list (row, column, similarity; no header), or rows where there is one argument less.
R_PROGRAM = """
suppressPackageStartupMessages({library(apcluster); library(Matrix)})
given <- commandArgs(TRUE)
table <- as.matrix(read.csv(given[1], header = FALSE))
settings <- list(lam = as.numeric(given[3]), maxits = as.integer(given[4]),
                 convits = as.integer(given[5]), seed = 0)
if (length(given) > 5) {
  n <- max(table[, 1:2]) + 1
  s <- sparseMatrix(i = table[, 1] + 1, j = table[, 2] + 1, x = table[, 3], dims = c(n, n),
                    repr = "T")
  settings$p <- as.numeric(given[6])
} else {
  s <- negDistMat(table, r = 2)
  settings$p <- median(s)
}
used <- system.time(found <- do.call(apcluster, c(list(s), settings)))
writeLines(sprintf('{"seconds": %f, "cpu": %f, "iterations": %d, "net": %f}', used[["elapsed"]],
                   used[["user.self"]] + used[["sys.self"]], found@it, found@netsim),
           paste0(given[2], ".json"))
write.table(found@idx, given[2], row.names = FALSE, col.names = FALSE)
"""


def similarities(edges):
    """Return the sparse matrix of an edge list."""
    from scipy.sparse import coo_array

    row, column = edges[:, :2].astype(int).T
    n = int(edges[:, :2].max()) + 1
    return coo_array((edges[:, 2], (row, column)), shape=(n, n)).tocsr()


def fit_countless(X, threads, sparse=False, dtype="float64", prior=None, **parameters):
    from countless import AffinityPropagation

    affinity = {"affinity": "precomputed"} if sparse else {}
    model = AffinityPropagation(prior, n_jobs=threads, random_state=0, **affinity, **parameters)
    model.fit(similarities(X) if sparse else X.astype(dtype))
    net = model.log_joint_ if prior is None else None
    return model.labels_, model.n_iter_, {"converged": bool(model.converged_), "net": net}


def fit_sklearn(X, threads, **parameters):
    from sklearn.cluster import AffinityPropagation

    model = AffinityPropagation(random_state=0, **parameters).fit(X)
    return model.labels_, model.n_iter_, {"converged": model.n_iter_ < model.max_iter}


def fit_kmedoids(X, threads, n_clusters):
    from kmedoids import fasterpam

    squares = np.square(X).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    found = fasterpam(np.maximum(distances, 0.0), n_clusters, random_state=0, n_cpu=threads)
    return found.labels, found.n_iter, {}


def fit_r(X, threads, sparse=False, damping=0.9, max_iter=1000, convergence_iter=100, **rest):
    with tempfile.TemporaryDirectory() as folder:
        table, labels = Path(folder) / "table.csv", Path(folder) / "labels"
        np.savetxt(table, X, delimiter=",", fmt="%.17g")
        settings = [damping, max_iter, convergence_iter]
        if sparse:
            settings.append(rest["preference"])
        command = ["Rscript", "-e", R_PROGRAM, str(table), str(labels), *map(str, settings)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        used = json.loads(labels.with_suffix(".json").read_text())
        found = np.loadtxt(labels, dtype=int)
    # Starting R and reading the table is not what is timed.
    details = {"cpu": used["cpu"], "inside": used["seconds"], "net": used["net"]}
    return found, used["iterations"], details | {"converged": used["iterations"] < max_iter}


FITS = {
    "countless": fit_countless,
    "scikit-learn": fit_sklearn,
    "kmedoids": fit_kmedoids,
    "apcluster": fit_r,
}


def fit(X, threads, method, **parameters):
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is reported
        labels, n_iter, details = FITS[method](X, threads, **parameters)
    cpu = {"cpu": time.process_time() - start}
    return Outcome(labels, n_iter, **cpu | details)


if __name__ == "__main__":
    serve(fit, warm_up_rows=400)  # time grows with their square
