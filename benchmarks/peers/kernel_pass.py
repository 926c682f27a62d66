"""What a pass over a kernel costs beside one product of the kernel with a vector."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs
from worker import _forget_peak, _memory

from countless._search.kernel.clusters import KernelClusters, KernelTable, Prices
from countless._search.kernel.matrix import KernelFunction, check_precomputed, scale_of
from countless._threads import open_threads
from countless.kernel_dp_means import kernel_dp_means


def best_of(repeat, function):
    """Return the least time of some calls, and what the last one gave."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        answer = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), answer


def figures(n_rows, n_clusters, penalty, threads, repeat):
    X, truth = make_blobs(n_rows, 8, centers=n_clusters, cluster_std=1.5, random_state=0)
    X, weight = X.astype(np.float32), np.ones(n_rows)
    function = KernelFunction("rbf", {"gamma": scale_of(X, weight)})
    making, kernel = best_of(1, lambda: function.matrix(X, threads))
    vector = np.ones(n_rows, dtype=np.float32)
    sweep, _ = best_of(repeat, lambda: kernel @ vector)
    checking, _ = best_of(repeat, lambda: check_precomputed(kernel, threads))
    resident = _forget_peak()
    with open_threads(threads) as each:
        table = KernelTable(kernel, weight, np.zeros(n_rows, dtype=np.int64), each)
        truth = truth.astype(np.int32)
        fullest, _ = best_of(repeat, lambda: KernelClusters(table, Prices(penalty), truth).visit())
        plain, found = best_of(repeat, lambda: kernel_dp_means(table, penalty, refine=False))
        refined, better = best_of(1, lambda: kernel_dp_means(table, n_rows / 70, tol=1e-3))
    peak = _memory("VmHWM")
    return {
        "n": n_rows,
        "bytes": kernel.nbytes,
        "extra_bytes": None if resident is None else peak - resident,
        "making": making,
        "checking": checking,
        "sweep": sweep,
        "fullest": fullest,
        "plain": {"seconds": plain, "passes": found.n_iter, "k": found.clusters.n_clusters},
        "refined": {"seconds": refined, "passes": better.n_iter, "k": better.clusters.n_clusters},
    }


if __name__ == "__main__":
    question, answer = map(Path, sys.argv[1:])
    job = json.loads(question.read_text())
    figures(1000, 5, job["penalty"], job["threads"], 1)  # compiles
    answer.write_text(json.dumps(figures(**job)))
