"""The hard HDP and what it is compared with, on many small problems or on one large one."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from worker import _forget_peak, _memory

from countless import (
    DPMeans,
    HDPMeans,
    HDPMixture,
    farthest_first_penalty,
    hdp_penalties,
    penalty_path,
)


def apart(fit, X, groups):
    """Fit each data set by itself; labels of different sets are different."""
    labels = np.empty(len(X), dtype=np.int64)
    for j in np.unique(groups):
        rows = groups == j
        labels[rows] = fit(X[rows]) + 1000 * j
    return labels


class Methods:
    """Every contestant: ``name(X, groups) -> (labels, details)``; the names are the options'."""

    def __init__(self, threads, n_local, n_global):
        self.threads, self.n_local, self.n_global = threads, n_local, n_global
        self.rule = None

    def prepare(self, X, groups):
        """Find the penalties of the paper's rule; like being told k, that is not timed."""
        self.rule = hdp_penalties(X, groups, self.n_local, self.n_global)

    def kmeans(self, X, groups, n_init):
        return KMeans(self.n_global, n_init=n_init, random_state=0).fit(X).labels_, {}

    def kmeans_apart(self, X, groups):
        def fit(rows):
            return KMeans(self.n_local, n_init=10, random_state=0).fit(rows).labels_

        return apart(fit, X, groups), {}

    def dp_means(self, X, groups, refine):
        if refine:
            penalty = penalty_path(X, random_state=0).penalty_for(self.n_global)
        else:
            penalty = farthest_first_penalty(X, self.n_global)
        return DPMeans(penalty, refine=refine, n_jobs=self.threads).fit(X).labels_, {}

    def dp_means_apart(self, X, groups):
        def fit(rows):
            penalty = farthest_first_penalty(rows, self.n_local)
            return DPMeans(penalty, refine=False).fit(rows).labels_

        return apart(fit, X, groups), {}

    def hdp_means(self, X, groups, penalties, refine=True):
        chosen = self.rule if penalties == "rule" else ("auto", "auto")
        model = HDPMeans(*chosen, refine=refine, random_state=0, n_jobs=self.threads)
        model.fit(X, groups=groups)
        details = {
            "n_local": float(model.n_local_clusters_.mean()),
            "local_penalty": model.local_penalty_,
            "global_penalty": model.global_penalty_,
            "objective": model.objective_,
        }
        return model.labels_, details

    def hdp_mixture(self, X, groups, model):
        mixture = HDPMixture(model, random_state=0, n_jobs=self.threads)
        with warnings.catch_warnings():  # that chains disagree is told by the highest R-hat
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(X, groups=groups)
        found = mixture.posterior_
        details = {
            "n_local": float(mixture.n_local_clusters_.mean()),
            "n_clusters_interval": found.n_clusters_interval(),
            "r_hat": max(one.r_hat for one in found.diagnostics().values()),
        }
        return mixture.labels_, details


def main():
    question, answer = map(Path, sys.argv[1:])
    job = json.loads(question.read_text())
    options = dict(job["options"])
    methods = Methods(job["threads"], options.pop("n_local"), options.pop("n_global"))
    method = getattr(methods, options.pop("method"))
    runs = []
    for path, groups_path in job["problems"]:
        X, groups = np.load(path), np.load(groups_path)
        if options.get("penalties") == "rule":
            methods.prepare(X, groups)
        if not runs:  # imports and compilation are not what is timed
            few = groups < 8
            method(X[few], groups[few], **options)
        resident = _forget_peak()
        seconds = []
        for _ in range(job["repeat"]):
            start = time.perf_counter()
            labels, details = method(X, groups, **options)
            seconds.append(time.perf_counter() - start)
        extra = None if resident is None else _memory("VmHWM") - resident
        np.save(f"{path}.{job['key']}.npy", labels)
        runs.append({"seconds": min(seconds), "extra_bytes": extra, **details})
    answer.write_text(json.dumps(runs))


if __name__ == "__main__":
    main()
