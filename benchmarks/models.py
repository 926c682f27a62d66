"""What a collapsed Gibbs sampler pays for a row, and a sweep beside scikit-learn.

A sweep asks for the predictive densities of every row given every cluster, and moves the rows that
leave theirs. One thread; processor time, so that other work on the machine does not count.

    python benchmarks/models.py [--quick]
"""

import argparse
import math
import time
import warnings

import numpy as np
from numba import njit
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture
from threadpoolctl import threadpool_limits

from countless.kernels import models as kernels
from countless.models import Categorical, Columns, DiagonalGaussian, Gaussian


@njit(cache=False)
def predict_all(clusters, n_clusters, rows, weights):
    for i in range(rows.shape[0]):
        kernels.log_predictive_row(clusters, n_clusters, rows, i, -1, weights)


@njit(cache=False)
def predict_own(clusters, rows, labels):
    total = 0.0
    for i in range(rows.shape[0]):
        total += kernels.log_predictive_without(clusters, labels[i], rows, i)
    return total


@njit(cache=False)
def remove_and_add(clusters, rows, labels):
    for i in range(rows.shape[0]):
        kernels.remove_row(clusters, labels[i], rows, i)
        kernels.add_row(clusters, labels[i], rows, i)


@njit(cache=False)
def sweep(clusters, rows, labels, sizes, weights, draws):
    """Draw the label of every row in turn; the last cluster stays empty, as a new one."""
    n_clusters = len(sizes)
    for i in range(rows.shape[0]):
        own = labels[i]
        kernels.log_predictive_row(clusters, n_clusters, rows, i, own, weights)
        if math.isnan(weights[own]):
            weights[own] = kernels.log_predictive_without(clusters, own, rows, i)
        highest = -math.inf
        for c in range(n_clusters):
            weights[c] += math.log(max(sizes[c] - (c == own), 1e-3))
            highest = max(highest, weights[c])
        total = 0.0
        for c in range(n_clusters):
            total += math.exp(weights[c] - highest)
            weights[c] = total
        new = 0
        while weights[new] < draws[i] * total:
            new += 1
        if new != own and new < n_clusters - 1:
            kernels.remove_row(clusters, own, rows, i)
            kernels.add_row(clusters, new, rows, i)
            sizes[own] -= 1
            sizes[new] += 1
            labels[i] = new


def least_seconds(function, *arguments, repeats):
    """Return the least processor time of several calls, the first of which compiles."""
    function(*arguments)
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function(*arguments)
        seconds.append(time.process_time() - start)
    return min(seconds)


def blobs(n, d, k):
    width = 8.0 if d == 2 else 2.0
    X, labels = make_blobs(n, d, centers=k, center_box=(-width, width), random_state=0)
    return X, labels.astype(np.int64)


def kernel_costs(name, model, X, labels, repeats):
    """Print nanoseconds for one density of a row, its own one, and a removal with an addition."""
    model = model.bind(X)
    rows = model.rows(X)
    n, k = len(rows), labels.max() + 1
    clusters = model.clusters(k, model.statistics(rows, labels))
    density = least_seconds(predict_all, clusters, k, rows, np.empty(k), repeats=repeats) / n / k
    own = least_seconds(predict_own, clusters, rows, labels, repeats=repeats) / n
    change = least_seconds(remove_and_add, clusters, rows, labels, repeats=repeats) / n
    print(f"| {name} | {density * 1e9:.1f} | {own * 1e9:.0f} | {change * 1e9:.0f} |")


def iteration_of_scikit_learn(X, repeats):
    """Return the seconds of one iteration with 30 components: ten more than one, less one."""

    def fit(iterations):
        BayesianGaussianMixture(
            n_components=30,
            max_iter=iterations,
            tol=0.0,
            init_params="random_from_data",
            random_state=0,
        ).fit(X)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        seconds = [least_seconds(fit, iterations, repeats=repeats) for iterations in (11, 1)]
    return (seconds[0] - seconds[1]) / 10


def sweep_beside_scikit_learn(n, d, k, repeats):
    X, labels = blobs(n, d, k)
    model = Gaussian().bind(X)
    rows = model.rows(X)
    clusters = model.clusters(k + 1, model.statistics(rows, labels))
    sizes = np.append(np.bincount(labels), 0).astype(np.float64)
    draws = np.random.default_rng(0).random(n)
    arguments = (clusters, rows, labels, sizes, np.empty(k + 1), draws)
    ours = least_seconds(sweep, *arguments, repeats=repeats)
    theirs = iteration_of_scikit_learn(X, max(2, repeats // 2))
    print(f"| {n} | {d} | {k} | {ours * 1e3:.1f} | {theirs * 1e3:.1f} | {ours / theirs:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats")
    quick = parser.parse_args().quick
    repeats = 2 if quick else 7
    with threadpool_limits(1):
        print("| model | density, ns | own density, ns | remove and add, ns |")
        print("| --- | --- | --- | --- |")
        for d in (2, 16):
            X, labels = blobs(500 if quick else 5000, d, 20)
            kernel_costs(f"Gaussian, d={d}", Gaussian(), X, labels, repeats)
            kernel_costs(f"DiagonalGaussian, d={d}", DiagonalGaussian(), X, labels, repeats)
            codes = np.digitize(X, [-1.0, 0.0, 1.0])
            kernel_costs(f"Categorical, d={d}", Categorical(levels=4), codes, labels, repeats)
            kinds = ["number", "count"] * (d // 2)
            counts = np.where(np.arange(d) % 2, np.rint(np.abs(X)), X)
            kernel_costs(f"Columns, d={d}", Columns(kinds), counts, labels, repeats)
        print("\n| n | d | k | sweep, ms | iteration of BayesianGaussianMixture, ms | ratio |")
        print("| --- | --- | --- | --- | --- | --- |")
        for n, d, k in ((10_000, 2, 10), (5_000, 16, 20)):
            sweep_beside_scikit_learn(n // 10 if quick else n, d, k, repeats)


if __name__ == "__main__":
    main()
