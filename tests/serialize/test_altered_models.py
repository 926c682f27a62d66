"""Every field of every kind of model file, altered: one line says so, or the model predicts."""

import io
import json
import zipfile
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import countless
from countless._auto.linked import NeighborCommunities
from countless._auto.merged import MergedMixture
from countless._data.table import Numbers, Table, Unusable, Words
from countless.k_medoids import KMedoids
from countless.preprocess.prepare import CategoricalStep, NumericStep, Preparation
from countless.serialize import SERIALIZERS
from countless.serialize.model_file import load_model, model_bytes

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(center, 0.4, size=(12, 2)) for center in (-4.0, 0.0, 4.0)])
GROUPS = np.tile([0, 1, 1], 12)
MIXED = [
    [*row, color] for row, color in zip(X.tolist(), "r" * 12 + "g" * 12 + "b" * 12, strict=True)
]
MIXED[5][1] = None
COUNTS = RNG.poisson(3.0, size=(20, 4)) + 20 * (np.arange(20)[:, None] < 10)
SHORT = {"n_chains": 1, "n_sweeps": 4, "random_state": 0}

MERGE = {
    "format": "countless edits",
    "version": 1,
    "edits": [{"action": "merge", "clusters": [0, 1]}],
}
MODELS = [
    ("DPMeans", lambda: countless.DPMeans(3.0).fit(X), X),
    ("DPMeans cosine", lambda: countless.DPMeans(divergence="cosine").fit(X), X),
    ("HDPMeans", lambda: countless.HDPMeans(3.0, 6.0).fit(X, groups=GROUPS), X),
    ("KernelDPMeans", lambda: countless.KernelDPMeans(2.0).fit(X), X),
    ("KernelHDPMeans", lambda: countless.KernelHDPMeans(1.0, 2.0).fit(X, groups=GROUPS), X),
    ("SpectralDPMeans", lambda: countless.SpectralDPMeans(0.5, n_neighbors=5).fit(X), X),
    *(
        (
            f"SpectralDPMeans {form}",
            lambda form=form: countless.SpectralDPMeans(1.0, kernel="rbf", laplacian=form).fit(X),
            X,
        )
        for form in (None, "symmetric", "unnormalized")
    ),
    ("AffinityPropagation", lambda: countless.AffinityPropagation().fit(X), X),
    ("DivisiveClustering", lambda: countless.DivisiveClustering(n_clusters=3).fit(X), X),
    ("LinkageClustering", lambda: countless.LinkageClustering(n_clusters=3).fit(X), X),
    (
        "EditedClustering",
        lambda: countless.apply_edits(countless.DPMeans(3.0).fit(X), MERGE),
        X,
    ),
    ("MergedMixture", lambda: MergedMixture().fit(X), X),
    ("NeighborCommunities", lambda: NeighborCommunities(n_neighbors=5).fit(X), X),
    *(
        (
            f"DPMixture {form}",
            lambda form=form, rows=rows: countless.DPMixture(form, **SHORT).fit(rows),
            rows,
        )
        for form, rows in [
            ("gaussian", X),
            ("diagonal", X),
            ("poisson", COUNTS),
            ("multinomial", COUNTS),
            ("columns", MIXED),
        ]
    ),
    ("HDPMixture", lambda: countless.HDPMixture(**SHORT).fit(X, groups=GROUPS), X),
    (
        "BayesianHierarchicalClustering",
        lambda: countless.BayesianHierarchicalClustering().fit(X),
        X,
    ),
    ("CrossCat", lambda: countless.CrossCat(**SHORT).fit(MIXED), MIXED),
    ("DPBiclustering", lambda: countless.DPBiclustering(**SHORT).fit(COUNTS), COUNTS),
    ("KMedoids", lambda: KMedoids(2).fit(X), X),
    ("KMeans", lambda: KMeans(2, n_init=1, random_state=0).fit(X), X),
    *(
        (
            f"GaussianMixture {form}",
            lambda form=form: GaussianMixture(2, covariance_type=form, random_state=0).fit(X),
            X,
        )
        for form in ("full", "spherical")
    ),
]
# One alteration in so many: each field has more, and ways rotate over fields. All take minutes.
STEP = 17


def test_every_kind_is_altered():
    assert {name.split()[0] for name, _, _ in MODELS} == set(SERIALIZERS)


VALUES = [float("nan"), float("inf"), -1, 0, 2**31 - 1, 2**62, 1e300, -1e300, 1e-300, 10**400]
VALUES += [0.5, "text", "", None, True, [], [1], ["a"], {}, {"a": "b"}]


def paths(value, path=()):
    """Give where all values are in plain JSON, containers too."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from paths(inner, (*path, key))


def replaced(value, path, new):
    """Return JSON with another value at a path; without it for ``replaced`` itself."""
    if not path:
        return new
    value = value.copy()
    if len(path) == 1 and new is replaced:
        del value[path[0]]
    else:
        value[path[0]] = replaced(value[path[0]], path[1:], new)
    return value


def altered_arrays(array):
    """Give a way and what an array is after it."""
    yield "object", array.astype(object)
    yield "text", array.astype(str)
    yield "complex", array.astype(complex) if array.dtype.kind != "U" else array.astype("S")
    yield "int", (array if array.dtype.kind in "fib" else np.arange(array.size)).astype(np.int64)
    yield "uint8", np.zeros(array.shape, np.uint8)
    yield "float", np.zeros(array.shape)
    yield "float16", np.ones(array.shape, np.float16)
    yield "bool", np.ones(array.shape, bool)
    yield "nested", array[None]
    yield "flat", array.ravel()
    yield "scalar", np.zeros((), array.dtype)
    yield "empty", array[:0]
    yield "empty columns", array[..., :0]
    yield "shorter", array[:-1]
    yield "narrower", array[..., :-1]
    yield "longer", np.concatenate([array, array[-1:]])
    yield "wider", np.concatenate([array, array[..., -1:]], axis=-1)
    yield "transposed", array.T
    yield "backwards", array[::-1]
    yield "repeated", np.repeat(array[:1], len(array), axis=0)
    yield "one", array[:1]
    values = {
        "f": [np.nan, np.inf, -np.inf, -1, 0, 1, 2.0**31, 1e10, 1e20, 1e100, 1e160, 1e300,
              -1e300, 1e-300, -1e-300],
        "i": [-(2**31), -1, 0, 1, 2**31 - 1, 2**62, -(2**62), 1000],
        "u": [0, 255], "b": [False, True], "U": ["", "text", "nan", "1e999", "\0", "x" * 9999],
    }  # fmt: skip
    for value in values[array.dtype.kind]:
        if array.dtype.kind == "i" and not -(2**31) <= value < 2**31:
            array = array.astype(np.int64)
        wide = array.astype(f"U{max(1, len(value))}") if array.dtype.kind == "U" else array
        for place in (0, -1, slice(None)):
            changed = wide.flatten()
            if changed.size:
                with np.errstate(over="ignore"):
                    changed[place] = value
            yield f"{value!r:.20} at {place}", changed.reshape(array.shape)


def npy(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def huge(array):
    """Return an array that declares terabytes."""
    out = io.BytesIO()
    shape = (2**40, *array.shape[1:])
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue()


def alterations(content):
    """Give a name and the members of a model file after each alteration."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["model.json"])

    def told(path, value):
        return {"model.json": json.dumps(replaced(header, path, value)).encode()}

    for path in paths(header):
        for value in [*VALUES, replaced]:
            if path or value is not replaced:
                yield f"{path} {value!r:.20}", members | told(path, value)
    for name in header["arrays"]:
        member, path = f"{name}.npy", ("arrays", name)
        array = np.load(io.BytesIO(members[member]))
        yield f"no {name}", {key: members[key] for key in members if key != member}
        shape = {"dtype": str(array.dtype), "shape": [2**40, *array.shape[1:]]}
        yield f"{name} huge", members | told(path, shape) | {member: huge(array)}
        for way, new in altered_arrays(array):
            shape = {"dtype": str(new.dtype), "shape": list(new.shape)}
            yield f"{name} {way}", members | told(path, shape) | {member: npy(new)}


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


@contextmanager
def a_gigabyte():
    """Let a process have no more memory than it has and one gigabyte, where that can be said."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, FileNotFoundError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**30, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def ask(model, rows):
    """Ask a model whatever it answers about rows."""
    for name in ("predict", "predict_proba", "score_samples", "transform"):
        if hasattr(model, name):
            answer = np.asarray(getattr(model, name)(rows))
            assert len(answer) == len(rows), name
            assert name == "score_samples" or np.isfinite(answer).all(), name
    if hasattr(model, "sample"):
        model.sample(2)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("model", [pytest.param(one, id=one[0]) for one in MODELS])
def test_every_field_altered_is_one_line_or_predicts(model, tmp_path):
    _, make, rows = model
    path = tmp_path / "model.zip"
    content = model_bytes(make())
    path.write_bytes(content)
    ask(load_model(path).estimator, rows[:4])  # and compiles what it needs
    refused, n_loaded = [], 0
    with a_gigabyte(), threadpool_limits(1):
        for way, members in islice(alterations(content), None, None, STEP):
            path.write_bytes(zipped(members))
            try:
                loaded = load_model(path).estimator
                n_loaded += 1
                ask(loaded, rows[:4])
            except ValueError as error:
                refused.append(str(error))
            except BaseException as error:
                error.add_note(f"altered: {way}")
                raise
    assert len(refused) > n_loaded > 0
    assert not any("\n" in line for line in refused)


def test_every_field_of_a_preparation_altered_is_one_line_or_a_matrix():
    steps = (
        NumericStep("a", 0.5, 1.0, 2.0),
        NumericStep("empty", 0.0, 0.0, 1.0),
        CategoricalStep("b", "u", ("u", "v")),
    )
    saved = Preparation(steps, missing="impute", group="c").to_json()
    table = Table(
        "t",
        {
            "a": Numbers(np.array([1.0, np.nan, 1e10])),
            "b": Words(np.array([0, 1, -1]), ("v", "w")),
            "empty": Unusable("nothing", 3),
        },
        n_rows=3,
    )
    refused, n_made = [], 0
    for path in paths(saved):
        for value in [*VALUES, replaced]:
            if not path and value is replaced:
                continue
            try:
                matrix = Preparation.from_json(replaced(saved, path, value)).apply(table).matrix
            except ValueError as error:
                refused.append(str(error))
            else:
                n_made += 1
                assert np.isfinite(matrix).all(), (path, value)
    assert len(refused) > n_made > 0
    assert not any("\n" in line for line in refused)
