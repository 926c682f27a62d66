"""scikit-learn's KMeans, Lloyd's algorithm from one k-means++ start."""

from sklearn.cluster import KMeans
from worker import Outcome, serve


def fit(X, threads, **parameters):
    model = KMeans(n_init=1, algorithm="lloyd", random_state=0, **parameters).fit(X)
    return Outcome(model.labels_, model.n_iter_)


if __name__ == "__main__":
    serve(fit)
