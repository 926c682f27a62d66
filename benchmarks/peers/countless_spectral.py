"""This library's SpectralDPMeans, which chooses the number of clusters itself."""

from worker import Outcome, serve

from countless import SpectralDPMeans


def fit(X, threads, **parameters):
    model = SpectralDPMeans(n_jobs=threads, random_state=0, **parameters).fit(X)
    return Outcome(model.labels_, model.n_iter_, chance_missed=float(model.chance_missed_))


if __name__ == "__main__":
    serve(fit)
