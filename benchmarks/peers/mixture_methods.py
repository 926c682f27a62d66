"""Mixtures that find their own number of components, for ``benchmarks/mixture.py``."""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture
from worker import Outcome, serve


def of_countless(X, threads, settings, seed=0):
    from countless import DPMixture

    mixture = DPMixture(random_state=seed, n_jobs=threads, **settings).fit(X)
    return Outcome(mixture.labels_, mixture.n_iter_, later=lambda: describe(mixture.posterior_))


def describe(posterior):
    from countless._mcmc.point_estimate import point_estimate

    start = time.perf_counter()
    posterior.point_estimate(random_state=0)
    seconds = time.perf_counter() - start

    def k_of_chains(assign):
        found = (point_estimate(chain, "vi", 0, assign) for chain in posterior.labels)
        return [int(labels.max()) + 1 for labels in found]

    return {
        "k_of_chains": k_of_chains(assign=True),
        "bare_k_of_chains": k_of_chains(assign=False),
        "r_hat": max(found.r_hat for found in posterior.diagnostics().values()),
        "seconds_of_estimate": seconds,
        "bytes_of_draws": posterior.labels.nbytes,
    }


def of_scikit_learn(X, threads, n_components, seed=0):
    mixture = BayesianGaussianMixture(
        n_components=n_components, max_iter=1000, random_state=seed
    ).fit(X)
    return Outcome(mixture.predict(X), mixture.n_iter_)


def fit(X, threads, method, **options):
    # Runs may be short on purpose, and a warm-up always is.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        methods = {"countless": of_countless, "scikit-learn": of_scikit_learn}
        return methods[method](np.ascontiguousarray(X), threads, **options)


if __name__ == "__main__":
    serve(fit)
