"""Clusters by a kernel, and by what stands in for one: this library and scikit-learn."""

from sklearn.cluster import KMeans, SpectralClustering
from sklearn.kernel_approximation import Nystroem
from worker import Outcome, serve

from countless import DPMeans, KernelDPMeans
from countless._search.kernel.matrix import scale_of


def fit(X, threads, method, n_clusters=None, n_components=None, kernel="rbf"):
    if method == "kernel":
        model = KernelDPMeans(kernel=kernel, random_state=0, n_jobs=threads).fit(X)
        return Outcome(model.labels_, model.n_iter_)
    if method == "kmeans":
        model = KMeans(n_clusters, n_init=10, random_state=0).fit(X)
        return Outcome(model.labels_, model.n_iter_)
    gamma = scale_of(X, 1.0 + 0.0 * X[:, 0])
    if method == "spectral":
        model = SpectralClustering(n_clusters, gamma=gamma, random_state=0, n_jobs=threads)
        return Outcome(model.fit(X).labels_, 1)
    features = Nystroem(gamma=gamma, n_components=n_components, random_state=0, n_jobs=threads)
    model = DPMeans(random_state=0, n_jobs=threads).fit(features.fit_transform(X))
    return Outcome(model.labels_, model.n_iter_)


if __name__ == "__main__":
    serve(fit)
