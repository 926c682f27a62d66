"""Purity and variation of information: a worked example, and what a metric must satisfy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from countless import metrics
from countless.metrics import purity, rand_score, variation_of_information

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


@pytest.mark.parametrize("measure", [purity, variation_of_information])
@pytest.mark.parametrize(("classes", "clusters", "message"), BAD_LABELS)
def test_bad_labels_are_named(measure, classes, clusters, message):
    with pytest.raises(ValueError, match=message):
        measure(classes, clusters)


def test_every_listed_measure_scores_equal_clusterings_as_equal():
    names = set(metrics.__all__) - {"dendrogram_purity"}  # which takes a tree
    perfect = {name: 1.0 for name in names}
    perfect |= {"variation_of_information": 0.0, "mutual_info_score": np.log(2)}
    found = {name: getattr(metrics, name)([0, 0, 1, 1], [1, 1, 0, 0]) for name in names}
    assert found == pytest.approx(perfect)
