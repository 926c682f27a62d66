"""Every estimator keeps scikit-learn's contract; what it cannot keep is listed with the reason."""

from dataclasses import replace

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from countless._graph.null_reference import RANDOM_GRAPHS
from countless._registry import ESTIMATORS

pytestmark = pytest.mark.slow

EXPECTED_FAILURES = {
    "DPBiclustering": dict.fromkeys(
        ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
        "the check takes what has predict_proba and reads sparse rows for a classifier",
    ),
    "GraphDPMeans": {
        "check_clustering": "the check clusters rows of a table, and a graph is links between nodes"
    },
}


@pytest.fixture(autouse=True)
def few_random_graphs(monkeypatch):
    """Choose penalties of graphs beside few random ones: the contract does not ask how well."""
    few = replace(RANDOM_GRAPHS, n_graphs_of_few=8)
    monkeypatch.setattr("countless._graph.null_reference.RANDOM_GRAPHS", few)


@parametrize_with_checks(
    [each.make(**each.quick) for each in ESTIMATORS.values()],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_contract(estimator, check):
    check(estimator)
