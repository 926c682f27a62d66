"""The schedule of local search, on a plain clustering of numbers with a known optimum."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from countless._search.local_search import LocalSearch, OverSplit, over_splits


class LineClusters:
    """Numbers in clusters: squared distances from the means, plus a penalty for each cluster."""

    is_large = False
    rounding = 1e-9

    def __init__(self, x, penalty):
        self.x, self.penalty = np.sort(x), penalty
        self.labels = np.zeros(len(x), dtype=int)
        self.n_passes = 0

    @property
    def n_clusters(self):
        return len(np.unique(self.labels))

    @property
    def objective(self):
        return sum(self.cost(self.labels == c) + self.penalty for c in np.unique(self.labels))

    def cost(self, rows):
        return float(np.square(self.x[rows] - self.x[rows].mean()).sum())

    def reassign(self, share=1.0):
        self.n_passes += 1
        names, old = np.unique(self.labels, return_inverse=True)
        means = np.array([self.x[self.labels == c].mean() for c in names])
        self.labels = np.abs(self.x[:, None] - means).argmin(axis=1)
        return not np.array_equal(old, self.labels)

    def split(self, share=1.0):
        n_split = 0
        for c in np.unique(self.labels):
            rows = self.labels == c
            far = rows & (self.x > self.x[rows].mean())
            if far.any():
                gain = self.cost(rows) - self.cost(far) - self.cost(rows & ~far)
                if gain > share * self.penalty + self.rounding:
                    self.labels[far] = self.labels.max() + 1
                    n_split += 1
        return n_split

    def merge(self):
        n_merged = 0
        for c in np.unique(self.labels)[::-1]:
            for other in np.unique(self.labels):
                a, b = self.labels == c, self.labels == other
                both = self.cost(a | b) - self.cost(a) - self.cost(b) if other != c else np.inf
                if both < self.penalty - self.rounding:
                    self.labels[a] = other
                    n_merged += 1
                    break
        return n_merged

    def moves(self):
        return ()

    def over_splits(self):
        return over_splits(self.n_clusters, len(self.x))

    def save(self):
        return self.labels.copy()

    def accept(self, saved):
        pass

    def restore(self, saved):
        self.labels = saved


def optimum(x, penalty):
    """The lowest objective: optimal clusters of numbers are intervals."""
    x, best = np.sort(x), [0.0]
    for stop in range(1, len(x) + 1):
        costs = [
            best[start] + penalty + np.square(x[start:stop] - x[start:stop].mean()).sum()
            for start in range(stop)
        ]
        best.append(min(costs))
    return best[-1]


def search(clusters, **options):
    run = LocalSearch(clusters, **{"tol": 0.0, "max_iter": 500} | options)
    run.run()
    run.finish()
    return run


@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 30), penalty=st.floats(0.01, 30))
@settings(max_examples=30)
def test_the_objective_never_rises_and_is_near_the_optimum(seed, n_rows, penalty):
    x = 4 * np.random.RandomState(seed).standard_normal(n_rows)
    clusters = LineClusters(x, penalty)
    run = search(clusters)
    assert run.converged
    assert (np.diff(run.history) <= 1e-9).all()
    best = optimum(x, penalty)
    assert best - 1e-9 <= run.history[-1] == clusters.objective <= 1.15 * best + 1e-9


def test_over_splits_only_lower_what_splits_and_merges_reach():
    improved = 0
    for seed in range(12):
        x = 4 * np.random.RandomState(seed).standard_normal(30)
        clusters, plain = LineClusters(x, 8.0), LineClusters(x, 8.0)
        plain.over_splits = list
        with_them, without = (search(some).history[-1] for some in (clusters, plain))
        assert with_them <= without + 1e-9
        improved += with_them < without - 1e-9
    assert improved > 1


def test_an_over_split_that_does_not_pay_is_undone():
    clusters = LineClusters([0.0, 0.1, 5.0, 5.1], penalty=2.0)
    run = search(clusters)
    labels = clusters.labels.copy()
    assert not run.over_split(OverSplit(0.0, 4))
    assert np.array_equal(clusters.labels, labels)
    assert clusters.objective == run.history[-1]


def test_a_search_out_of_passes_has_not_converged():
    x = np.random.RandomState(0).standard_normal(80)
    assert not search(LineClusters(x, 0.01), max_iter=3).converged


def test_callbacks_see_each_recorded_objective():
    seen, rounds = [], []
    clusters = LineClusters(np.arange(20.0), 3.0)
    run = LocalSearch(clusters, tol=0.0, max_iter=50, on_pass=lambda *now: seen.append(now))
    run.run(lambda: rounds.append(run.history[-1]))
    assert [objective for objective, _ in seen] == run.history
    assert seen[-1][1] == clusters.n_clusters
    assert rounds == sorted(rounds, reverse=True)
