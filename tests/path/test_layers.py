"""Layers: nested and coarse to fine, planted hierarchies, one cluster, files and the command."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from countless import (
    AffinityPropagation,
    AutoClustering,
    DivisiveClustering,
    DPMeans,
    GraphDPMeans,
    KernelDPMeans,
    LinkageClustering,
    SpectralDPMeans,
    load_model,
    penalty_path,
    save_model,
)
from countless._path.layers import nest, unpack_layers
from countless.cli import main


def hierarchy(n_features=2, n_rows=30, seed=0, scales=(200.0, 35.0, 8.0)):
    """Draw rows of three clusters of three clusters of three, and their labels, coarse to fine."""
    random = np.random.default_rng(seed)
    centers = np.zeros((1, n_features))
    triangle = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])
    for scale in scales:
        frame = np.linalg.qr(random.normal(size=(n_features, n_features)))[0][:2]
        centers = (centers[:, None] + scale * triangle @ frame).reshape(-1, n_features)
    label = np.repeat(np.arange(len(centers)), n_rows)
    rows = centers[label] + random.normal(size=(len(label), n_features))
    order = random.permutation(len(label))
    levels = range(len(scales) - 1, -1, -1)
    return rows[order], [label[order] // 3**level for level in levels]


X, TRUTH = hierarchy()
TWO, TWO_TRUTH = hierarchy(scales=(100.0, 12.0), n_rows=25)


def check_nested(labels, tree):
    """Assert by a plain loop that each cluster lies in one of the next coarser layer."""
    assert tree.n_clusters == sorted(set(tree.n_clusters))
    coarser = np.zeros(labels.shape[1], dtype=int)
    for own, parent, size in zip(labels, tree.parents, tree.sizes, strict=True):
        for cluster in range(own.max() + 1):
            inside = own == cluster
            assert size[cluster] == inside.sum() > 0
            assert set(coarser[inside].tolist()) == {parent[cluster]}
        coarser = own


@given(
    seed=st.integers(0, 2**32 - 1),
    counts=st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True),
    noise=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_any_clusterings_become_nested(seed, counts, noise):
    random = np.random.default_rng(seed)
    given = {k: np.append(np.arange(k), random.integers(k, size=32 - k)) for k in counts}
    if noise:
        given = {k: np.append(labels, [-1, -1]) for k, labels in given.items()}
    keep = counts[0]
    found = nest(given, keep)
    assert keep in found
    assert list(found) == sorted(found)
    finer = None
    for k, (labels, moved) in reversed(found.items()):
        assert labels.max() + 1 == k
        assert ((labels == -1) == (given[k] == -1)).all()
        first = [int(np.argmax(labels == c)) for c in range(k)]
        assert first == sorted(first)
        if finer is None:
            assert not len(moved)
        else:
            joined: dict[int, set[int]] = {}
            for cluster in range(finer.max() + 1):
                (parent,) = set(labels[finer == cluster].tolist())
                # Its rows are those of the coarse cluster that has most of them.
                counted = np.bincount(given[k][finer == cluster], minlength=k)
                joined.setdefault(parent, set()).add(int(counted.argmax()))
            assert all(len(names) == 1 for names in joined.values())
        finer = labels


def test_a_coarse_cluster_without_most_rows_of_a_finer_one_is_no_layer():
    fine = np.array([0, 0, 0, 1, 1, 1])
    coarse = {2: fine, 3: np.array([0, 0, 1, 1, 2, 2])}
    assert list(nest(coarse, keep=3)) == [2, 3]
    odd = {4: np.array([0, 0, 0, 1, 1, 1, 2, 3]), 3: np.array([0, 0, 1, 0, 0, 1, 1, 2])}
    assert list(nest(odd, keep=3)) == [3, 4]
    odd[3] = np.array([0, 0, 1, 0, 0, 1, 0, 2])  # no finer cluster has most rows in 1
    assert list(nest(odd, keep=4)) == [4]
    assert list(nest(odd, keep=3)) == [3]


@pytest.mark.parametrize("n_features", [2, 5, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_three_planted_levels_are_recovered(n_features, seed):
    rows, truth = hierarchy(n_features, seed=seed)
    model = DPMeans().fit(rows)
    assert model.layer_tree_.n_clusters == [3, 9, 27]
    check_nested(model.layers_, model.layer_tree_)
    for own, true in zip(model.layers_, truth, strict=True):
        assert adjusted_rand_score(true, own) == 1
    chosen = model.layer_tree_.n_clusters.index(model.n_clusters_)
    assert model.layers_[chosen].tolist() == model.labels_.tolist()


@pytest.mark.parametrize(("kind", "n_features"), [("normal", 2), ("uniform", 10)])
def test_one_cluster_gives_one_layer(kind, n_features):
    rows = getattr(np.random.default_rng(0), kind)(size=(400, n_features))
    model = DPMeans().fit(rows)
    assert model.layers_.tolist() == [[0] * 400]
    assert model.layer_tree_.sizes[0].tolist() == [400]


def test_separate_clusters_without_groups_have_one_layer():
    """Centers at the corners of a simplex are equally far apart: no grouping, no parts."""
    random = np.random.default_rng(0)
    rows = np.repeat(10 * np.eye(8), 40, axis=0) + random.normal(size=(320, 8))
    assert DPMeans().fit(rows).layer_tree_.n_clusters == [8]


@given(seed=st.integers(0, 2**32 - 1), n_clusters=st.integers(1, 12))
@settings(max_examples=8, deadline=None)
def test_layers_of_any_rows_are_nested(seed, n_clusters):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(n_clusters, 2)) * 10.0 ** random.uniform(0, 2, (n_clusters, 1))
    rows = centers[random.integers(n_clusters, size=150)] + random.normal(size=(150, 2))
    path = penalty_path(rows)
    layers = path.layers()
    check_nested(layers.labels, layers.tree)
    assert path.n_clusters in layers.tree.n_clusters
    for own, moved, layer in zip(layers.labels, layers.moved, layers.tree.layers, strict=True):
        assert path.n_clusters_at(layer.penalty) == layer.n_clusters
        assert len(moved) == layer.n_moved
        stays = np.setdiff1d(np.arange(150), moved)
        on_path = path.labels_at(layer.penalty)
        assert adjusted_rand_score(on_path[stays], own[stays]) == 1


def graph_of(rows):
    links = kneighbors_graph(rows, 10)
    return links.maximum(links.T)


@pytest.mark.parametrize(
    "estimator",
    [
        KernelDPMeans(),
        DivisiveClustering("bisecting"),
        DivisiveClustering("diana"),
        DivisiveClustering("mst"),
        LinkageClustering(),
        AffinityPropagation(preference="auto"),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{getattr(estimator, 'method', '')}",
)
def test_other_paths_have_the_same_layers(estimator, tmp_path):
    model = estimator.fit(TWO)
    assert model.layer_tree_.n_clusters == [3, 9]
    check_nested(model.layers_, model.layer_tree_)
    for own, true in zip(model.layers_, TWO_TRUTH, strict=True):
        assert adjusted_rand_score(true, own) == 1
    save_model(tmp_path / "model.zip", model)
    stored = load_model(tmp_path / "model.zip").estimator.layer_tree_
    assert stored.layers == model.layer_tree_.layers
    assert stored.lines() == model.layer_tree_.lines()


def test_layers_of_graphs_and_spectra():
    random = np.random.default_rng(0)
    rows = np.repeat([[0, 0], [7, 0], [30, 0], [37, 0]], 60, axis=0) + random.normal(size=(240, 2))
    for model in (SpectralDPMeans().fit(rows), GraphDPMeans().fit(graph_of(rows))):
        check_nested(model.layers_, model.layer_tree_)
        assert model.n_clusters_ in model.layer_tree_.n_clusters
        own = model.layers_[model.layer_tree_.n_clusters.index(model.n_clusters_)]
        assert adjusted_rand_score(own, model.labels_) == 1


def test_the_spectrum_of_two_levels_has_both():
    """Probabilities of links within blocks of blocks: two eigengaps."""
    random = np.random.default_rng(0)
    block = np.repeat(np.arange(8), 40)
    far = np.where(block[:, None] // 4 == block // 4, 0.05, 0.0005)
    density = np.where(block[:, None] == block, 0.6, far)
    upper = np.triu(random.random(density.shape) < density, 1)
    affinity = (upper + upper.T).astype(float)
    model = SpectralDPMeans(kernel="precomputed").fit(affinity)
    assert model.layer_tree_.n_clusters == [2, 8]
    assert adjusted_rand_score(model.layers_[0], block // 4) == 1
    assert adjusted_rand_score(model.layers_[1], block) == 1
    graph = GraphDPMeans().fit(affinity)
    assert graph.layer_tree_.n_clusters[-1] == 8
    check_nested(graph.layers_, graph.layer_tree_)


def test_noise_is_noise_in_all_layers():
    rows = np.vstack([TWO, [[1e3, 1e3], [-1e3, 500.0]]])
    model = DPMeans(background=0.01).fit(rows)
    assert model.labels_[-2:].tolist() == [-1, -1]
    assert model.layer_tree_.n_clusters == [3, 9]
    assert (model.layers_[:, -2:] == -1).all()
    assert (model.layers_[:, :-2] >= 0).all()
    check_nested(model.layers_, model.layer_tree_)


def test_the_users_number_is_a_layer():
    model = DPMeans(n_clusters=4).fit(TWO)
    assert model.layer_tree_.n_clusters == [3, 4, 9]
    check_nested(model.layers_, model.layer_tree_)


def test_a_chosen_estimator_has_its_layers():
    model = AutoClustering(candidates=["round"]).fit(TWO)
    assert model.layer_tree_.n_clusters == [3, 9]
    other = AutoClustering(candidates={"k-means": KMeans(9, random_state=0)}).fit(TWO)
    assert not hasattr(other, "layers_")


def test_no_path_no_layers(tmp_path):
    model = DPMeans(50.0).fit(TWO)
    assert not hasattr(model, "layers_")
    save_model(tmp_path / "model.zip", model)
    assert not hasattr(load_model(tmp_path / "model.zip").estimator, "layer_tree_")


def test_a_stream_has_no_layers():
    model = DPMeans().fit(TWO)
    assert model.layers_.shape == (2, len(TWO))
    model.partial_fit(TWO[:100])
    with pytest.raises(AttributeError, match="a stream has none"):
        model.layers_  # noqa: B018
    assert model.fit(TWO).layers_.shape == (2, len(TWO))


def test_the_same_for_threads_and_files(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    expected = DPMeans(n_jobs=1).fit(X)
    for table in (X, path):
        model = DPMeans(n_jobs=2, random_state=7).fit(table)
        assert model.layers_.tobytes() == expected.layers_.tobytes()
        assert model.layer_tree_.layers == expected.layer_tree_.layers


def test_a_fit_forgets_the_layers_of_a_file(tmp_path):
    save_model(tmp_path / "model.zip", DPMeans().fit(TWO))
    model = load_model(tmp_path / "model.zip").estimator
    assert model.layer_tree_.n_clusters == [3, 9]
    model.set_params(penalty=50.0).fit(TWO)
    assert not hasattr(model, "layer_tree_")


@pytest.mark.parametrize(
    "packed",
    [
        [1],
        [[0.0, 0.0, 0, [0]]],
        [["a", 0.0, 0, [0], [1]]],
        [[0.0, 0.0, -1, [0], [1]]],
        [[0.0, 0.0, 0, [1], [1]]],
        [[0.0, 0.0, 0, 0, 1]],
        [[0.0, 0.0, 0, [0], [1, 2]]],
        [[0.0, 0.0, 0, [], []]],
        [[0.0, 0.0, 0, [0, 0], [1, 2]], [0.0, 0.0, 0, [0, 0, 0], [1, 1, 1]]],
    ],
)
def test_lists_that_are_no_layers_are_refused(packed):
    with pytest.raises(ValueError, match="its layers"):
        unpack_layers(packed)


def test_the_command_prints_and_writes_layers(tmp_path):
    table = tmp_path / "rows.csv"
    np.savetxt(table, TWO, delimiter=",", header="a,b", comments="")
    out = tmp_path / "out"
    run = CliRunner().invoke(main, ["fit", str(table), "--layers", "--out", str(out)])
    assert run.exit_code == 0
    assert "Layers of 3 > 9 clusters, coarse to fine:" in run.stdout
    tree = DPMeans().fit(TWO).layer_tree_
    assert "".join(f"  {line}\n" for line in tree.lines()) in run.stdout
    for name in ("table.csv", "labels.csv"):
        lines = list(csv.DictReader((out / name).read_text(encoding="utf-8").splitlines()))
        for column, true in zip(("layer_1", "layer_2"), TWO_TRUTH, strict=True):
            assert adjusted_rand_score([line[column] for line in lines], true) == 1
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))["result"]["layers"]
    assert [layer["n_clusters"] for layer in record["layers"]] == [3, 9]
    assert record["layers"][1]["parents"] == tree.parents[1].tolist()
    assert load_model(out / "model.zip").estimator.layer_tree_.n_clusters == [3, 9]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--penalty", "4"], "--penalty cannot be combined with --layers"),
        (["--stream"], "--layers cannot be combined with --stream"),
        (["--method", "bhc"], "--layers works with"),
        (["--set", "penalty=4"], "--layers: dp-means has no path here"),
    ],
)
def test_layers_that_cannot_be_had_are_an_error(options, message, tmp_path):
    table = tmp_path / "rows.csv"
    np.savetxt(table, TWO, delimiter=",", header="a,b", comments="")
    command = ["fit", str(table), "--layers", "--out", str(tmp_path / "out"), *options]
    run = CliRunner().invoke(main, command)
    assert run.exit_code == 2
    assert message in " ".join(run.stderr.split())
    assert not (tmp_path / "out").exists()
