"""Patches against plain loops over pixels, and similarities against plain sums over paths."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import label
from skimage.data import coffee

from countless.image.picture import working_copy
from countless.image.segment import cut_patches
from countless.image.similarity import edge_map, links, similarity
from countless.image.superpixels import Superpixels, superpixels


@pytest.fixture(scope="module")
def image():
    return coffee()[100:220, 150:330] / 255.0


def test_borders_and_colors_are_those_of_a_plain_loop(image):
    edges = edge_map(image)
    patches = superpixels(image, edges, 30)
    labels = patches.labels
    seen = {}
    for row in range(labels.shape[0]):
        for column in range(labels.shape[1]):
            for down, right in ((0, 1), (1, 0)):
                if row + down < labels.shape[0] and column + right < labels.shape[1]:
                    ends = labels[row, column], labels[row + down, column + right]
                    if ends[0] != ends[1]:
                        both = edges[row, column] + edges[row + down, column + right]
                        seen.setdefault((min(ends), max(ends)), []).append(both / 2)
    assert [tuple(pair) for pair in patches.pairs] == sorted(seen)
    np.testing.assert_allclose(patches.edge, [np.mean(seen[pair]) for pair in sorted(seen)])
    for patch in range(patches.n):
        np.testing.assert_allclose(patches.colors[patch], image[labels == patch].mean(axis=0))


def test_patches_cover_the_picture_hang_together_and_are_numbered_in_order(image):
    patches = cut_patches(image, 60)
    assert patches.labels.shape == image.shape[:2]
    first = [np.flatnonzero(patches.labels.ravel() == patch)[0] for patch in range(patches.n)]
    assert first == sorted(first)
    assert 30 <= patches.n <= 90
    assert all(label(patches.labels == patch)[1] == 1 for patch in range(patches.n))


def test_edges_stand_where_colours_change_and_nowhere_else():
    image = np.full((40, 60, 3), 0.3)
    image[:, 30:] = (0.3, 0.3, 0.9)  # as dark as the other half, nearly, but blue
    edges = edge_map(image)
    assert edges.min() >= 0
    assert edges.max() <= 1
    assert edges[:, 29:31].min() > 0.5
    assert edges[:, :20].max() < 1e-6
    assert edges[:, 40:].max() < 1e-6
    # Noise adds up on long ways over patches, so it must be next to nothing.
    noise = 0.5 + 0.02 * np.random.default_rng(0).standard_normal((60, 60, 3))
    assert np.median(edge_map(noise)) < 0.02


@st.composite
def rows_of_patches(draw):
    n = draw(st.integers(2, 5))
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chain = set(pairwise(range(n)))  # all patches of a picture hang together
    pairs = sorted(chain | set(draw(st.lists(st.sampled_from(every)))))
    edge = draw(st.lists(st.floats(0, 1), min_size=len(pairs), max_size=len(pairs)))
    colors = draw(st.lists(st.floats(0, 1), min_size=3 * n, max_size=3 * n))
    return Superpixels(
        np.arange(n)[None], np.reshape(colors, (n, 3)), np.array(pairs), np.array(edge)
    )


@settings(max_examples=25)
@given(rows_of_patches(), st.floats(0, 5), st.floats(0, 5))
def test_similarity_is_colour_and_the_cheapest_of_all_ways(patches, color_weight, edge_weight):
    step = {frozenset(map(int, p)): e for p, e in zip(patches.pairs, patches.edge, strict=True)}

    def cheapest(i, j):
        others = [k for k in range(patches.n) if k not in (i, j)]
        ways = [
            (i, *middle, j) for r in range(len(others) + 1) for middle in permutations(others, r)
        ]
        costs = [[step.get(frozenset(pair), np.inf) for pair in pairwise(way)] for way in ways]
        return min(sum(cost) for cost in costs)

    found = similarity(patches, color_weight=color_weight, edge_weight=edge_weight)
    for i in range(patches.n):
        for j in range(patches.n):
            color = ((patches.colors[i] - patches.colors[j]) ** 2).sum()
            path = 0.0 if i == j else cheapest(i, j)
            expected = -color_weight * color - edge_weight * path
            assert found[i, j] == pytest.approx(expected, abs=1e-9)


def test_links_are_symmetric_and_leave_out_loops_and_what_is_faint():
    graph = links(np.array([[0.0, -1.0, -9.0], [-1.0, 0.0, -2.0], [-9.0, -2.0, 0.0]])).toarray()
    np.testing.assert_allclose(
        graph, [[0, np.exp(-1), 0], [np.exp(-1), 0, np.exp(-2)], [0, np.exp(-2), 0]]
    )


def test_large_pictures_are_made_smaller_and_small_ones_are_left():
    height, width = working_copy(np.zeros((3000, 1000, 3))).shape[:2]
    assert 300_000 < height * width < 310_000
    assert height / width == pytest.approx(3, rel=0.01)
    small = np.zeros((30, 40, 3))
    assert working_copy(small) is small
