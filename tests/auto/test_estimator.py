"""`AutoClustering`: the family that the data supports, and what it says about its choice."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from countless import AutoClustering, DPMeans
from countless._auto.merged import MergedMixture
from countless.serialize.model_file import load_model, save_model


class Failing(ClusterMixin, BaseEstimator):
    def fit(self, X, y=None):
        raise ArithmeticError("this always\nfails")


@pytest.fixture(scope="module")
def moons():
    return make_moons(400, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def fitted(moons):
    return AutoClustering(random_state=0).fit(moons[0])


def test_connected_clusters(moons, fitted):
    assert adjusted_rand_score(moons[1], fitted.labels_) == 1.0
    assert fitted.n_clusters_ == 2
    assert fitted.best_method_ in ("connected", "merged")
    assert adjusted_rand_score(fitted.predict(moons[0]), fitted.labels_) > 0.98


def test_rings():
    X, y = make_circles(600, factor=0.4, noise=0.04, random_state=0)
    assert adjusted_rand_score(y, AutoClustering().fit(X).labels_) == 1.0


def test_chained_clusters():
    """Thin spirals whose ends are as far apart as their turns: neighbours do not tell them."""
    angle = np.sqrt(np.linspace(0.1, 1.0, 100)) * 2.2 * np.pi
    arm = np.c_[angle * np.cos(angle), angle * np.sin(angle)]
    turns = 2 * np.pi * np.arange(3) / 3
    parts = [arm @ np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) for t in turns]
    model = AutoClustering().fit(np.vstack(parts))
    assert model.best_method_ == "chained"
    assert adjusted_rand_score(np.repeat([0, 1, 2], 100), model.labels_) == 1.0
    assert model.reason_.startswith("Chained clusters")
    assert adjusted_rand_score(model.predict(np.vstack(parts)), model.labels_) == 1.0


def test_blobs_of_any_shape():
    X, y = make_blobs(500, centers=5, cluster_std=0.6, random_state=2)
    X = X @ np.array([[1.0, 0.6], [0.0, 0.5]])
    model = AutoClustering(random_state=0).fit(X)
    assert model.n_clusters_ == 5
    assert adjusted_rand_score(y, model.labels_) > 0.95


@pytest.mark.parametrize("kind", ["normal", "uniform", "exponential"])
def test_one_cluster(kind):
    X = getattr(np.random.default_rng(3), kind)(size=(400, 2))
    model = AutoClustering(random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert model.best_method_ == "one cluster"
    assert not model.predict(X).any()
    assert model.reason_.startswith("One cluster")
    assert model.candidates_[0].evidence == 1.0


def test_the_seed_does_not_decide(moons):
    labels = [AutoClustering(random_state=seed).fit(moons[0]).labels_ for seed in (0, 1, None)]
    assert all((one == labels[0]).all() for one in labels)


def test_candidates_are_printed(fitted):
    methods = [one.method for one in fitted.candidates_]
    assert methods == ["one cluster", "round", "elliptical", "merged", "connected", "chained"]
    best = max(fitted.candidates_, key=lambda one: one.evidence)
    assert best.method == fitted.best_method_
    assert best.agreement == pytest.approx(1.0)
    assert sum(one.evidence for one in fitted.candidates_) == pytest.approx(1.0)
    assert fitted.reason_.startswith("Connected clusters")
    assert "would cut them into" in fitted.reason_
    assert 0 <= fitted.confidence_ <= 1
    assert set(fitted.candidate_labels_) == set(methods[1:])
    assert len(fitted.compared_rows_) == 400


def test_a_candidate_that_fails_is_named(moons):
    model = AutoClustering({"round": DPMeans(), "mine": Failing()}).fit(moons[0])
    failed = model.candidates_[-1]
    assert failed.method == "mine"
    assert failed.n_clusters is None
    assert failed.note == "failed: this always fails"


def test_nothing_but_failures(moons):
    with pytest.raises(ValueError, match="no candidate could be fitted: mine failed: this always"):
        AutoClustering({"mine": Failing()}).fit(moons[0])


def test_estimators_of_the_user(moons):
    model = AutoClustering({"k-means": KMeans(2, n_init=1, random_state=0)})
    model.fit(make_blobs(200, centers=[[0, 0], [9, 9]], random_state=0)[0])
    assert model.best_method_ == "k-means"
    assert model.n_clusters_ == 2


def test_long_tables_are_sampled(monkeypatch):
    X, y = make_moons(6_000, noise=0.05, random_state=0)
    model = AutoClustering(random_state=0).fit(X)
    assert len(model.labels_) == 6_000
    assert len(model.compared_rows_) == 5_000
    assert adjusted_rand_score(y, model.labels_) > 0.99
    notes = {one.method: one.note for one in model.candidates_}
    assert notes["connected"].startswith("fitted to a sample of 5000 rows")


def test_time_budget(moons):
    model = AutoClustering(time_budget=1e-9).fit(moons[0])
    notes = [one.note for one in model.candidates_[1:]]
    # No candidate would be no answer, so the first is fitted whatever it takes.
    assert notes[0] == ""
    assert all(note.startswith("left out") for note in notes[1:])


def test_mixed_columns():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 100)
    frame = pd.DataFrame(
        {
            "length": 4.0 * kind + rng.normal(size=300),
            "color": np.array(["red", "green", "blue"])[kind],
            "count": rng.poisson(3 + 10 * kind).astype(float),
        }
    )
    frame.loc[5, "length"] = np.nan
    model = AutoClustering(random_state=0).fit(frame)
    assert [one.method for one in model.candidates_] == ["one cluster", "columns", "dissimilarity"]
    assert adjusted_rand_score(kind, model.labels_) > 0.9
    assert adjusted_rand_score(model.predict(frame), model.labels_) > 0.9


def test_graphs():
    blocks = np.kron(np.eye(3), np.ones((12, 12))) - np.eye(36)
    blocks[0, 12] = blocks[12, 0] = blocks[12, 24] = blocks[24, 12] = 1
    model = AutoClustering(random_state=0).fit(sp.csr_array(blocks))
    assert model.n_clusters_ == 3
    assert model.best_method_ == "graph"
    assert not hasattr(model, "predict")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"candidates": ["square"]}, "candidates must be among 'round', .* got 'square'"),
        ({"candidates": "round"}, "candidates must be None, names or a mapping; got 'round'"),
        ({"candidates": {}}, "candidates must map names to estimators"),
        ({"time_budget": 0}, "time_budget must be None or a number above 0; got 0"),
        ({"n_jobs": 0}, "n_jobs must be None"),
    ],
)
def test_refusals(moons, parameters, message):
    with pytest.raises(ValueError, match=message):
        AutoClustering(**parameters).fit(moons[0])


def test_the_cell_that_is_no_number_is_named(moons):
    X = moons[0].copy()
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7, column 1"):
        AutoClustering().fit(X)


def test_saved_as_what_was_chosen(tmp_path, moons, fitted):
    save_model(tmp_path / "model.zip", fitted)
    loaded = load_model(tmp_path / "model.zip").estimator
    assert type(loaded) is type(fitted.best_estimator_)
    assert (loaded.predict(moons[0]) == fitted.predict(moons[0])).all()


@pytest.mark.parametrize("d", [2, 20])
def test_merged_mixtures_are_saved(tmp_path, d):
    X, _ = make_blobs(300, centers=3, n_features=d, cluster_std=0.4, random_state=0)
    model = MergedMixture().fit(X)
    assert model.n_clusters_ == 3
    assert model.components_.shape == (min(d, 12), d)
    save_model(tmp_path / "model.zip", model)
    loaded = load_model(tmp_path / "model.zip").estimator
    assert (loaded.predict(X) == model.labels_).all()


def test_merged_mixture_joins_the_pieces_of_a_curve(moons):
    model = MergedMixture().fit(moons[0])
    assert model.n_clusters_ == 2 < model.mixture_.n_clusters_
    assert MergedMixture(merge=False).fit(moons[0]).n_clusters_ == model.mixture_.n_clusters_
    with pytest.raises(ValueError, match="merge must be True or False; got 3"):
        MergedMixture(merge=3).fit(moons[0])


def test_a_background_does_not_merge_what_it_surrounds():
    rng = np.random.default_rng(0)
    X, y = make_blobs(600, centers=[[0, 0], [3, 3], [0, 5]], cluster_std=0.4, random_state=0)
    noise = rng.uniform(-3, 8, size=(200, 2))
    model = MergedMixture().fit(np.vstack([X, noise]))
    assert adjusted_rand_score(y, model.labels_[:600]) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_mixed_columns_that_do_not_depend_on_each_other_are_one_cluster(seed):
    pd = pytest.importorskip("pandas")
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "length": random.normal(size=300),
            "weight": random.exponential(size=300),
            "kind": random.choice(list("xyz"), 300),
            "sex": random.choice(["f", "m"], 300),
        }
    )
    frame.loc[3, "length"] = np.nan
    model = AutoClustering().fit(frame)
    assert model.n_clusters_ == 1
    assert model.predict(frame.iloc[:4]).tolist() == [0, 0, 0, 0]
