"""Bayesian hierarchical clustering against plain loops and sums over all partitions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, is_monotonic, is_valid_linkage, linkage
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.special import gammaln, log_expit, logsumexp
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from countless import BayesianHierarchicalClustering
from countless._tree import bhc_tree
from countless._tree.bhc_learn import evidence_and_gradient, fit_tree
from countless._tree.bhc_leaves import leaves_of
from countless._tree.bhc_predict import log_densities, node_mixture
from countless._tree.bhc_tree import cut, evaluate, grow_tree, heights, log_weights, node_weights
from countless._tree.dendrogram import linkage_matrix, merge_order
from countless.kernels.bhc import fill_pairs
from countless.metrics import dendrogram_purity
from countless.models import Bernoulli, Columns, DiagonalGaussian, Gaussian, Multinomial
from plain import all_partitions

RNG = np.random.default_rng(5)
MIXED = np.array(
    [[RNG.normal(), RNG.integers(2), "abc"[RNG.integers(3)], RNG.poisson(3)] for _ in range(9)],
    dtype=object,
)
MIXED[2, 0] = MIXED[4, 2] = MIXED[5, 1] = None
TABLES = {
    "gaussian": (Gaussian(), RNG.normal(size=(9, 2)) * [1, 5]),
    "binary": (Bernoulli(), RNG.integers(2, size=(9, 3)).astype(float)),
    "mixed, gaps": (Columns(["number", "binary", "category", "count"]), MIXED),
    "multinomial": (Multinomial(), RNG.poisson(2.0, size=(9, 4))),
}


def bound(name, n=None):
    model, X = TABLES[name]
    X = X[:n]
    model = model.bind(X)
    rows = model.rows(X)
    return model, rows, leaves_of(model, rows, np.arange(len(rows)))


def members(children):
    """Return the leaves below each node."""
    below = [frozenset([leaf]) for leaf in range(len(children) + 1)]
    for a, b in children:
        below.append(below[a] | below[b])
    return below


def weigh(model, rows, alpha, sets):
    """Return the log prior weight and density of rows in these clusters."""
    labels = np.empty(len(rows), dtype=int)
    for cluster, rows_of_it in enumerate(sets):
        labels[list(rows_of_it)] = cluster
    size = np.bincount(labels)
    marginals = model.log_marginal(model.statistics(rows, labels))
    return float(np.sum(np.log(alpha) + gammaln(size) + marginals))


def weighed_partitions(model, rows, alpha):
    """Return every partition, as a set of sets, with its log weight."""
    found = {}
    for labels in all_partitions(len(rows)):
        labels = np.array(labels)
        sets = frozenset(frozenset(np.flatnonzero(labels == c)) for c in range(labels.max() + 1))
        found[sets] = weigh(model, rows, alpha, sets)
    return found


def plain_odds(model, alpha, x, y):
    """Return the log odds of a merge as Heller and Ghahramani write them; log p, log d, n, sums."""
    size, statistics = x[2] + y[2], x[3] + y[3]
    log_one = np.log(alpha) + gammaln(size)
    log_d = np.logaddexp(log_one, x[1] + y[1])
    one = log_one - log_d + model.log_marginal(statistics)
    apart = x[1] + y[1] - log_d + x[0] + y[0]
    return one - apart, (np.logaddexp(one, apart), log_d, size, statistics)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_every_merge_is_the_best_of_all_pairs_and_the_evidence_is_the_recursions(name):
    model, _, leaves = bound(name)
    alpha, n = 0.7, len(leaves.size)
    tree = grow_tree(model, alpha, leaves)
    evaluation = evaluate(model, alpha, tree)
    alive = {
        leaf: (float(model.log_marginal(leaves.statistics[leaf])), np.log(alpha), 1, s)
        for leaf, s in enumerate(leaves.statistics)
    }
    for step, (a, b) in enumerate(tree.children):
        nodes = sorted(alive)
        odds = {
            (i, j): plain_odds(model, alpha, alive[i], alive[j])[0]
            for i in nodes
            for j in nodes
            if i < j
        }
        assert odds[a, b] >= max(odds.values()) - 1e-9
        log_odds, merged = plain_odds(model, alpha, alive.pop(a), alive.pop(b))
        np.testing.assert_allclose(evaluation.log_odds[step], log_odds, rtol=1e-9, atol=1e-9)
        alive[n + step] = merged
    log_p, log_d, *_ = alive[2 * n - 2]
    bound_of_evidence = log_p + log_d + gammaln(alpha) - gammaln(alpha + n)
    assert evaluation.log_evidence == pytest.approx(bound_of_evidence, rel=1e-12)


@settings(max_examples=25)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.floats(0.05, 20))
def test_cached_partners_equal_a_search_of_all_pairs(n, seed, alpha):
    model = DiagonalGaussian()
    X = np.random.default_rng(seed).normal(size=(n, 2)).round(1)
    model = model.bind(X)
    leaves = leaves_of(model, model.rows(X), np.arange(n))
    tree = grow_tree(model, alpha, leaves)
    log_odds = evaluate(model, alpha, tree).log_odds
    log_sum = model.log_marginal(tree.statistics) + log_weights(alpha, n)[tree.size]
    for step, (a, b) in enumerate(tree.children):
        apart = log_sum[a] + log_sum[b]
        log_sum[n + step] = np.logaddexp(log_sum[n + step], apart)
    alive = set(range(n))
    for step, pair in enumerate(tree.children):
        nodes = np.array(sorted(alive))
        i, j = np.triu_indices(len(nodes), 1)
        i, j = nodes[i], nodes[j]
        together = model.log_marginal(tree.statistics[i] + tree.statistics[j])
        together += log_weights(alpha, n)[tree.size[i] + tree.size[j]]
        best = (together - log_sum[i] - log_sum[j]).max()
        assert log_odds[step] >= best - 1e-8 * max(1.0, abs(best))
        alive -= set(pair.tolist())
        alive.add(n + step)


def test_the_evidence_is_the_sum_over_the_partitions_of_the_tree_and_below_that_over_all():
    alpha = 1.3
    model, rows, leaves = bound("gaussian", 7)
    tree = grow_tree(model, alpha, leaves)
    evaluation = evaluate(model, alpha, tree)
    everything = weighed_partitions(model, rows, alpha)
    nodes = members(tree.children)
    allowed = {sets: value for sets, value in everything.items() if sets <= set(nodes)}
    assert 2 < len(allowed) < len(everything) == 877
    normalizer = gammaln(alpha + 7) - gammaln(alpha)
    total = logsumexp(list(allowed.values()))
    assert evaluation.log_evidence == pytest.approx(total - normalizer, rel=1e-12)
    assert evaluation.log_evidence < logsumexp(list(everything.values())) - normalizer
    probability = {sets: np.exp(value - total) for sets, value in allowed.items()}
    expected = [sum(p for sets, p in probability.items() if node in sets) for node in nodes]
    np.testing.assert_allclose(node_weights(tree, evaluation.log_odds), expected, atol=1e-12)

    # A new row, averaged over partitions; then over the nodes of the tree.
    new = model.rows(np.array([[0.3, -2.0], [40.0, 1.0]]))
    density = np.zeros(2)
    for sets, p in probability.items():
        labels = np.array([next(c for c, s in enumerate(sets) if row in s) for row in range(7)])
        statistics = np.vstack([model.empty(), model.statistics(rows, labels)])
        weight = np.append(alpha, np.bincount(labels)) / (7 + alpha)
        density += p * np.exp(model.log_predictive(new, statistics)) @ weight
    mixture = node_mixture(tree, evaluation.log_odds, alpha, np.zeros(7, dtype=int))
    assert mixture.weight.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(log_densities(model, mixture, new)), density, rtol=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_gradients_through_the_tree(name):
    model, _, leaves = bound(name)
    tree = grow_tree(model, 1.0, leaves)
    start = np.append(0.3, model.hyper.value + 0.1)

    def evidence(value):
        return evaluate(model.with_hyper(value[1:]), np.exp(value[0]), tree).log_evidence

    value, slope = evidence_and_gradient(model.with_hyper(start[1:]), np.exp(start[0]), tree)
    assert value == pytest.approx(evidence(start), rel=1e-12)
    steps = approx_fprime(start, evidence, 1e-6)
    np.testing.assert_allclose(slope, steps, atol=1e-4, rtol=1e-4)


def test_learning_raises_the_evidence_and_never_the_objective():
    X, _ = make_blobs(120, centers=3, random_state=1)
    model = Gaussian().bind(X)
    leaves = leaves_of(model, model.rows(X), np.arange(120))
    plain = fit_tree(model, 1.0, leaves, learn=False)
    learned = fit_tree(model, 1.0, leaves, learn=True)
    assert learned.converged
    assert learned.best.evaluation.log_evidence > plain.best.evaluation.log_evidence + 1
    assert (np.diff(learned.history) <= 0).all()
    assert learned.best.alpha != 1.0
    again = evaluate(learned.best.model, learned.best.alpha, learned.best.tree)
    assert again.log_evidence == learned.best.evaluation.log_evidence


@pytest.mark.parametrize("scale", [2.0**-460, 2.0**460])
@pytest.mark.parametrize("offset", [0.0, 2.0**40])
def test_the_same_is_learned_in_any_units(scale, offset):
    X, _ = make_blobs(60, 2, centers=3, random_state=0)
    X = np.round(X * 2**10) / 2**10  # exact in any of these units
    plain = BayesianHierarchicalClustering().fit(X)
    moved = BayesianHierarchicalClustering().fit((X + offset) * scale)
    np.testing.assert_array_equal(moved.labels_, plain.labels_)
    learned, expected = moved.model_.hyper.value[2:], plain.model_.hyper.value[2:]
    np.testing.assert_allclose(learned, expected, atol=0.01)  # where the search stops


def test_the_tree_with_the_most_evidence_is_kept():
    X, y = make_blobs(250, centers=10, cluster_std=0.7, random_state=1)
    found = {
        refine: BayesianHierarchicalClustering(learn=False, refine=refine).fit(X)
        for refine in (False, True)
    }
    assert found[True].log_evidence_ > found[False].log_evidence_ + 10
    scores = {refine: adjusted_rand_score(y, m.labels_) for refine, m in found.items()}
    assert scores[True] > scores[False]


def test_given_hyperparameters_are_not_learned():
    X, _ = make_blobs(60, centers=3, random_state=1)
    given = DiagonalGaussian(strength=0.2, scale=0.5)
    model = BayesianHierarchicalClustering(given).fit(X)
    before = given.bind(X).hyper
    assert before.free.sum() == 4
    changed = model.model_.hyper.value != before.value
    assert not changed[~before.free].any()
    assert changed[before.free].all()


@settings(max_examples=25)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_the_drawn_tree_cut_at_log_2_gives_the_clusters(n, seed):
    random = np.random.default_rng(seed)
    alive, children = list(range(n)), []
    for step in range(n - 1):
        a, b = random.choice(len(alive), 2, replace=False)
        pair = sorted((alive[a], alive[b]))
        children.append(pair)
        alive = [node for node in alive if node not in pair] + [n + step]
    children = np.array(children, dtype=np.int64).reshape(-1, 2)
    log_odds = random.normal(scale=3, size=n - 1)
    top = cut(children, log_odds)
    for node in range(n):  # the highest likely merge above a leaf, or the leaf
        path = [node]
        while (parents := [i for i, pair in enumerate(children) if path[-1] in pair]) != []:
            path.append(n + parents[0])
        likely = [k for k in path if k < n or log_odds[k - n] >= 0]
        assert top[node] == likely[-1]
    if n == 1:
        return
    height = heights(children, log_odds)
    order, sorted_children = merge_order(children, height)
    matrix = linkage_matrix(sorted_children, height[order])
    assert is_valid_linkage(matrix)
    assert is_monotonic(matrix)
    flat = fcluster(matrix, np.log(2), "distance")
    assert adjusted_rand_score(flat, top[:n]) == 1.0


def test_purity_is_the_mean_over_pairs_of_a_class():
    random = np.random.default_rng(8)
    classes = random.integers(3, size=14)
    classes[0] = 7  # alone in its class: left out
    tree = linkage(random.normal(size=(14, 2)), "average")
    below = members(tree[:, :2].astype(int))
    means = []
    for a in range(1, 14):
        others = [b for b in range(14) if b != a and classes[b] == classes[a]]
        parts = [min((part for part in below if {a, b} <= part), key=len) for b in others]
        means.append(np.mean([np.mean(classes[list(part)] == classes[a]) for part in parts]))
    assert dendrogram_purity(tree, classes) == pytest.approx(np.mean(means))
    with pytest.raises(ValueError, match="classes has 3 entries for 14 leaves"):
        dendrogram_purity(tree, [0, 1, 0])
    with pytest.raises(ValueError, match="no class of two leaves"):
        dendrogram_purity(tree, np.arange(14))
    with pytest.raises(ValueError, match=r"one row for each merge; got an array of shape \(2,\)"):
        dendrogram_purity([0, 1], [0, 0])
    for merges in ([[2, 3], [0, 1]], [[0, 1], [1, 3]], [[0, 9], [1, 3]]):
        with pytest.raises(ValueError, match=r"merge [01] joins .* not both there"):
            dendrogram_purity(merges, [0, 0, 1])


def test_a_cut_from_the_bottom_up_would_differ():
    children = np.array([[0, 1], [2, 3]])
    assert cut(children, np.array([-1.0, 2.0])).tolist() == [4, 4, 4, 4, 4]
    assert cut(children, np.array([2.0, -1.0])).tolist() == [3, 3, 2, 3, 4]


def test_tables_and_pairs_side_by_side_are_short_cuts_only():
    for name in TABLES:
        model, _, leaves = bound(name)
        statistics = np.vstack([leaves.statistics, leaves.statistics[:4] + leaves.statistics[4:8]])
        statistics = np.vstack([statistics, statistics[9:11] + statistics[11:], model.empty()])
        n = len(statistics)
        i, j = np.triu_indices(n, 1)
        plain = model.log_marginal(statistics[i] + statistics[j])
        for n_counts, capacity in ((9, 4), (2, 32), (0, 1)):
            tables = np.ascontiguousarray(model.tables(9)[:, :n_counts])
            together = np.empty(n * (n - 1) // 2)
            fill_pairs(model.clusters(capacity), tables, statistics, 0, n, together)
            np.testing.assert_allclose(together, plain, rtol=1e-11, atol=1e-11)


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(bhc_tree, "TREE_SEARCH", replace(bhc_tree.TREE_SEARCH, task_pairs=50))
    X = RNG.normal(size=(60, 2))
    one, two = (BayesianHierarchicalClustering(n_jobs=jobs).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one.linkage_matrix_, two.linkage_matrix_)
    assert one.log_evidence_ == two.log_evidence_


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(600, centers=[[0, 0], [8, 0], [0, 8], [9, 9]], random_state=0)
    return X, y


def test_estimator(blobs):
    X, y = blobs
    model = BayesianHierarchicalClustering().fit(X[:200])
    assert adjusted_rand_score(y[:200], model.labels_) > 0.95
    assert model.n_clusters_ == 4
    assert model.linkage_matrix_.shape == (199, 4)
    np.testing.assert_array_equal(model.linkage_matrix_[:, :2], model.children_)
    flat = fcluster(model.linkage_matrix_, np.log(2), "distance")
    assert adjusted_rand_score(flat, model.labels_) == 1.0
    probability = log_expit(model.log_merge_odds_)
    assert (model.linkage_matrix_[-3:, 2] >= -probability[-3:] - 1e-12).all()
    assert (model.predict(X[200:]) == model.predict_proba(X[200:]).argmax(axis=1)).all()
    assert adjusted_rand_score(y[200:], model.predict(X[200:])) > 0.95
    np.testing.assert_allclose(model.predict_proba(X[200:]).sum(axis=1), 1.0)
    assert model.score(X[200:]) > model.score(X[200:] + 30)
    assert model.score_samples(X[:3]).shape == (3,)


def test_densities_integrate_to_one():
    X = RNG.normal(size=(12, 1))
    model = BayesianHierarchicalClustering("diagonal").fit(X)

    def density(x):
        return float(np.exp(model.score_samples([[x]])[0]))

    assert quad(density, -np.inf, np.inf, limit=200)[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("leaves", ["sample", "micro"])
def test_long_tables_are_gathered_and_every_row_counts(blobs, leaves):
    X, y = blobs
    model = BayesianHierarchicalClustering(n_leaves=60, leaves=leaves, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    n_leaves = int(model.leaf_labels_.max()) + 1
    assert n_leaves <= 60
    assert model.linkage_matrix_.shape == (n_leaves - 1, 4)
    # All partitions of gathered rows are partitions of rows: the evidence is a lower bound.
    every = BayesianHierarchicalClustering(n_leaves=None).fit(X)
    assert abs(model.log_evidence_ - every.log_evidence_) < 0.05 * abs(every.log_evidence_)
    again = BayesianHierarchicalClustering(n_leaves=60, leaves=leaves, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(again.fit(X).labels_, model.labels_)


def test_one_row_and_equal_rows():
    one = BayesianHierarchicalClustering().fit([[1.0, 2.0]])
    assert one.labels_.tolist() == [0]
    assert one.linkage_matrix_.shape == (0, 4)
    same = BayesianHierarchicalClustering().fit(np.ones((6, 2)))
    assert same.n_clusters_ == 1


@pytest.mark.parametrize(("alpha", "n_clusters"), [(1e300, 12), (5e-324, 1)])
def test_any_concentration_has_an_answer(alpha, n_clusters):
    X = RNG.normal(size=(12, 2))
    model = BayesianHierarchicalClustering(alpha=alpha).fit(X)
    assert model.n_clusters_ == n_clusters
    # With so large or small a concentration one partition has all the weight in the prior.
    labels = np.arange(12) if n_clusters > 1 else np.zeros(12, dtype=int)
    bound_model = model.model_
    marginals = bound_model.log_marginal(bound_model.statistics(bound_model.rows(X), labels))
    assert model.log_evidence_ == pytest.approx(marginals.sum(), rel=1e-9)
    assert model.predict(X).tolist() == model.labels_.tolist()


def test_early_stop_raises_a_warning():
    X, _ = make_blobs(60, centers=3, random_state=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds"):
        BayesianHierarchicalClustering(max_iter=1).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "normal"}, "model must be one of 'gaussian'"),
        ({"alpha": 0}, "alpha must be a positive number; got 0"),
        ({"alpha": "one"}, "alpha must be a positive number; got 'one'"),
        ({"learn": 2}, "learn must be True or False; got 2"),
        ({"n_leaves": 1}, "n_leaves must be None or an integer of at least 2; got 1"),
        ({"leaves": "rows"}, "leaves must be 'auto', 'sample' or 'micro'; got 'rows'"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        BayesianHierarchicalClustering(**parameters).fit([[0.0], [1.0], [2.0]])


def test_bad_tables_are_refused():
    X = np.ones((4, 2))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN: row 2, column 1"):
        BayesianHierarchicalClustering().fit(X)
    with pytest.raises(ValueError, match="without gaps; 'sample' takes them"):
        BayesianHierarchicalClustering("diagonal", n_leaves=2, leaves="micro").fit(X)
    with pytest.raises(ValueError, match="numbers, not categories; 'sample' takes them"):
        BayesianHierarchicalClustering("columns", n_leaves=2, leaves="micro").fit(MIXED)
