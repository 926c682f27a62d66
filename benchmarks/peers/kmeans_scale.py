"""Others' k-means of long tables: dask-ml's on a Dask cluster, scikit-learn's by small batches."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scale_rows import dask_rows, local_cluster, peak_memory

WARM_UP_ROWS = 20_000


def dask_ml(job):
    from dask_ml.cluster import KMeans

    def fit(X):
        # Rows to start from cost nothing, so that the time is that of the passes.
        start = np.load(job["data"], mmap_mode="r")[: job["k"]].astype(np.float64)
        return KMeans(job["k"], init=start, max_iter=job["passes"], tol=0.0).fit(X)

    with local_cluster(job["threads"]) as client:
        X = dask_rows(job["data"]).persist()
        fit(X[:WARM_UP_ROWS])
        start = time.perf_counter()
        model = fit(X)
        seconds = time.perf_counter() - start
        memory = peak_memory() + sum(client.run(peak_memory).values())
    return seconds, model.n_iter_, memory


def mini_batch(job):
    from sklearn.cluster import MiniBatchKMeans

    X = np.load(job["data"])
    settings = {"n_init": 1, "init": "random", "random_state": 0, "max_no_improvement": None}
    model = MiniBatchKMeans(job["k"], max_iter=job["passes"], tol=0.0, **settings)
    model.fit(X[:WARM_UP_ROWS])
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    return seconds, model.n_steps_ * model.batch_size / len(X), peak_memory()


if __name__ == "__main__":
    question, answer = map(Path, sys.argv[1:])
    job = json.loads(question.read_text())
    warnings.simplefilter("ignore")
    seconds, passes, memory = {"dask-ml": dask_ml, "mini-batch": mini_batch}[job["method"]](job)
    figures = {"seconds": seconds, "passes": float(passes), "peak_bytes": memory, "k": job["k"]}
    answer.write_text(json.dumps(figures | {"seconds_a_pass": seconds / passes}))
