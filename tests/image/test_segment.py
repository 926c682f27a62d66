"""Segments of pictures whose segments are known, by every method; the same every time."""

import importlib.util

import numpy as np
import pytest
from skimage.data import coffee

from countless.image import compare, read_picture, read_truth, segment
from countless.image.segment import make_method
from countless.priors import FiniteDirichlet

WAYS = [
    {"method": "affinity"},
    {"method": "affinity", "prior": "pitman-yor"},
    {"method": "affinity", "prior": FiniteDirichlet(alpha=2.0, n_components=20)},
    {"method": "affinity", "prior": None},
    {"method": "graph"},
    {"method": "ncut"},
]
NAMES = ["dp", "pitman-yor", "own prior", "no prior", "graph", "ncut"]


def boat(times):
    """Return a picture of sky, sea and a boat, with noise, and which pixel is which."""
    truth = np.zeros((96 * times, 144 * times), dtype=int)
    truth[60 * times :] = 1
    truth[40 * times : 70 * times, 50 * times : 90 * times] = 2
    colors = np.array([(0.55, 0.7, 0.9), (0.1, 0.3, 0.5), (0.7, 0.2, 0.1)])
    noise = 0.03 * np.random.default_rng(1).standard_normal((*truth.shape, 3))
    return np.clip(colors[truth] + noise, 0, 1), truth


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_every_method_finds_the_boat(way):
    image, truth = boat(times=1)
    found = segment(image, n_superpixels=120, **way)
    assert compare(found.labels, [truth]).adjusted_rand[0] > 0.9
    if way["method"] != "ncut":  # which cuts corners off
        assert found.n_segments == 3
        assert found.labels[[0, 55, -1], [0, 70, 0]].tolist() == [0, 1, 2]  # as they appear


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_an_even_picture_is_one_segment(way):
    assert segment(np.full((60, 90), 0.4), n_superpixels=60, **way).n_segments == 1


def test_the_answer_is_the_same_every_time():
    image = coffee()[60:180, 150:330]
    for way in ({"method": "affinity"}, {"method": "graph"}, {"method": "ncut"}):
        one, again = (segment(image, n_superpixels=80, **way).labels for _ in range(2))
        np.testing.assert_array_equal(one, again)


def test_size_and_depth_of_a_picture_change_little():
    image, truth = boat(times=7)
    found = segment(np.round(255 * image).astype(np.uint8))
    assert found.patches.labels.size < image[..., 0].size / 2  # it was made smaller
    assert found.n_segments == 3
    assert compare(found.labels, [truth]).adjusted_rand[0] > 0.9


def test_the_picture_speaks_louder_at_a_higher_scale():
    image = coffee()[60:180, 150:330]
    numbers = [segment(image, n_superpixels=80, scale=scale).n_segments for scale in (0.5, 5, 50)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_what_an_exemplar_costs_grows_with_the_number_of_patches():
    few, many = (make_method("affinity", "dp", n, None, {}, seed=0).estimator for n in (100, 400))
    assert many.preference == pytest.approx(4 * few.preference)


def test_people_agree_with_the_segments_of_a_photograph(published):
    image, _ = read_picture(published("bsds500", "42049.jpg"))
    people = read_truth(published("bsds500", "42049.npz"))
    for way in ({"method": "affinity"}, {"prior": "none"}, {"method": "graph"}):
        assert compare(segment(image, **way).labels, people).probabilistic_rand > 0.93


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "magic"}, "method must be one of 'affinity', 'graph', 'ncut'; got 'magic'"),
        ({"prior": "strong"}, "prior must be one of 'dp', 'pitman-yor', 'none'"),
        ({"n_superpixels": 0}, "n_superpixels must be an integer from 1; got 0"),
        ({"scale": 0}, "scale must be a positive number; got 0"),
        ({"edge_weight": -1}, "edge_weight must be a number from 0; got -1"),
        ({"method": "ncut", "settings": {"threshold": "low"}}, "threshold must be a number of at"),
        ({"method": "ncut", "settings": {"n_cuts": 0}}, "n_cuts must be an integer of at"),
        ({"settings": {"dumping": 0.5}}, "Invalid parameter 'dumping'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        segment(np.full((20, 20), 0.5), **wrong)


def test_the_extra_is_named_where_scikit_image_is_missing(monkeypatch):
    monkeypatch.setattr("countless.image.picture.find_spec", lambda name: None)
    assert importlib.util.find_spec("skimage")
    with pytest.raises(ImportError, match=r"pip install 'countless\[image\]'"):
        segment(np.full((20, 20), 0.5))
