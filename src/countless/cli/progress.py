"""Progress of a fit, pass by pass, through scikit-learn's callbacks where it has them."""

from collections.abc import Callable
from typing import Any

from ..io.table import counted
from ..report.plain import number


class PassProgress:
    """A scikit-learn callback that says after each pass how far a fit has come.

    Examples
    --------
    >>> progress = PassProgress(print)
    >>> progress.on_fit_task_end(
    ...     None, None, metadata={"pass": 2, "n_clusters": 3, "objective": 12.5}
    ... )
    pass 2, 3 clusters, objective 12.5
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is needed before a fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left after a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **details: Any) -> None:
        """Nothing is known at the start of a pass."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None, **details: Any
    ) -> None:
        """Say what a pass came to; other tasks than passes say nothing."""
        if metadata and "pass" in metadata:
            clusters = counted(metadata["n_clusters"], "cluster")
            objective = number(metadata["objective"])
            self.say(f"pass {metadata['pass']}, {clusters}, objective {objective}")


def follow(estimator: Any, say: Callable[[str], None]) -> None:
    """Have an estimator say how far it has come, where it can.

    Examples
    --------
    >>> from sklearn.cluster import HDBSCAN
    >>> follow(HDBSCAN(), print)
    """
    if hasattr(estimator, "set_callbacks"):
        estimator.set_callbacks(PassProgress(say))
