"""Images: read from files as colours from 0 to 1, downsampled, and written as PNG."""

import hashlib
import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import InputError

# Larger images are downsampled before segmentation, to a size at which a person takes in the whole;
# segments are drawn at the original size.
WORKING_PIXELS = 640 * 480


def need_scikit_image() -> None:
    """Raise an error that names the extra to install, if it is missing."""
    if find_spec("skimage") is None:
        raise ImportError("pictures need scikit-image: pip install 'countless[image]'")


def read_picture(path: str | Path) -> tuple[np.ndarray, str]:
    """Read an image from a file, with its EXIF orientation applied.

    Parameters
    ----------
    path : path
        Any format that Pillow reads. Of several frames the first is used, and transparent pixels
        become white.

    Returns
    -------
    image : ndarray of shape (height, width, 3)
        Red, green and blue from 0 to 1.
    sha256 : str
        The digest of the file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "red.png")
    >>> _ = path.write_bytes(png_bytes(np.full((2, 3, 3), (1.0, 0.0, 0.0))))
    >>> image, _ = read_picture(path)
    >>> image[0, 0].tolist(), image.shape
    ([1.0, 0.0, 0.0], (2, 3, 3))
    """
    need_scikit_image()
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        with Image.open(io.BytesIO(content)) as file:
            image = _colors(ImageOps.exif_transpose(file))
    except UnidentifiedImageError as error:
        raise InputError(f"{path} is no picture in a format that Pillow knows") from error
    # Pillow raises various errors for damaged files.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return image, hashlib.sha256(content).hexdigest()


def _colors(file: Any) -> np.ndarray:
    from PIL import Image

    if file.mode.startswith(("I", "F")):  # grey levels of more than 8 bits, which Pillow would clip
        grey = np.asarray(file, dtype=np.float64)
        most = 65535.0 if file.mode.startswith("I") and grey.max() <= 65535 else grey.max()
        grey = np.clip(grey / (most if most > 0 else 1.0), 0.0, 1.0)
        return np.repeat(grey[:, :, None], 3, axis=2)
    if "A" in file.getbands() or "transparency" in file.info:
        file = file.convert("RGBA")
        file = Image.alpha_composite(Image.new("RGBA", file.size, "white"), file)
    return np.asarray(file.convert("RGB"), dtype=np.float64) / 255.0


def check_picture(image: Any) -> np.ndarray:
    """Return an image as red, green and blue from 0 to 1, or raise an error if it is invalid.

    Examples
    --------
    >>> check_picture(np.full((2, 2), 255, dtype=np.uint8))[0, 0].tolist()
    [1.0, 1.0, 1.0]
    """
    array = np.asarray(image)
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3:
        raise ValueError(
            "a picture must have shape (height, width) or (height, width, 3); "
            f"got {np.asarray(image).shape}"
        )
    if array.shape[0] < 2 or array.shape[1] < 2:
        raise ValueError(f"a picture must have 2 x 2 pixels or more; got {array.shape[:2]}")
    if array.dtype.kind in "iu":
        array = array / _most(array)
    array = array.astype(np.float64, copy=False)
    bad = ~((array >= 0) & (array <= 1)).all(axis=2)  # also NaN
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"colours must lie between 0 and 1; the pixel in row {row}, column {column} "
            f"is {array[row, column].tolist()}"
        )
    return array


def _most(levels: np.ndarray) -> float:
    """Return the integer value of white: by the type of 8 or 16 bits, else by the values."""
    if levels.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(levels.dtype).max)
    highest = int(levels.max())
    for most in (255, 65535):
        if highest <= most:
            return float(most)
    raise ValueError(f"integers of a picture are at most 65535; one is {highest}")


def working_copy(image: np.ndarray) -> np.ndarray:
    """Return an image of at most WORKING_PIXELS pixels.

    Examples
    --------
    >>> working_copy(np.zeros((960, 1280, 3))).shape
    (480, 640, 3)
    """
    height, width = image.shape[:2]
    shrink = np.sqrt(WORKING_PIXELS / (height * width))
    if shrink >= 1:
        return image
    from skimage.transform import resize

    size = (max(2, round(height * shrink)), max(2, round(width * shrink)))
    return np.clip(resize(image, size, anti_aliasing=True), 0.0, 1.0)


def at_size(labels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resize a label map by nearest-neighbor interpolation.

    Examples
    --------
    >>> at_size(np.array([[0, 1]]), 2, 4).tolist()
    [[0, 0, 1, 1], [0, 0, 1, 1]]
    """
    rows, columns = (
        (2 * np.arange(size) + 1) * given // (2 * size)  # the source index of a pixel's center
        for size, given in zip((height, width), labels.shape, strict=True)
    )
    return labels[rows[:, None], columns]


def png_bytes(image: np.ndarray) -> bytes:
    """Return a PNG file of colours from 0 to 1, or of labels as grey levels of 16 bits.

    Examples
    --------
    >>> png_bytes(np.zeros((2, 2, 3)))[1:4]
    b'PNG'
    """
    from PIL import Image

    if image.ndim == 2:
        levels = image.astype(np.uint16)
    else:
        levels = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(levels).save(out, format="PNG")
    return out.getvalue()
