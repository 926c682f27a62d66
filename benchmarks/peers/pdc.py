"""PDC-DP-means (Dinari and Freifeld, UAI 2022). Its wheel runs the passes on one thread."""

from pdc_dp_means import DPMeans
from worker import Outcome, serve


def fit(X, threads, penalty):
    # It opens one cluster a pass at most: with its default of 300 passes k could not exceed 301.
    model = DPMeans(n_clusters=1, delta=penalty, n_init=1, max_iter=2000, random_state=0).fit(X)
    return Outcome(model.labels_, model.n_iter_)


if __name__ == "__main__":
    serve(fit)
