"""Patches of a picture clustered by their similarities: this library, and scikit-image's cuts."""

import time

from worker import Outcome, serve

from countless.image.segment import make_method


def fit(X, threads, method, prior):
    X = X[:, : len(X)]  # the first rows are there to warm up
    chosen = make_method(method, prior, len(X), None, {}, seed=0)
    if method == "affinity":
        chosen.estimator.set_params(n_jobs=threads)
    start = time.process_time()
    model = chosen.estimator.fit(chosen.matrix(X))
    return Outcome(model.labels_, getattr(model, "n_iter_", 1), cpu=time.process_time() - start)


if __name__ == "__main__":
    serve(fit, warm_up_rows=400)  # time grows with their square
