"""Compatibility with versions of scikit-learn: parts that are new or experimental."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Placeholder for versions of scikit-learn without callbacks."""

    def with_callbacks(method):
        return method


# Called with the objective and the number of clusters after each pass.
OnPass = Callable[[float, int], None]


def ignore_pass(objective: float, n_clusters: int) -> None:
    """Do nothing after a pass."""


@contextmanager
def report_passes(estimator: Any, X: Any) -> Iterator[OnPass]:
    """Yield a function to call after each pass of a fit; it notifies scikit-learn's callbacks.

    Their ``metadata`` contains the pass's number, the objective and the number of clusters.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield ignore_pass
        return
    root = estimator._init_callback_context(max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator, X=X)
    n_passes = 0

    def on_pass(objective: float, n_clusters: int) -> None:
        nonlocal n_passes
        n_passes += 1
        metadata = {"pass": n_passes, "objective": objective, "n_clusters": n_clusters}
        task = root.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=estimator, X=X, metadata=metadata)
        task.call_on_fit_task_end(estimator=estimator, X=X, metadata=metadata)

    yield on_pass
    root.call_on_fit_task_end(estimator=estimator, X=X)


__all__ = ["CallbackSupportMixin", "OnPass", "ignore_pass", "report_passes", "with_callbacks"]
