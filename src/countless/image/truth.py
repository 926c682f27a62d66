"""Human segmentations, read from files: .npy, .npz, .png and BSDS's .mat."""

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from .._data.npy import read_npy
from .._errors import InputError
from .picture import need_scikit_image

FORMATS = (".npy", ".npz", ".png", ".mat")


def read_truth(path: str | Path) -> list[np.ndarray]:
    """Read the label maps in a file, one for each person.

    Parameters
    ----------
    path : path
        ``.npy``: a map, or several in an array of three dimensions. ``.npz``: every array of
        integers in two dimensions. ``.png``: grey levels or colours are labels. ``.mat``: the
        format of the Berkeley segmentation data set, ``groundTruth{k}.Segmentation``.

    Returns
    -------
    list of ndarray of shape (height, width)

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "truth.npy")
    >>> np.save(path, np.array([[0, 0], [1, 1]]))
    >>> read_truth(path)[0].tolist()
    [[0, 0], [1, 1]]
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a ground truth is one of {', '.join(FORMATS)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    read = {".npy": _npy, ".npz": _npz, ".png": _png, ".mat": _mat}[path.suffix.lower()]
    try:
        maps = read(content)
    # Every library raises its own errors for invalid files.
    except (ValueError, LookupError, TypeError, AttributeError, OSError, SyntaxError) as error:
        raise InputError(f"{path} holds no ground truth: {error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    if not maps:
        raise InputError(f"{path} holds no ground truth: it has no label map")
    return maps


def _npy(content: bytes) -> list[np.ndarray]:
    array = read_npy(io.BytesIO(content), kinds="iub")
    if array.ndim not in (2, 3):
        raise ValueError(f"a label map has 2 dimensions, several have 3; got {array.ndim}")
    return [array] if array.ndim == 2 else list(array)


def _npz(content: bytes) -> list[np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = [file[name] for name in file.files]
    return [array for array in arrays if array.ndim == 2 and array.dtype.kind in "iub"]


def _png(content: bytes) -> list[np.ndarray]:
    need_scikit_image()
    from PIL import Image

    with Image.open(io.BytesIO(content)) as file:
        array = np.asarray(file)
    if array.ndim == 3:  # each colour is a label
        weights = 256 ** np.arange(array.shape[2], dtype=np.int64)
        array = array.astype(np.int64) @ weights
    return [array]


def _mat(content: bytes) -> list[np.ndarray]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        file = loadmat(io.BytesIO(content), squeeze_me=True, struct_as_record=False)
    except MatReadError as error:
        raise ValueError(str(error)) from error
    people = np.atleast_1d(file["groundTruth"])
    return [np.asarray(person.Segmentation) for person in people]
