"""Edits of a clustering, by hand and against plain rules, through predictions and model files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from countless import (
    AutoClustering,
    DPMeans,
    DPMixture,
    LinkageClustering,
    apply_edits,
    load_model,
    save_model,
)
from countless._edits import Atoms, find_atoms, next_split, replay

X, TRUTH = make_blobs(400, centers=5, cluster_std=0.6, random_state=3)


def edits(*steps, **rest):
    return {"format": "countless edits", "version": 1, "edits": list(steps), **rest}


@pytest.fixture(scope="module")
def model():
    return DPMeans(random_state=0).fit(X)


@pytest.fixture(scope="module")
def long():
    """More rows than micro-clusters."""
    rows = make_blobs(4000, centers=6, cluster_std=0.5, random_state=1)[0]
    return rows, DPMeans(random_state=0).fit(rows)


def test_merge_rename_and_lock_are_those_of_the_labels(model):
    steps = [
        {"action": "merge", "clusters": [3, 1]},
        {"action": "rename", "cluster": 3, "name": "both"},
        {"action": "lock", "cluster": 0},
    ]
    edited = apply_edits(model, edits(*steps))
    expected = np.where(model.labels_ == 3, 1, model.labels_)
    assert len(np.unique(np.column_stack([edited.labels_, expected]), axis=0)) == 4
    assert edited.n_clusters_ == 4
    both = edited.labels_[np.flatnonzero(model.labels_ == 3)[0]]
    assert edited.cluster_names_[both] == "both"
    assert edited.locked_.tolist() == [True, False, False, False]
    np.testing.assert_array_equal(edited.predict(X), edited.labels_)


def test_a_split_divides_one_cluster_and_leaves_the_others(long):
    rows, model = long
    edited = apply_edits(model, edits({"action": "split", "cluster": 2}))
    assert edited.n_clusters_ == model.n_clusters_ + 1
    others = model.labels_ != 2
    pairs = np.column_stack([model.labels_, edited.labels_])
    assert len(np.unique(pairs[others], axis=0)) == model.n_clusters_ - 1
    sizes = np.unique(pairs[~others], axis=0, return_counts=True)[1]
    assert len(sizes) == 2
    assert sizes.min() >= sizes.sum() / 20
    np.testing.assert_array_equal(edited.predict(rows), edited.labels_)


@pytest.mark.parametrize("k", [1, 2, 3, 9, 70])
def test_choosing_a_number_gives_the_clusters_of_the_path(long, k):
    rows, model = long
    edited = apply_edits(model, edits({"action": "choose", "n_clusters": k}))
    np.testing.assert_array_equal(edited.labels_, model.path_.clusters_at(k)[1])
    np.testing.assert_array_equal(edited.predict(rows), edited.labels_)


def test_locked_clusters_stay_when_the_number_changes(long):
    rows, model = long
    steps = [{"action": "lock", "cluster": 1}, {"action": "choose", "n_clusters": 20}]
    edited = apply_edits(model, edits(*steps))
    locked = model.labels_ == 1
    (cluster,) = np.unique(edited.labels_[locked])
    assert edited.locked_[cluster]
    assert not (edited.labels_[~locked] == cluster).any()
    assert edited.n_clusters_ > 15
    np.testing.assert_array_equal(edited.predict(rows), edited.labels_)


def test_a_tree_is_cut_and_split_too():
    model = LinkageClustering().fit(X)
    choose = {"action": "choose", "n_clusters": 7}
    largest = int(np.bincount(apply_edits(model, edits(choose)).labels_).argmax())
    edited = apply_edits(model, edits(choose, {"action": "split", "cluster": largest}))
    assert edited.n_clusters_ == 8
    np.testing.assert_array_equal(edited.predict(X), edited.labels_)


def test_the_chosen_model_of_several_is_edited():
    model = AutoClustering(random_state=0).fit(X)
    edited = apply_edits(model, edits({"action": "merge", "clusters": [0, 1]}))
    assert edited.n_clusters_ == model.n_clusters_ - 1


def plain_split(atoms, inside):
    """Follow every merge with sets of atoms."""
    rows_of = [
        {a for a in np.flatnonzero(inside) if atoms.item[a] == item}
        for item in range(atoms.n_items)
    ]
    size = lambda part: sum(int(atoms.rows[a]) for a in part)  # noqa: E731
    total = size(np.flatnonzero(inside))
    found = {"considerable": None, "any": None}
    for a, b in atoms.children:
        small = min((rows_of[b], rows_of[a]), key=size)
        if small:
            found["any"] = small
            if size(small) * 20 >= total:
                found["considerable"] = small
        rows_of.append(rows_of[a] | rows_of[b])
    return found["considerable"] or found["any"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_next_split_is_the_topmost_considerable_merge(data):
    m = data.draw(st.integers(2, 12))
    alive, children = list(range(m)), []
    for step in range(m - 1):
        a, b = sorted(data.draw(st.permutations(alive))[:2])
        children.append((a, b))
        alive = [node for node in alive if node not in (a, b)] + [m + step]
    size = data.draw(st.lists(st.integers(1, 40), min_size=m, max_size=m))
    atoms = Atoms(np.zeros(m, int), np.arange(m), np.array(size), np.array(children), {})
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    expected = plain_split(atoms, inside)
    found = next_split(atoms, inside)
    assert (found is None) == (expected is None)
    if found is not None:
        assert set(np.flatnonzero(found)) == expected


def test_noise_is_left_alone():
    atoms, atom = find_atoms(np.array([-1, 0, 1, -1]))
    state = replay(atoms, [{"action": "merge", "clusters": [0, 1]}])
    assert state.label[atom].tolist() == [-1, 0, 0, -1]


@pytest.mark.parametrize("force_names", [True, False])
def test_the_edited_model_goes_through_a_file(long, tmp_path, force_names):
    rows, model = long
    steps = [
        {"action": "choose", "n_clusters": 4},
        {"action": "split", "cluster": 2},
        {"action": "rename", "cluster": 4, "name": "<b>é\u2028</b>"},
        {"action": "lock", "cluster": 4},
    ][: 4 if force_names else 2]
    edited = apply_edits(model, edits(*steps))
    save_model(tmp_path / "model.zip", edited)
    loaded = load_model(tmp_path / "model.zip").estimator
    assert repr(loaded) == repr(edited)
    assert loaded.cluster_names_ == edited.cluster_names_
    assert loaded.locked_.tolist() == edited.locked_.tolist()
    np.testing.assert_array_equal(loaded.predict(rows), edited.labels_)
    save_model(tmp_path / "again.zip", loaded)
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "model.zip").read_bytes()


def test_a_model_from_a_file_needs_the_rows_to_be_divided(long, tmp_path):
    rows, model = long
    save_model(tmp_path / "model.zip", model)
    loaded = load_model(tmp_path / "model.zip").estimator
    merged = apply_edits(loaded, edits({"action": "merge", "clusters": [0, 1]}))
    expected = apply_edits(model, edits({"action": "merge", "clusters": [0, 1]}))
    np.testing.assert_array_equal(merged.predict(rows), expected.predict(rows))
    split = edits({"action": "split", "cluster": 0})
    with pytest.raises(ValueError, match="give the rows of the fit as X"):
        apply_edits(loaded, split)
    divided = apply_edits(loaded, split, rows)
    np.testing.assert_array_equal(divided.labels_, apply_edits(model, split).labels_)


def test_a_mixture_is_merged_but_not_split():
    model = DPMixture(inference="map", random_state=0).fit(X)
    merged = apply_edits(model, edits({"action": "merge", "clusters": [0, 1]}))
    assert merged.n_clusters_ == model.n_clusters_ - 1
    with pytest.raises(ValueError, match="DPMixture has no path"):
        apply_edits(model, edits({"action": "split", "cluster": 0}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "these are no edits"),
        ({"format": "countless edits", "version": 2, "edits": []}, "version 2"),
        (edits({"action": "merge", "clusters": [0]}), r"edit 1 \(merge\): clusters must be two"),
        (edits({"action": "merge", "clusters": [0, 99]}), r"edit 1 \(merge\): there is no cl.* 99"),
        (edits({"action": "rename", "cluster": 0, "name": " "}), "name must be text"),
        (edits({"action": "rename", "cluster": 0}), "must have cluster, name"),
        (edits({"action": "split", "cluster": True}), "cluster must be an integer"),
        (edits({"action": "choose", "n_clusters": 0}), "n_clusters must be from 1 to"),
        (
            edits({"action": "lock", "cluster": 0}, {"action": "split", "cluster": 0}),
            r"edit 2 \(split\): cluster 0 is locked",
        ),
        (edits(clusters=[{"cluster": 0, "rows": 400}]), "made on another clustering"),
    ],
)
def test_wrong_edits_are_refused_by_number(model, wrong, message):
    with pytest.raises(ValueError, match=message):
        apply_edits(model, wrong)


def test_edits_are_not_applied_twice(model):
    edited = apply_edits(model, edits())
    with pytest.raises(ValueError, match="edited already"):
        apply_edits(edited, edits())


def test_edits_are_read_from_a_file(model, tmp_path):
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(edits({"action": "split", "cluster": 0})), encoding="utf-8")
    assert apply_edits(model, path).n_clusters_ == model.n_clusters_ + 1
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ValueError, match="is not JSON"):
        apply_edits(model, path)
