"""Metrics: a worked example, plain loops, enumeration, and what a metric must satisfy."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy, kstest

from countless import metrics
from countless.metrics import (
    adjusted_rand_score,
    bootstrap_interval,
    pair_counts,
    pair_f_score,
    pair_precision,
    pair_recall,
    permutation_test,
    purity,
    rand_score,
    variation_of_information,
)

# Murphy (2012), figure 25.1: three clusters of objects labelled A, B and C.
MURPHY_CLASSES = list("AAAAABABBBBCAACCC")
MURPHY_CLUSTERS = [1] * 6 + [2] * 6 + [3] * 5

BAD_LABELS = [
    ([], [], "labels_true is empty"),
    ([0, 1], [], "labels_pred is empty"),
    ([0, 1], [0, 1, 1], "labels_true has 2 labels and labels_pred has 3"),
    ([[0], [1]], [0, 1], r"labels_true must have one dimension, got an array of shape \(2, 1\)"),
    ([0.0, 1.0], [0.0, np.nan], "labels_pred has no label at row 1"),
    (["a", None], [0, 1], "labels_true has no label at row 1"),
]


@st.composite
def clusterings(draw, count):
    """Draw some clusterings of the same few rows."""
    n_rows = draw(st.integers(1, 12))
    labels = st.lists(st.integers(0, 4), min_size=n_rows, max_size=n_rows)
    return [draw(labels) for _ in range(count)]


def together(labels):
    """Say for each pair of rows whether it shares a cluster: the partition without its names."""
    return np.equal.outer(labels, labels)


def label_entropy(labels):
    return entropy(np.unique(labels, return_counts=True)[1])


def test_murphy_worked_example():
    assert purity(MURPHY_CLASSES, MURPHY_CLUSTERS) == pytest.approx((5 + 4 + 3) / 17)
    assert rand_score(MURPHY_CLASSES, MURPHY_CLUSTERS) == pytest.approx((20 + 72) / 136)
    assert pair_counts(MURPHY_CLASSES, MURPHY_CLUSTERS) == (20, 20, 24, 72)
    assert pair_precision(MURPHY_CLASSES, MURPHY_CLUSTERS) == 20 / 40
    assert pair_recall(MURPHY_CLASSES, MURPHY_CLUSTERS) == 20 / 44
    assert round(purity(MURPHY_CLASSES, MURPHY_CLUSTERS), 2) == 0.71
    assert round(rand_score(MURPHY_CLASSES, MURPHY_CLUSTERS), 2) == 0.68


@given(clusterings(2))
def test_purity_counts_the_largest_class_of_each_cluster(pair):
    classes, clusters = map(np.array, pair)
    largest = [max(np.bincount(classes[clusters == c])) for c in set(clusters.tolist())]
    assert purity(classes, clusters) == pytest.approx(sum(largest) / len(classes))


@given(clusterings(2))
def test_purity_of_singletons_is_one(pair):
    assert purity(pair[0], range(len(pair[0]))) == 1


@given(clusterings(2))
def test_variation_of_information_is_symmetric(pair):
    first, second = pair
    assert variation_of_information(first, second) == pytest.approx(
        variation_of_information(second, first), abs=1e-14
    )


@given(clusterings(2))
def test_variation_of_information_is_zero_for_equal_partitions_alone(pair):
    first, second = pair
    same = bool((together(first) == together(second)).all())
    assert (variation_of_information(first, second) == 0) == same


@given(clusterings(3))
def test_variation_of_information_satisfies_the_triangle_inequality(triple):
    first, middle, last = triple
    detour = variation_of_information(first, middle) + variation_of_information(middle, last)
    assert variation_of_information(first, last) <= detour + 1e-12


@given(clusterings(2))
def test_variation_of_information_equals_its_entropy_form(pair):
    first, second = pair
    joint = [5 * a + b for a, b in zip(first, second, strict=True)]
    expected = 2 * label_entropy(joint) - label_entropy(first) - label_entropy(second)
    value = variation_of_information(first, second)
    assert value == pytest.approx(expected, abs=1e-12)
    assert value <= np.log(len(first)) + 1e-12


@given(clusterings(2), st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(pair, names):
    first, second = pair
    renamed = [f"cluster {names[label]}" for label in second]
    assert purity(first, renamed) == purity(first, second)
    assert variation_of_information(first, renamed) == pytest.approx(
        variation_of_information(first, second), abs=1e-14
    )


@given(clusterings(2))
def test_pair_counts_equal_a_loop_over_pairs(pair):
    classes, clusters = pair
    count = dict.fromkeys([(True, True), (False, True), (True, False), (False, False)], 0)
    for i, j in combinations(range(len(classes)), 2):
        count[classes[i] == classes[j], clusters[i] == clusters[j]] += 1
    found = pair_counts(classes, clusters)
    assert list(found) == list(count.values())
    assert found == pair_counts(clusters, classes)._replace(
        false_positive=found.false_positive, false_negative=found.false_negative
    )


@given(clusterings(2), st.floats(0.1, 10))
def test_pair_f_score_is_the_weighted_harmonic_mean(pair, beta):
    precision, recall = pair_precision(*pair), pair_recall(*pair)
    both = beta**2 * precision + recall
    expected = (1 + beta**2) * precision * recall / both if both else 0.0
    assert pair_f_score(*pair, beta=beta) == pytest.approx(expected)


def test_pair_measures_of_singletons():
    assert pair_precision([0, 0, 1], [0, 1, 2]) == 1.0
    assert pair_recall([0, 1, 2], [0, 0, 1]) == 1.0
    assert pair_f_score([0, 1, 2], [0, 0, 1]) == 0.0


def test_pair_counts_of_many_rows_do_not_overflow():
    n = 200_000
    zeros = np.zeros(n, dtype=np.int8)
    assert pair_counts(zeros, zeros) == (n * (n - 1) // 2, 0, 0, 0)


@pytest.mark.parametrize("beta", [0, -1, np.nan, np.inf])
def test_beta_is_named(beta):
    with pytest.raises(ValueError, match="beta must be positive"):
        pair_f_score([0], [0], beta=beta)


@pytest.mark.parametrize("score", [rand_score, adjusted_rand_score, purity])
@pytest.mark.parametrize("clusters", [[0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]])
def test_permutation_test_of_few_rows_enumerates(score, clusters):
    classes = [0, 0, 0, 1, 1, 1]
    null = np.array([score(classes, permuted) for permuted in permutations(clusters)])
    found = permutation_test(classes, clusters, score=score)
    assert found.score == pytest.approx(score(classes, clusters))
    assert found.expected == pytest.approx(null.mean())
    assert found.p_value == pytest.approx((null >= found.score - 1e-12).mean())


def test_permutation_test_of_rand_and_adjusted_rand_agree():
    found = [
        permutation_test(MURPHY_CLASSES, MURPHY_CLUSTERS, score=score, random_state=1)
        for score in (rand_score, adjusted_rand_score)
    ]
    assert found[0].p_value == found[1].p_value
    assert found[1].expected == pytest.approx(0, abs=0.02)


@pytest.mark.slow
def test_permutation_p_values_are_uniform_under_the_null_hypothesis():
    random = np.random.RandomState(0)
    p_values = [
        permutation_test(*random.randint(3, size=(2, 40)), n_permutations=99, random_state=random)[
            2
        ]
        for _ in range(200)
    ]
    assert kstest(p_values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("score", [adjusted_rand_score, purity, variation_of_information])
def test_bootstrap_interval_equals_the_quantiles_of_resampled_scores(score):
    classes, clusters = np.array(MURPHY_CLASSES), np.array(MURPHY_CLUSTERS)
    random = np.random.RandomState(5)
    draws = [random.randint(17, size=17) for _ in range(60)]
    scores = [score(classes[rows], clusters[rows]) for rows in draws]
    found = bootstrap_interval(
        classes, clusters, score=score, confidence_level=0.8, n_draws=60, random_state=5
    )
    assert found.score == pytest.approx(score(classes, clusters))
    assert [found.low, found.high] == pytest.approx(np.quantile(scores, [0.1, 0.9]))


def test_bootstrap_interval_narrows_with_the_rows():
    narrow = bootstrap_interval(
        MURPHY_CLASSES * 16, MURPHY_CLUSTERS * 16, n_draws=99, random_state=0
    )
    wide = bootstrap_interval(MURPHY_CLASSES, MURPHY_CLUSTERS, n_draws=99, random_state=0)
    assert (narrow.high - narrow.low) < (wide.high - wide.low) / 2
    assert narrow.low < narrow.score < narrow.high


@pytest.mark.parametrize(
    ("function", "parameters", "message"),
    [
        (permutation_test, {"n_permutations": 0}, "n_permutations must be an integer"),
        (bootstrap_interval, {"n_draws": 1.5}, "n_draws must be an integer"),
        (bootstrap_interval, {"confidence_level": 1}, "confidence_level must be between 0 and 1"),
    ],
)
def test_bad_parameters_of_tests_are_named(function, parameters, message):
    with pytest.raises(ValueError, match=message):
        function([0, 1], [0, 1], **parameters)


def test_permutation_test_needs_two_rows():
    with pytest.raises(ValueError, match="at least 2 rows"):
        permutation_test([0], [0])


@pytest.mark.parametrize(
    "measure",
    [purity, variation_of_information, pair_counts, permutation_test, bootstrap_interval],
)
@pytest.mark.parametrize(("classes", "clusters", "message"), BAD_LABELS)
def test_bad_labels_are_named(measure, classes, clusters, message):
    with pytest.raises(ValueError, match=message):
        measure(classes, clusters)


def test_every_listed_measure_scores_equal_clusterings_as_equal():
    others = {"pair_counts", "permutation_test", "bootstrap_interval", "dendrogram_purity"}
    names = set(metrics.__all__) - others
    perfect = dict.fromkeys(names, 1.0)
    perfect |= {"variation_of_information": 0.0, "mutual_info_score": np.log(2)}
    found = {name: getattr(metrics, name)([0, 0, 1, 1], [1, 1, 0, 0]) for name in names}
    assert found == pytest.approx(perfect)
