"""The null reference: clouds of the data's kind, whose own figures have standard scores near 0."""

import numpy as np
import pytest

from countless._path.levels import Figures, Resolution
from countless._path.null_reference import (
    CLOUDS,
    NullReference,
    clouds_like,
    null_reference,
    rows_like,
)
from countless.divergences import get_divergence

EUCLIDEAN = get_divergence("sqeuclidean")


def kinds_of(X, divergence=EUCLIDEAN, n_rows=None):
    weight, center = np.ones(len(X)), X.mean(axis=0)
    return list(clouds_like(X, weight, center, divergence, n_rows or len(X)))


def test_clouds_have_the_spread_and_the_skewness_of_the_data():
    generator = np.random.default_rng(0)
    X = np.c_[generator.exponential(3.0, 5000), generator.normal(size=5000)]
    bells, boxes = kinds_of(X)
    assert len(bells) == len(boxes) == CLOUDS.n_clouds
    assert all(cloud.mean.shape == (CLOUDS.n_points, 2) for cloud in (*bells, *boxes))
    for kind in (bells, boxes):
        spread = np.concatenate([cloud.mean for cloud in kind]).std(axis=0)
        np.testing.assert_allclose(spread, [3.0, 1.0], rtol=0.1)
    rows = np.concatenate([cloud.mean for cloud in bells])[:, 0] / 3.0
    # That of an exponential distribution, whichever way the axis points.
    assert abs((rows**3).mean()) == pytest.approx(2.0, abs=0.4)


def test_discrete_columns_keep_their_values():
    generator = np.random.default_rng(0)
    X = np.c_[generator.integers(0, 5, 600), generator.normal(size=600)].astype(float)
    for kind in kinds_of(X):
        for cloud in kind:
            assert set(np.unique(cloud.mean[:, 0])) <= set(range(5))
            assert len(np.unique(cloud.mean[:, 1])) == len(cloud.mean)


def test_directions_are_drawn_as_directions():
    X = np.random.default_rng(0).normal(size=(300, 4))
    cosine = get_divergence("cosine")
    for kind in kinds_of(cosine.prepare(X), cosine):
        for cloud in kind:
            assert cloud.divergence is cosine
            np.testing.assert_allclose(np.linalg.norm(cloud.mean, axis=1), 1.0)


def test_rows_are_drawn_about_the_mean():
    X = np.random.default_rng(0).normal(size=(2000, 3)) @ np.diag([3.0, 1.0, 0.5]) + [
        5.0,
        -2.0,
        0.0,
    ]
    for kind in rows_like(X, np.ones(len(X)), 2000):
        rows = np.concatenate(list(kind))
        np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.3)
        np.testing.assert_allclose(np.cov(rows.T), np.cov(X.T), atol=0.6)


def test_clouds_have_no_more_points_than_the_data_has_rows():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert all(len(cloud.mean) == 30 for kind in kinds_of(X) for cloud in kind)


def test_clouds_are_deterministic():
    X = np.random.default_rng(0).normal(size=(200, 2))
    one, other = kinds_of(X), kinds_of(X)
    np.testing.assert_array_equal(one[0][3].mean, other[0][3].mean)


def test_scores_are_the_least_over_the_kinds_of_clouds():
    mean = np.array([[[1.0, 0.5]] * 3, [[0.5, 0.7]] * 3])
    null = NullReference(mean, np.full((2, 3, 2), 0.1))
    width, compactness, apart = null.standard_scores(Figures(*np.full((3, 2), 1.2)))
    np.testing.assert_allclose([compactness, apart], [[2.0, 5.0]] * 2)
    np.testing.assert_allclose(width, np.array([0.2, 0.5]) / np.hypot(0.1, CLOUDS.width_deviation))


def test_beyond_the_clouds_levels_scores_are_those_of_the_width():
    X = np.random.default_rng(0).uniform(size=(500, 2))
    null = null_reference(kinds_of(X), Resolution())
    known = null.mean.shape[-1]
    widths = null.mean_widths(3 * known)
    assert widths[3 * known - 1] < 0.5 * widths[known - 1]
    figures = Figures(*np.random.default_rng(1).uniform(size=(3, 3 * known)))
    scores = np.array(null.standard_scores(figures))
    np.testing.assert_array_equal(scores[1, known:], scores[0, known:])
    assert (scores[1, :known] != scores[0, :known]).any()


def test_structureless_widths_are_wide_in_few_dimensions_and_at_small_k():
    generator = np.random.default_rng(0)
    flat, deep = (
        null_reference(kinds_of(generator.normal(size=(1000, d))), Resolution()) for d in (2, 30)
    )
    assert 0.4 < flat.mean_widths(4).max() < 1.2
    assert deep.mean_widths(4).max() < 0.5 * flat.mean_widths(4).max()
