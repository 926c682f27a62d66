"""Scores by their definitions over all pairs of pixels, and ground truths in every format."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from countless._errors import InputError
from countless.image import compare, read_truth

SHAPE = (3, 4)
maps = st.lists(st.integers(0, 3), min_size=12, max_size=12).map(lambda x: np.reshape(x, SHAPE))


@settings(max_examples=25)
@given(maps, st.lists(maps, min_size=1, max_size=3))
def test_probabilistic_rand_is_the_share_of_people_who_agree_on_a_pair(labels, truths):
    scores = compare(labels, truths)
    agreed = []
    for a, b in combinations(range(12), 2):
        together = labels.ravel()[a] == labels.ravel()[b]
        share = np.mean([truth.ravel()[a] == truth.ravel()[b] for truth in truths])
        agreed.append(share if together else 1 - share)
    assert scores.probabilistic_rand == pytest.approx(np.mean(agreed))
    assert scores.n_segments == [len(np.unique(truth)) for truth in truths]


def test_equal_maps_agree_whatever_segments_are_called():
    labels = np.array([[0, 0, 1], [2, 2, 1]])
    scores = compare(labels, [labels * 7 + 3])
    assert (scores.rand, scores.adjusted_rand) == ([1.0], [1.0])
    assert scores.mean_variation_of_information == 0.0


def test_maps_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"shape \(3, 4\) cannot be compared with one of \(2, 2\)"):
        compare(np.zeros((2, 2)), [np.zeros((3, 4))])
    with pytest.raises(ValueError, match="there is no segmentation to compare with"):
        compare(np.zeros((2, 2)), [])


@pytest.fixture
def drawn():
    """Return what two people drew, with more labels than a byte holds."""
    one = np.arange(12).reshape(SHAPE) * 30
    return [one, one // 60]


def test_every_format_gives_back_what_people_drew(drawn, tmp_path):
    np.save(tmp_path / "one.npy", drawn[0])
    np.save(tmp_path / "two.npy", np.stack(drawn))
    np.savez(tmp_path / "two.npz", image=np.zeros((*SHAPE, 3)), seg_0=drawn[0], seg_1=drawn[1])
    Image.fromarray(drawn[0].astype(np.uint16)).save(tmp_path / "one.png")
    people = np.empty((1, 2), dtype=object)
    for person, segments in enumerate(drawn):
        people[0, person] = {"Segmentation": segments.astype(np.uint16), "Boundaries": segments}
    savemat(tmp_path / "two.mat", {"groundTruth": people})
    people = people[:, :1]
    savemat(tmp_path / "one.mat", {"groundTruth": people})
    for path in sorted(tmp_path.iterdir()):
        found = read_truth(path)
        expected = drawn if path.stem == "two" else drawn[:1]
        assert len(found) == len(expected)
        assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


def test_colours_of_a_png_are_labels(tmp_path):
    colors = np.zeros((*SHAPE, 3), dtype=np.uint8)
    colors[0, :, 0], colors[1, :, 1] = 200, 200
    Image.fromarray(colors).save(tmp_path / "truth.png")
    (found,) = read_truth(tmp_path / "truth.png")
    assert compare(found, [np.arange(3)[:, None].repeat(4, axis=1)]).rand == [1.0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("truth.txt", b"1", "a ground truth is one of .npy, .npz, .png, .mat"),
        ("truth.npy", b"1", "holds no ground truth"),
        ("truth.npz", b"PK\x03\x04", "truth.npz"),
        ("truth.png", b"1", "holds no ground truth"),
        ("truth.npz", b"", "truth.npz is damaged"),
        ("truth.mat", b"1" * 200, "truth.mat"),
        ("truth.mat", b"", "truth.mat holds no ground truth: Mat file appears to be"),
        ("missing.npy", None, "cannot read"),
    ],
)
def test_invalid_ground_truth_is_refused_by_name(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_truth(tmp_path / name)


def test_arrays_that_are_no_label_maps_are_refused(tmp_path):
    np.save(tmp_path / "real.npy", np.zeros((2, 2)))
    np.savez(tmp_path / "none.npz", image=np.zeros((2, 2, 3)))
    savemat(tmp_path / "plain.mat", {"groundTruth": np.zeros((2, 2))})
    savemat(tmp_path / "other.mat", {"groundTruth": {"Boundaries": 1}})
    for name in ("real.npy", "none.npz", "plain.mat", "other.mat"):
        with pytest.raises(InputError, match="holds no ground truth"):
            read_truth(tmp_path / name)
