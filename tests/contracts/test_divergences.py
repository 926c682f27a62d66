"""What every divergence must be, and the places that name it.

A new divergence is a class in `countless/divergences.py`, listed in its `DIVERGENCES`; a name in
the docstring of `DPMeans`; and a line in the table of `docs/dp-means.md`.
"""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from countless import DPMeans, penalty_path
from countless._path.ward import ward_tree
from countless.divergences import DIVERGENCES

GUIDE = Path(__file__).parents[2] / "docs" / "dp-means.md"


@pytest.fixture(params=list(DIVERGENCES))
def divergence(request):
    return DIVERGENCES[request.param]


def rows_inside(divergence, n_rows=40, n_features=3, seed=0):
    """Rows in the domain of a divergence: of any sign, positive, or between 0 and 1."""
    random = np.random.default_rng(seed)
    shape = (n_rows, n_features)
    drawn = [random.normal(size=shape), random.gamma(2.0, size=shape), random.random(shape)]
    inside = [X for X in drawn if not divergence.outside_domain(X).any()]
    assert inside, f"rows_inside draws no rows of the domain of {divergence.name!r}: add some"
    return divergence.prepare(inside[0])


def to_sums(X, labels, k):
    weight = np.bincount(labels, minlength=k).astype(float)
    return weight, np.stack([X[labels == c].sum(axis=0) for c in range(k)])


def costs_of(divergence, X, center):
    """The divergences from one center; not the distances that `transform` returns."""
    slope, offset = divergence.slope_offset(center[None])
    return divergence.row_cost(X) + offset - X @ slope[0]


def test_the_docstring_and_the_guide_name_it(divergence):
    assert f"'{divergence.name}'" in DPMeans.__doc__, "name it in the docstring of DPMeans"
    assert f"`'{divergence.name}'`" in GUIDE.read_text(encoding="utf-8"), f"name it in {GUIDE}"


def test_it_is_zero_at_the_row_and_positive_elsewhere(divergence):
    X = rows_inside(divergence)
    own = np.array([costs_of(divergence, X[[i]], X[i])[0] for i in range(len(X))])
    np.testing.assert_allclose(own, 0.0, atol=1e-9)
    assert (costs_of(divergence, X[1:], X[0]) > 1e-6).all()


def test_means_are_optimal_and_energies_are_their_cost(divergence):
    X = rows_inside(divergence, n_rows=12)
    weight, total = to_sums(X, np.zeros(12, dtype=int), 1)
    mean = divergence.means(weight, total)
    cost = costs_of(divergence, X, mean[0]).sum()
    expected = divergence.row_cost(X).sum() + divergence.energy(weight, total)[0]
    assert cost == pytest.approx(expected)

    def cost_of(center):  # a directional center stays on the sphere
        center = divergence.prepare(center[None])[0]
        return costs_of(divergence, X, center).sum()

    best = minimize(cost_of, X[0], method="Nelder-Mead", options={"maxiter": 4000}).fun
    assert best == pytest.approx(cost, rel=1e-4)


def test_merge_costs_are_differences_of_energies(divergence):
    X = rows_inside(divergence, n_rows=60)
    weight, total = to_sums(X, np.repeat(np.arange(12), 5), 12)
    tree = ward_tree(weight, total, divergence)
    weights, totals = list(weight), list(total)
    for (a, b), cost in zip(tree.children, tree.cost, strict=True):
        weights.append(weights[a] + weights[b])
        totals.append(totals[a] + totals[b])
        parts = [divergence.energy(np.array([weights[c]]), totals[c][None])[0] for c in (a, b, -1)]
        assert cost == pytest.approx(parts[2] - parts[0] - parts[1], abs=1e-9)
    if divergence.has_ward_costs:
        means = total / weight[:, None]
        ward = costs_of(divergence, means[1:], means[0]) * 5 * 5 / (5 + 5)
        np.testing.assert_allclose(divergence.merge_costs(weight, total).matrix[0, 1:], ward)


def test_a_metric_is_a_squared_euclidean_distance_of_prepared_rows(divergence):
    X = rows_inside(divergence)
    squares = np.square(X[1:] - X[0]).sum(axis=1) / divergence.scale
    is_metric = np.allclose(costs_of(divergence, X[1:], X[0]), squares)
    assert is_metric == divergence.is_metric


def test_declared_invariances_hold(divergence):
    X = rows_inside(divergence)
    before, after = costs_of(divergence, X[1:], X[0]), costs_of(divergence, X[1:] + 1, X[0] + 1)
    # Shifted rows of unit length are none, and some shifted rows are outside the domain.
    with np.errstate(invalid="ignore"):
        invariant = not divergence.is_directional and np.allclose(before, after)
    assert invariant == divergence.is_shift_invariant
    lengths = np.linalg.norm(divergence.prepare(X + 0.1), axis=1)
    assert np.allclose(lengths, 1) == divergence.is_directional


def test_margins_are_distances_from_the_edge_of_the_domain(divergence):
    if divergence.is_metric:
        pytest.skip("the curvature of a metric is the same everywhere")
    center = rows_inside(divergence)[0]
    margin = divergence.margin(center)
    assert (margin > 0).all()
    assert not divergence.outside_domain(np.append(center - margin / 2, center + margin / 2)).any()
    beyond = np.append(center - 1.01 * margin, center + 1.01 * margin)
    assert divergence.outside_domain(beyond).any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_cell_outside_the_domain_is_named(divergence, form):
    bad = [value for value in (-1.0, 2.0) if divergence.outside_domain(np.array([value]))[0]]
    if not bad:
        pytest.skip("its domain has no bounds for single cells")
    X = rows_inside(divergence)
    X[7, 2] = bad[0]
    with pytest.raises(ValueError, match=f"'{divergence.name}' needs .*; row 7, column 2 is"):
        DPMeans(1.0, divergence=divergence.name).fit(form(X))


def test_its_path_has_a_null_reference(divergence):
    path = penalty_path(rows_inside(divergence, n_rows=80), divergence=divergence.name)
    assert path.n_clusters == 1
