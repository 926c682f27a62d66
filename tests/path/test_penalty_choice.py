"""Which k is chosen: one where there is no structure, the true one where clusters are plain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from countless import DPMeans
from countless._path.null_reference import principal_axes
from countless._path.penalty import penalty_path
from countless.divergences import get_divergence

NOISE = {
    "bell": lambda generator, shape: generator.standard_normal(shape),
    "box": lambda generator, shape: generator.uniform(-1, 1, shape),
}
STRETCH = {
    "round": lambda d: np.ones(d),
    "tapering": lambda d: np.geomspace(1, 0.1, d),
    "needle": lambda d: np.where(np.arange(d) == 0, 1.0, 0.1),
}


def noise_ks(kind, n, d, stretch, n_draws):
    """Return the k chosen on each of several clouds without structure."""
    generator = np.random.default_rng([n, d])
    clouds = [NOISE[kind](generator, (n, d)) * STRETCH[stretch](d) for _ in range(n_draws)]
    return [penalty_path(cloud, random_state=seed).n_clusters for seed, cloud in enumerate(clouds)]


def separated_blobs(k, d, seed, n_each=30):
    """Return blobs whose centers are at least ten deviations apart."""
    generator = np.random.default_rng(seed)
    side = 10.0 * (3 * k ** (1 / d) if d < 5 else 3)
    centers = np.empty((0, d))
    while len(centers) < k:
        center = generator.uniform(0, side, d)
        if len(centers) == 0 or np.linalg.norm(centers - center, axis=1).min() > 10:
            centers = np.vstack([centers, center])
    labels = np.repeat(np.arange(k), n_each)
    return centers[labels] + generator.standard_normal((len(labels), d)), labels


@pytest.mark.parametrize("n", [100, 400, 2000])
@pytest.mark.parametrize("kind", sorted(NOISE))
def test_noise_is_one_cluster_in_nearly_all_draws(kind, n):
    cases = [(d, stretch) for d in (2, 5, 10, 30) for stretch in STRETCH]
    ks = np.concatenate([noise_ks(kind, n, d, stretch, 3) for d, stretch in cases])
    assert np.mean(ks == 1) >= 0.95


@pytest.mark.parametrize("kind", sorted(NOISE))
def test_noise_in_one_dimension_is_mostly_one_cluster(kind):
    # Local minima of k-means are deep in one dimension.
    ks = np.concatenate([noise_ks(kind, n, 1, "round", 10) for n in (100, 400, 2000)])
    assert np.mean(ks == 1) >= 0.8


@pytest.mark.parametrize("shape", [(3000, 10), (10_000, 20), (5000, 50)])
def test_noise_in_many_dimensions_is_one_cluster_of_the_fit_too(shape):
    model = DPMeans().fit(np.random.default_rng(0).standard_normal(shape))
    assert model.n_clusters_ == model.path_.n_clusters == 1


@pytest.mark.parametrize("d", [2, 8, 16, 64])
def test_uniform_directions_are_one_cluster(d):
    generator = np.random.default_rng(d)
    ks = [
        penalty_path(generator.standard_normal((400, d)), divergence="cosine").n_clusters
        for _ in range(10)
    ]
    assert ks.count(1) >= 9


def test_a_grid_is_one_cluster():
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * 4), axis=-1).reshape(-1, 4)
    assert penalty_path(grid).n_clusters == 1


def test_breast_cancers_are_of_two_kinds(published):
    file = published("breast_cancer_wisconsin", "breast_cancer_wisconsin.csv")
    table = np.genfromtxt(file, delimiter=",", skip_header=1)
    known = table[~np.isnan(table[:, :9]).any(axis=1), :9]
    assert penalty_path(known).n_clusters == 2


@settings(max_examples=25, deadline=None)
@given(n=st.integers(20, 400), d=st.integers(1, 6), k=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_fit_path_and_penalty_give_the_same_number_of_clusters(n, d, k, seed):
    generator = np.random.default_rng(seed)
    centers = generator.normal(size=(k, d)) * generator.choice([2.0, 10.0])
    X = centers[generator.integers(0, k, n)] + generator.normal(size=(n, d))
    model = DPMeans().fit(X)
    path = model.path_
    assert model.n_clusters_ == path.n_clusters == path.plateaus[0].n_clusters
    assert model.n_clusters_ == path.n_clusters_at(model.penalty_)
    assert len(np.unique(path.labels_at(path.penalty))) == path.n_clusters
    assert model.penalty_ == path.penalty
    other = DPMeans(random_state=seed).fit(X)
    assert other.n_clusters_ == model.n_clusters_


@pytest.mark.parametrize("k", [1, 2, 3, 7, 20])
def test_n_clusters_can_be_given(k):
    X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    model = DPMeans(n_clusters=k).fit(X)
    assert model.n_clusters_ == len(np.unique(model.labels_)) == k
    assert model.path_.n_clusters == 4
    again = KMeans(k, init=model.cluster_centers_, n_init=1).fit(X)
    cost = model.objective_ - k * model.penalty_
    assert cost == pytest.approx(again.inertia_, rel=1e-6)


@pytest.mark.parametrize("n", [4, 6, 10, 20])
@pytest.mark.parametrize("kind", sorted(NOISE))
def test_a_handful_of_rows_is_one_cluster(kind, n):
    assert np.mean(np.array(noise_ks(kind, n, 2, "round", 20)) == 1) >= 0.95


@pytest.mark.parametrize("seed", range(3))
def test_a_skewed_column_is_one_cluster(seed):
    X = np.random.default_rng(seed).exponential(size=(500, 2))
    assert penalty_path(X, random_state=0).n_clusters == 1


@pytest.mark.parametrize("d", [2, 3, 8, 64])
@pytest.mark.parametrize("k", [2, 3, 5, 12, 29, 60])
def test_separated_blobs_are_counted(k, d):
    X, labels = separated_blobs(k, d, seed=k + d)
    path = penalty_path(X, random_state=0)
    assert path.n_clusters == k
    assert adjusted_rand_score(path.labels_at(path.penalty), labels) > 0.999


def test_clusters_of_clusters_are_counted_one_by_one():
    generator = np.random.default_rng(0)
    # 29 clusters in two groups: the groups are plain to see too, and yet not the answer.
    groups = np.repeat([[0.0, 0.0], [60.0, 0.0]], [15, 14], axis=0)
    grid = np.array([(8.0 * (i % 4), 8.0 * (i // 4)) for i in [*range(15), *range(14)]])
    X = np.repeat(groups + grid, 40, axis=0) + generator.standard_normal((29 * 40, 2))
    assert penalty_path(X, random_state=0).n_clusters == 29


def test_the_blobs_of_scikit_learns_own_check():
    X, labels = make_blobs(n_samples=50, random_state=1)
    path = penalty_path(StandardScaler().fit_transform(X), random_state=0)
    assert path.n_clusters == 3
    assert adjusted_rand_score(path.labels_at(path.penalty), labels) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_iris_wine_and_digits_have_the_known_numbers_of_clusters(seed):
    scale = StandardScaler().fit_transform
    assert penalty_path(load_iris().data, random_state=seed).n_clusters in (2, 3)
    assert penalty_path(scale(load_iris().data), random_state=seed).n_clusters in (2, 3)
    assert penalty_path(scale(load_wine().data), random_state=seed).n_clusters == 3
    assert penalty_path(load_digits().data, random_state=seed).n_clusters in range(8, 13)


@pytest.mark.parametrize(
    ("name", "k"),
    [
        ("a1.csv.gz", 20),
        ("a2.csv.gz", 35),
        ("a3.csv.gz", 50),
        ("birch1_sample10k.csv.gz", 100),
        ("d31.csv.gz", 31),
        ("r15.csv", 15),
        ("s1.csv.gz", 15),
        ("s2.csv.gz", 15),
        ("unbalance.csv.gz", 8),
    ],
)
def test_published_sets(published, name, k):
    X = np.loadtxt(published("shapes2d", name), delimiter=",", skiprows=1, usecols=(0, 1))
    path = penalty_path(X, random_state=0)
    assert path.n_clusters == k
    assert path.confidence > 0.2


def test_confidence_grows_with_separation():
    generator = np.random.default_rng(0)
    noise = generator.standard_normal((200, 2))
    apart = [noise + np.repeat([[0.0, 0.0], [gap, 0.0]], 100, axis=0) for gap in (8, 12, 20, 40)]
    paths = [penalty_path(X, random_state=0) for X in apart]
    assert [path.n_clusters for path in paths] == [2, 2, 2, 2]
    confidence = [path.confidence for path in paths]
    assert confidence == sorted(confidence)
    assert confidence[-1] > 0.7


def test_two_levels_of_clusters_tie_with_low_confidence():
    # Three pairs, and the pairs as far from each other as their members: 3 and 6 are both plain.
    generator = np.random.default_rng(1)
    angle = np.arange(3) * 2 * np.pi / 3
    pairs = 12 * np.column_stack([np.cos(angle), np.sin(angle)])
    apart = np.array([0, 1.5])
    centers = np.concatenate([pairs - apart, pairs + apart])
    X = np.repeat(centers, 40, axis=0) + 0.3 * generator.standard_normal((240, 2))
    path = penalty_path(X, random_state=0)
    assert {plateau.n_clusters for plateau in path.plateaus[:2]} == {3, 6}
    assert path.confidence < 0.5


def test_the_spread_is_seen_through_the_divergence():
    generator = np.random.default_rng(0)
    counts = generator.poisson([4.0, 400.0], (20_000, 2)).astype(float)
    ones = np.ones(len(counts))
    raw = principal_axes(counts, ones, counts.mean(axis=0), get_divergence("sqeuclidean"))
    seen = principal_axes(counts, ones, counts.mean(axis=0), get_divergence("kl"))
    assert raw.variance[0] / raw.variance[1] == pytest.approx(100, rel=0.1)
    assert seen.variance[0] / seen.variance[1] == pytest.approx(1, rel=0.1)


def test_wide_tables_have_the_axes_of_their_rows():
    wide = np.random.default_rng(0).standard_normal((12, 40))
    axes = principal_axes(wide, np.ones(12), wide.mean(axis=0), get_divergence("sqeuclidean"))
    centered = wide - wide.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered / 12)
    np.testing.assert_allclose(axes.variance, values[::-1][:11], rtol=1e-9)
    scores = centered @ vectors[:, ::-1][:, :11]
    skewness = np.abs((scores**3).mean(axis=0)) / values[::-1][:11] ** 1.5
    np.testing.assert_allclose(np.abs(axes.skewness), skewness, rtol=1e-6)


def test_many_rows_of_few_values_have_a_path():
    # More numbers of clusters are looked at than the null reference has, up to all values.
    X = np.random.default_rng(0).integers(0, 120, size=(5000, 1)).astype(float)
    assert penalty_path(X).n_clusters == 1
