"""SciPy's average linkage, cut where it has as many clusters as were drawn."""

from scipy.cluster.hierarchy import fcluster, linkage
from worker import Outcome, serve


def fit(X, threads, n_clusters):
    return Outcome(fcluster(linkage(X, "average"), n_clusters, "maxclust"), 1)


if __name__ == "__main__":
    serve(fit)
