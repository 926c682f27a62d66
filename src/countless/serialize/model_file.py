"""Model files: a zip of one JSON file and plain ``.npy`` arrays, never a pickle.

A file names one of the known estimator classes and can create nothing else. Every member is stored
uncompressed, and every size, type and shape is checked before memory is allocated for it, so that
a file cannot cause an allocation larger than its own length.
"""

import io
import json
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .. import __version__
from .._data.npy import read_npy
from .._data.write import write_file
from .._errors import InputError, ModelFileError
from .._threads import count_threads
from ..preprocess.prepare import Preparation
from . import SERIALIZERS, serializer_of
from .serializer import Serializer, check_predictions, restore_layers

FORMAT = "countless model"
VERSION = 1
LARGEST_JSON = 32 * 2**20

_HEADER = "model.json"
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal models are equal files
# All exceptions of the zip, JSON and array readers for invalid bytes.
_DAMAGE = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,  # an encrypted member, and RecursionError for absurdly nested JSON
    EOFError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    OverflowError,
    struct.error,
)


class SavedModel(NamedTuple):
    """The contents of a model file: a fitted estimator and the preprocessing of its rows."""

    estimator: Any
    preparation: Preparation | None


def can_save(estimator: Any) -> bool:
    """Whether a fitted estimator can be written as JSON and arrays.

    Examples
    --------
    >>> from sklearn.cluster import HDBSCAN, KMeans
    >>> can_save(KMeans()), can_save(HDBSCAN())
    (True, False)
    """
    return serializer_of(chosen(estimator)) is not None


def chosen(estimator: Any) -> Any:
    """Return the estimator that a selecting estimator has chosen; any other unchanged."""
    return getattr(estimator, "best_estimator_", estimator)


def save_model(
    path: str | Path, estimator: Any, preparation: Preparation | None = None, *, force: bool = False
) -> None:
    """Write a fitted estimator and its preprocessing to a file.

    Parameters
    ----------
    path : str or Path
        Where to write; an existing file is an error unless ``force``.
    estimator : estimator
        Fitted, of countless or a baseline; for `AutoClustering` the chosen estimator is written.
    preparation : Preparation, optional
        The transformation of a table to the estimator's matrix.
    force : bool, default=False
        Whether to overwrite.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> X = np.array([[0.0], [1.0], [9.0]])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.zip")
    >>> fitted = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> save_model(path, fitted)
    >>> bool((load_model(path).estimator.predict(X) == fitted.labels_).all())
    True
    """
    write_file(Path(path), model_bytes(estimator, preparation), force=force)


def model_bytes(estimator: Any, preparation: Preparation | None = None) -> bytes:
    """Return what :func:`save_model` writes; equal models give equal bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> model_bytes(KMeans(n_clusters=1).fit(np.eye(2)))[:2]
    b'PK'
    """
    estimator = chosen(estimator)
    serializer = serializer_of(estimator)
    if serializer is None:
        raise InputError(f"{type(estimator).__name__} has no state that a model file can hold")
    try:
        state = serializer.state(estimator)
        if serializer.inner is not None:
            inside = model_bytes(getattr(estimator, serializer.inner))
            state["model_"] = np.frombuffer(inside, dtype=np.uint8)
    except ValueError as error:
        raise InputError(f"{serializer.estimator.class_name}: {error}") from error
    arrays = {name: np.ascontiguousarray(state[name]) for name in serializer.arrays}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "countless": __version__,
        "kind": serializer.estimator.class_name,
        "parameters": _plain_parameters(estimator),
        "values": {name: made(state[name]) for name, made in serializer.values.items()},
        "arrays": {
            name: {"dtype": str(array.dtype), "shape": list(array.shape)}
            for name, array in arrays.items()
        },
        "preparation": preparation.to_json() if preparation else None,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member(_HEADER), json.dumps(header, indent=1, allow_nan=False))
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            archive.writestr(_member(f"{name}.npy"), content.getvalue())
    return out.getvalue()


def load_model(path: str | Path) -> SavedModel:
    """Read a model file.

    Parameters
    ----------
    path : str or Path
        A file written by :func:`save_model` or ``countless fit``.

    Returns
    -------
    SavedModel

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, oversized, of another version, or no model file.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> load_model("no-such-file.zip")
    Traceback (most recent call last):
    countless._errors.ModelFileError: cannot read no-such-file.zip: No such file or directory
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            return read_model(file, size)
    except ModelFileError as error:
        raise ModelFileError(f"{path.name} is no usable model: {error}") from error
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error


def read_model(file: BinaryIO, size: int, *, inside: bool = False) -> SavedModel:
    """Read an open model file; one that is ``inside`` another must not have another inside."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = _checked_members(archive, size)
            header = _read_header(archive, members)
            serializer = SERIALIZERS[header["kind"]]
            if inside and serializer.inner is not None:
                raise ModelFileError("it was edited twice")
            arrays = {
                name: _read_array(archive, members, name, letter, header["arrays"][name])
                for name, letter in serializer.arrays.items()
            }
    except ModelFileError:
        raise
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelFileError(f"it is damaged ({reason})") from error
    return _restore(serializer, header, arrays)


def _checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    members = {member.filename: member for member in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ModelFileError("it has two members of one name")
    if _HEADER not in members:
        raise ModelFileError(f"it has no {_HEADER}")
    allowed = {_HEADER} | {f"{name}.npy" for each in SERIALIZERS.values() for name in each.arrays}
    if unknown := sorted(set(members) - allowed):
        raise ModelFileError(f"it has the unknown member {unknown[0]!r}")
    for name, member in members.items():
        stored = member.compress_type == zipfile.ZIP_STORED
        if not stored or member.file_size != member.compress_size:
            raise ModelFileError(f"{name} is compressed")
        if member.file_size > (LARGEST_JSON if name == _HEADER else size):
            raise ModelFileError(f"{name} claims {member.file_size} bytes")
    return members


def _read_header(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
    header = json.loads(archive.read(members[_HEADER]), parse_constant=_refuse_constant)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("it does not say that it is one")
    if header.get("version") != VERSION:
        raise ModelFileError(
            f"it has version {header.get('version')!r}, this countless reads version {VERSION}"
        )
    if not isinstance(header.get("kind"), str) or header["kind"] not in SERIALIZERS:
        raise ModelFileError(f"its kind {header.get('kind')!r} is not a known one")
    serializer = SERIALIZERS[header["kind"]]
    for part, names in (("arrays", serializer.arrays), ("values", serializer.values)):
        found = header.get(part)
        if not isinstance(found, dict) or set(found) != set(names):
            raise ModelFileError(f"its {part} must be {', '.join(sorted(names))}")
    if set(members) != {_HEADER, *(f"{name}.npy" for name in serializer.arrays)}:
        raise ModelFileError(f"its members are not those of {serializer.estimator.class_name}")
    return header


def _refuse_constant(name: str) -> None:
    raise ModelFileError(f"{_HEADER} holds {name}, which is no number")


def _read_array(
    archive: zipfile.ZipFile,
    members: dict[str, zipfile.ZipInfo],
    name: str,
    letter: str,
    stated: Any,
) -> np.ndarray:
    array = read_npy(io.BytesIO(archive.read(members[f"{name}.npy"])), kinds=letter)
    if stated != {"dtype": str(array.dtype), "shape": list(array.shape)}:
        raise ModelFileError(f"{name} is not of the type and shape that {_HEADER} says")
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        raise ModelFileError(f"{name} holds {array.dtype}, not float32 or float64")
    if array.dtype.kind != "U" and not np.isfinite(array).all():
        raise ModelFileError(f"{name} holds a value that is not a finite number")
    return array


def _restore(
    serializer: Serializer, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> SavedModel:
    try:
        estimator = serializer.estimator.make()
        parameters = header.get("parameters")
        if not isinstance(parameters, dict) or not all(map(_is_plain, parameters.values())):
            raise ValueError("its parameters are not plain values")
        estimator.set_params(**parameters)
        count_threads(parameters.get("n_jobs"))
        values = {
            name: _checked_value(name, header["values"][name], serializer)
            for name in serializer.values
        }
        state: dict[str, Any] = arrays | values
        if serializer.inner is not None:
            state[serializer.inner] = _inside(arrays["model_"])
        n_features = serializer.check(estimator, state)
        stated = header.get("preparation")
        preparation = None if stated is None else Preparation.from_json(stated)
        if preparation is not None and len(preparation.features()) != n_features:
            raise ValueError("its preparation does not make the columns that it needs")
        with warnings.catch_warnings():
            # Restoring a state is not a fit, so its warnings do not apply.
            warnings.simplefilter("ignore")
            restore_layers(estimator, state)
            serializer.restore(estimator, state)
        check_predictions(estimator, _examples(serializer, estimator))
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(" ".join(str(error).split())) from error
    return SavedModel(estimator, preparation)


def _inside(content: np.ndarray) -> Any:
    """Return the estimator whose file is inside another file."""
    if content.dtype != np.uint8 or content.ndim != 1:
        raise ValueError("its model_ is no file")
    return read_model(io.BytesIO(content.tobytes()), len(content), inside=True).estimator


def _examples(serializer: Serializer, estimator: Any) -> Any:
    """Return rows that a restored estimator must be able to predict."""
    if serializer.examples is not None:
        return serializer.examples(estimator)
    inner = getattr(estimator, str(serializer.inner))
    return _examples(SERIALIZERS[type(inner).__name__], inner)


def _checked_value(name: str, value: Any, serializer: Serializer) -> Any:
    expected = serializer.values[name]
    numeric = expected is float and type(value) is int
    if type(value) is not expected and not numeric:
        raise ValueError(f"its {name} is {value!r}, expected {expected.__name__}")
    if expected is float and not np.isfinite(float(value)):
        raise ValueError(f"its {name} is not a finite number")
    if expected is int and not 0 <= value < 2**63:
        raise ValueError(f"its {name} is not a count")
    return expected(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(word, str) for word in (*value, *value.values()))
    if isinstance(value, list):
        return all(isinstance(word, str) for word in value)
    return value is None or isinstance(value, bool | int | float | str)


def _plain_parameters(estimator: Any) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }
    for name, value in plain.items():
        if not _is_plain(value):
            raise InputError(f"parameter {name!r} is a {type(value).__name__}: not a plain value")
    return plain


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _ZIP_EPOCH)
    info.external_attr = 0o644 << 16
    return info
