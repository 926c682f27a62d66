"""faiss Kmeans on all rows (by default it would take a sample), a fixed number of passes."""

import faiss
from worker import Outcome, serve

N_PASSES = 20


def fit(X, threads, n_clusters):
    model = faiss.Kmeans(
        X.shape[1],
        n_clusters,
        niter=N_PASSES,
        seed=0,
        min_points_per_centroid=1,
        max_points_per_centroid=len(X),
    )
    X = X.astype("float32", copy=False)
    model.train(X)
    return Outcome(model.assign(X)[1], N_PASSES)


if __name__ == "__main__":
    serve(fit)
