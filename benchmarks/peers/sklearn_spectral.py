"""scikit-learn's SpectralClustering on a graph of nearest neighbours, told k."""

import warnings

from sklearn.cluster import SpectralClustering
from worker import Outcome, serve


def fit(X, threads, **parameters):
    model = SpectralClustering(
        affinity="nearest_neighbors", n_jobs=threads, random_state=0, **parameters
    )
    with warnings.catch_warnings():
        # It says so when a graph has several components, which is what clusters may be.
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X)
    return Outcome(model.labels_, 1)


if __name__ == "__main__":
    serve(fit)
