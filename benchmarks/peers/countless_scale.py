"""This library's DPMeans with its rows in memory, on disk, or on a Dask cluster of processes."""

import json
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from countless_dp_means import PassClock
from scale_rows import dask_rows, local_cluster, peak_memory
from sklearn.exceptions import ConvergenceWarning

from countless import DPMeans

# Enough rows to compile everything, and to make Dask cut its chunks.
WARM_UP_ROWS = 20_000


@contextmanager
def home(name, path, threads):
    """Give the rows where they are to be, and a way to add up a measure of all processes."""
    if name == "memory":
        yield np.load(path), lambda measure: measure()
    elif name == "disk":
        yield path, lambda measure: measure()
    else:
        with local_cluster(threads) as client:
            yield dask_rows(path), lambda measure: measure() + sum(client.run(measure).values())


def fit(X, threads, **parameters):
    """Fit, and return the model and when each pass ended."""
    model = DPMeans(refine=False, n_jobs=threads, random_state=0, **parameters)
    clock = PassClock()
    model.set_callbacks(clock)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the passes are counted out
        model.fit(X)
    return model, clock.seconds


def figures(job):
    threads, parameters = job["threads"], job["parameters"]
    with home(job["home"], job["data"], threads) as (X, everywhere):
        # Dask's processes compile for themselves: they need a fit of their own.
        few = (
            X[:WARM_UP_ROWS] if job["home"] != "disk" else np.load(X, mmap_mode="r")[:WARM_UP_ROWS]
        )
        fit(few, threads, **parameters)
        best = None
        for _ in range(job["repeat"]):
            start, cpu = time.perf_counter(), everywhere(time.process_time)
            model, ends = fit(X, threads, **parameters)
            seconds = time.perf_counter() - start
            cpu = everywhere(time.process_time) - cpu
            # The first pass opens clusters; before it the table is looked at.
            each = (ends[-1] - ends[0]) / (len(ends) - 1)
            if best is None or each < best["seconds_a_pass"]:
                best = {"seconds": seconds, "seconds_a_pass": each, "opening": ends[0], "cpu": cpu}
        return best | {
            "passes": model.n_iter_,
            "k": model.n_clusters_,
            "objective": float(model.objective_),
            "peak_bytes": everywhere(peak_memory),
        }


if __name__ == "__main__":
    question, answer = map(Path, sys.argv[1:])
    answer.write_text(json.dumps(figures(json.loads(question.read_text()))))
