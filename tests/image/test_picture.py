"""Pictures as files hold them: depth, transparency, the way a camera was held; and drawing."""

import numpy as np
import pytest
from PIL import Image

from countless._errors import InputError
from countless.image import read_picture
from countless.image.draw import draw_outlines
from countless.image.picture import at_size, check_picture, png_bytes


def test_grey_of_16_bits_keeps_its_levels(tmp_path):
    levels = np.array([[0, 13107], [32768, 65535]], dtype=np.uint16)
    Image.fromarray(levels).save(tmp_path / "grey.png")
    image, _ = read_picture(tmp_path / "grey.png")
    np.testing.assert_allclose(image[..., 0], levels / 65535)
    np.testing.assert_array_equal(image[..., 0], image[..., 2])


def test_what_is_transparent_becomes_white(tmp_path):
    colors = np.array([[[10, 20, 30, 255], [10, 20, 30, 0]]], dtype=np.uint8)
    Image.fromarray(colors).save(tmp_path / "clear.png")
    image, _ = read_picture(tmp_path / "clear.png")
    np.testing.assert_allclose(image[0] * 255, [[10, 20, 30], [255, 255, 255]])


def test_pictures_are_turned_as_the_camera_was_held(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn to the right
    Image.fromarray(np.zeros((20, 30, 3), dtype=np.uint8)).save(tmp_path / "a.jpg", exif=exif)
    assert read_picture(tmp_path / "a.jpg")[0].shape == (30, 20, 3)


def test_labels_come_back_from_png(tmp_path):
    labels = np.array([[0, 1], [300, 65535]])
    (tmp_path / "labels.png").write_bytes(png_bytes(labels))
    with Image.open(tmp_path / "labels.png") as file:
        np.testing.assert_array_equal(np.asarray(file), labels)


def test_files_that_are_no_pictures_are_refused(tmp_path):
    (tmp_path / "a.jpg").write_text("not a picture")
    with pytest.raises(InputError, match=r"a\.jpg is no picture in a format that Pillow knows"):
        read_picture(tmp_path / "a.jpg")
    (tmp_path / "b.png").write_bytes(png_bytes(np.random.default_rng(0).random((90, 90, 3)))[:5000])
    with pytest.raises(InputError, match=r"b\.png cannot be read"):
        read_picture(tmp_path / "b.png")


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 4)), r"got \(4, 4, 4\)"),
        (np.zeros((1, 9)), r"2 x 2 pixels or more; got \(1, 9\)"),
        (np.array([[0.0, 0.5], [0.5, 1.5]]), "the pixel in row 1, column 1 is"),
        (np.array([[0.0, np.nan], [0.5, 0.5]]), "the pixel in row 0, column 1 is"),
        (np.array([[0, 70000], [1, 2]]), "at most 65535; one is 70000"),
        (np.array([[0, 200], [1, -2]]), "the pixel in row 1, column 1 is"),
    ],
)
def test_arrays_that_are_no_pictures_are_refused(image, message):
    with pytest.raises(ValueError, match=message):
        check_picture(image)


def test_whole_numbers_of_any_type_are_levels_of_8_or_16_bits():
    levels = np.array([[0, 51], [102, 255]])
    for kind in (np.uint8, np.int16, np.int32, np.int64):
        np.testing.assert_allclose(check_picture(levels.astype(kind))[..., 0], levels / 255)
    np.testing.assert_allclose(check_picture(257 * levels)[..., 0], levels / 255)
    np.testing.assert_allclose(check_picture(levels.astype(np.uint16))[..., 0], levels / 65535)


def test_outlines_follow_segments_at_any_size():
    for size in (60, 900):
        labels = np.zeros((size, size), dtype=int)
        labels[:, size // 2 :] = 1
        changed = (draw_outlines(np.full((size, size, 3), 0.5), labels) != 0.5).any(axis=(0, 2))
        assert changed[size // 2 - 1 : size // 2 + 1].all()
        assert changed.sum() <= size / 10


def test_label_maps_grow_evenly():
    np.testing.assert_array_equal(at_size(np.array([[0, 1, 2]]), 1, 7), [[0, 0, 1, 1, 1, 2, 2]])
    np.testing.assert_array_equal(
        at_size(np.arange(12).reshape(3, 4), 3, 4), np.arange(12).reshape(3, 4)
    )
