"""Dissimilarities and divisive trees by this library."""

import time

import numpy as np
from worker import Outcome, serve

from countless import DivisiveClustering
from countless.dissimilarity import dissimilarities


def fit(X, threads, method, n_clusters=None, n_categories=0):
    begun = time.process_time()
    if method == "gower":
        kinds = {j: "categorical" for j in range(X.shape[1] - n_categories, X.shape[1])}
        found = dissimilarities(X, kinds=kinds, n_jobs=threads)
        details = {"cpu": time.process_time() - begun, "mean": float(found.mean(dtype=np.float64))}
        return Outcome(np.zeros(len(X), dtype=int), 1, **details)
    model = DivisiveClustering(method, n_clusters=n_clusters, random_state=0, n_jobs=threads).fit(X)
    return Outcome(model.labels_, 1, cpu=time.process_time() - begun)


if __name__ == "__main__":
    serve(fit)
