"""Rows taken in blocks go where they go one by one, and lagging proposals can be judged again."""

import numpy as np
import pytest

from countless._mcmc.crosscat.column_models import ColumnModels
from countless._mcmc.crosscat.views import propose_rows, sweep_rows
from countless._mcmc.gibbs import Partition, Target, collapsed_sweep
from countless.models import Columns, FixedGaussian
from countless.priors import DirichletProcess

PRIOR = DirichletProcess(1.0)


def mixed(n_rows, apart):
    """Return cells of all kinds with gaps, large counts and a lonely row; and their clusters."""
    random = np.random.default_rng(0)
    labels = random.integers(3, size=n_rows).astype(np.int32)
    X = np.column_stack(
        [
            apart * labels + random.normal(size=n_rows),
            random.integers(4, size=n_rows),
            random.poisson(1 + labels),
            random.poisson(60.0, size=n_rows),
            apart * labels + random.normal(size=n_rows),
            random.random(n_rows) < 0.5,
        ]
    ).astype(float)
    X[random.random(X.shape) < 0.1] = np.nan
    X[1] = np.nan
    labels[0], X[0, 0] = 3, 1e6
    kinds = ["number", "category", "count", "count", FixedGaussian(), "binary"]
    model = Columns(kinds).bind(X)
    return ColumnModels(model, model.rows(X)), labels


@pytest.mark.parametrize("apart", [0.3, 4.0], ids=["rows that move", "rows that stay"])
def test_blocks_draw_what_rows_draw_one_by_one(apart):
    cells, labels = mixed(300, apart)
    labels[5:200:7] = -1  # some have no cluster yet
    part = cells.subset(np.arange(6))
    rows, seated = part.rows(), labels >= 0
    statistics = part.statistics(rows[seated], labels[seated])
    state = Partition(labels, np.bincount(labels[seated]), statistics)
    target = (part, rows, PRIOR.tables(len(rows)))
    expected = collapsed_sweep(state, Target(*target, np.random.default_rng(1)))
    drawn, _ = sweep_rows(state, *target, np.random.default_rng(1))
    n_moved = (labels != expected.labels).sum()
    assert n_moved > 150 if apart < 1 else n_moved < 100, n_moved
    np.testing.assert_array_equal(drawn.labels, expected.labels)
    np.testing.assert_array_equal(drawn.sizes, expected.sizes)
    np.testing.assert_allclose(drawn.statistics, expected.statistics, rtol=1e-6, atol=1e-6)


def test_a_proposal_that_lags_is_judged_as_it_was_drawn():
    cells, _ = mixed(400, 1.5)
    columns = np.array([0, 2, 3, 5])
    common = (cells, columns, PRIOR, PRIOR.tables(400))
    drawn = propose_rows(*common, np.random.default_rng(2))
    again = propose_rows(*common, np.random.default_rng(2), given=drawn.labels)
    np.testing.assert_array_equal(again.labels, drawn.labels)
    assert again.log_proposal == pytest.approx(drawn.log_proposal, rel=1e-12)
    # Statistics that were counted block by block are those of the partition.
    part = cells.subset(columns)
    statistics = part.statistics(part.rows(), drawn.labels)
    joint = PRIOR.log_prob(drawn.labels) + part.log_marginal(statistics).sum()
    assert drawn.log_weight == pytest.approx(joint - drawn.log_proposal)
