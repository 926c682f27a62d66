"""This library's DPMeans, with a time stamp after every pass."""

import time

import numpy as np
from worker import Outcome, serve

from countless import DPMeans


class PassClock:
    """A scikit-learn callback that notes when each pass ended."""

    def __init__(self):
        self.start = time.perf_counter()
        self.seconds = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        pass

    def on_fit_task_end(self, estimator, context, **_):
        if context.parent is not None:  # the root task is the whole fit
            self.seconds.append(time.perf_counter() - self.start)
        return False


def fit(X, threads, **parameters):
    model = DPMeans(n_jobs=threads, random_state=0, **parameters)
    clock = PassClock()
    if hasattr(model, "set_callbacks"):  # scikit-learn before 1.9 has no callbacks
        model.set_callbacks(clock)
    model.fit(X)
    return Outcome(
        model.labels_,
        model.n_iter_,
        penalty=float(model.penalty_),
        objective_history=[float(value) for value in model.objective_history_],
        pass_seconds=clock.seconds,
        skipped_share=1 - model.share_computed_,
    )


def compile_all_searches():
    """Fit tables that have some clusters, and many, for their rows: the warm-up's may not."""
    rows = np.random.default_rng(0).standard_normal((600, 2))
    for kind in (np.float32, np.float64):
        DPMeans(1e-6, tol=1e-3).fit(rows.astype(kind))
        DPMeans(0.3, refine=False).fit(rows.astype(kind))


if __name__ == "__main__":
    compile_all_searches()
    serve(fit)
