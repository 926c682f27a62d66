"""scikit-learn's spectral clustering of a given graph, told the number of clusters."""

import warnings

from graph_links import matrix
from sklearn.cluster import SpectralClustering
from worker import Outcome, serve

# A graph in several pieces is clustered all the same.
warnings.filterwarnings("ignore", message="Graph is not fully connected")
SMALLEST = 1_000  # links; fewer of a large graph, the warm-up, say nothing


def fit(X, threads, n_nodes, method, k):
    if X.shape[0] < SMALLEST and n_nodes > SMALLEST:
        return None
    model = SpectralClustering(k, affinity="precomputed", random_state=0, n_jobs=threads)
    return Outcome(model.fit_predict(matrix(X, n_nodes)), 1)


if __name__ == "__main__":
    serve(fit)
