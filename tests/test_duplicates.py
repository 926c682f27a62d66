"""Near duplicates: planted copies, none, exact repeats, plain loops, threads and errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countless import near_duplicates


def planted(n_features, noise, seed=0, n_rows=500, n_copied=40):
    """Draw normal rows, and copies of some with noise; return them and the groups."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n_rows, n_features))
    copied = np.sort(random.choice(n_rows, n_copied, replace=False))
    again = copied[:5]  # copied twice
    source = np.concatenate([copied, again])
    copies = rows[source] + noise * random.normal(size=(len(source), n_features))
    groups = [[i, *(n_rows + np.flatnonzero(source == i)).tolist()] for i in copied.tolist()]
    return np.vstack([rows, copies]), groups


def plain_p_values(rows, n_neighbors=20):
    """Compute the p-values by loops."""
    n = len(rows)
    distance = np.array([[np.linalg.norm(a - b) for b in rows] for a in rows])
    np.fill_diagonal(distance, np.inf)
    order = np.argsort(distance, axis=1, kind="stable")[:, :n_neighbors]
    near = np.take_along_axis(distance, order, 1)
    found = []
    for i in range(n):
        pool = {int(k) for j in order[i] for k in order[j]} - {i}
        ratios = sorted(np.log(near[k, 1] / near[k, 0]) for k in pool)
        m = max(len(ratios) // 2, 1)
        total = sum(ratios[:m]) + (len(ratios) - m) * ratios[m - 1]
        largest = max(np.log(near[i, j + 1] / near[i, j]) for j in range(n_neighbors - 1))
        bound = sum((1 + j * largest / total) ** -m for j in range(1, n_neighbors))
        found.append(min(bound, 1.0))
    return found


@pytest.mark.parametrize("n_features", [2, 6])
def test_p_values_are_those_of_plain_loops(n_features):
    rows = np.random.default_rng(3).normal(size=(60, n_features))
    rows[7] = rows[4] + 1e-5
    assert near_duplicates(rows).p_values.tolist() == pytest.approx(plain_p_values(rows))


@pytest.mark.parametrize(("n_features", "noise"), [(2, 1e-5), (5, 1e-2), (20, 0.05)])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_planted_copies_are_found(n_features, noise, shift):
    rows, groups = planted(n_features, noise)
    found = near_duplicates(rows + shift)
    assert all(rows in [group.rows for group in found.groups] for rows in groups)
    for number, group in enumerate(found.groups):
        assert np.flatnonzero(found.labels == number).tolist() == group.rows
        assert found.keep[group.rows].tolist() == [True] + [False] * (len(group.rows) - 1)
        if group.rows in groups:
            assert 0 < group.distance < 10 * noise * np.sqrt(n_features)
    assert found.keep[found.labels == -1].all()


def test_false_discoveries_are_at_most_nominal_on_average():
    """The expected proportion of false discoveries, where a tenth of the rows are copied."""
    proportions = []
    for seed in range(12):
        rows, groups = planted(4, 1e-3, seed=seed, n_rows=400)
        true = np.isin(np.arange(len(rows)), np.concatenate(groups))
        found = near_duplicates(rows).labels >= 0
        assert found[true].mean() > 0.95
        proportions.append(np.mean(~true[found]))
    assert np.mean(proportions) <= 0.05


@pytest.mark.parametrize("kind", ["normal", "uniform", "blobs", "plane and ball"])
def test_rows_without_copies_have_few_discoveries(kind):
    """Without copies the false discovery rate is how often anything is found."""
    often = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        rows = random.uniform(size=(300, 3)) if kind == "uniform" else random.normal(size=(300, 8))
        if kind == "blobs":
            rows += 8 * random.normal(size=(5, 8))[random.integers(5, size=300)]
        elif kind == "plane and ball":
            rows[:150, 2:] = 0
            rows[150:] += 5
        often += len(near_duplicates(rows).groups) > 0
    assert often <= 3  # 1 is expected; 4 or more have a probability of 1.6 %


def test_exact_repeats_are_found_whatever_their_number():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    rows[20:60] = rows[3]
    found = near_duplicates(rows)
    assert [group.rows for group in found.groups] == [[3, *range(20, 60)]]
    assert found.groups[0].distance == found.groups[0].p_value == 0
    assert found.keep.sum() == 60


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 30),
    n_features=st.integers(1, 3),
    n_values=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_groups_partition_what_repeats(seed, n_rows, n_features, n_values):
    random = np.random.default_rng(seed)
    rows = random.integers(n_values, size=(n_rows, n_features)).astype(float)
    found = near_duplicates(rows)
    for i in range(n_rows):
        for j in range(i):
            if (rows[i] == rows[j]).all():
                assert found.labels[i] == found.labels[j] >= 0
                assert not found.keep[i]
    listed = sorted(i for group in found.groups for i in group.rows)
    assert listed == np.flatnonzero(found.labels >= 0).tolist()
    assert ((found.p_values >= 0) & (found.p_values <= 1)).all()
    order = random.permutation(n_rows)
    shuffled = near_duplicates(rows[order]).labels
    same = found.labels[order][:, None] == found.labels[order]
    assert ((shuffled[:, None] == shuffled) == same).all()


def test_the_same_for_any_number_of_threads():
    rows, _ = planted(20, 1e-3)
    one, two = (near_duplicates(rows, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.labels.tobytes() == two.labels.tobytes()
    assert one.p_values.tobytes() == two.p_values.tobytes()


def test_a_grid_has_no_near_duplicates():
    grid = np.stack(np.meshgrid(*[np.arange(8.0)] * 3), axis=-1).reshape(-1, 3)
    found = near_duplicates(grid)
    assert not found.groups
    assert np.isnan(found.dimension)


def test_scale_does_not_matter():
    rows, _ = planted(3, 1e-4)
    assert near_duplicates(1024.0 * rows).labels.tolist() == near_duplicates(rows).labels.tolist()


def test_cosine_compares_directions():
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, 6))
    rows[9] = 3 * rows[2] + 1e-9
    rows[[50, 51]] = 0
    found = near_duplicates(rows, metric="cosine")
    assert [group.rows for group in found.groups] == [[2, 9], [50, 51]]


def test_a_result_shows_itself():
    rows, groups = planted(5, 1e-6, n_copied=6)
    found = near_duplicates(rows)
    assert repr(found) == f"NearDuplicates({len(found.groups)} groups)"
    assert "rows repeat earlier ones" in found.summary()
    assert len(groups) <= len(found.groups)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "cityblock"}, "metric must be 'euclidean' or 'cosine'"),
        ({"level": 0.0}, "level must be a number above 0 and below 1"),
        ({"level": 1.0}, "level must be a number above 0 and below 1"),
        ({"level": True}, "level must be a number above 0 and below 1"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        near_duplicates(np.eye(4), **parameters)


def test_a_missing_value_is_named():
    with pytest.raises(ValueError, match="row 1, column 0"):
        near_duplicates(np.array([[0.0], [np.nan], [1.0]]))
