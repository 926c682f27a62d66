"""Model files: what is saved comes back, and a file that was changed makes nothing."""

import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN, BisectingKMeans, KMeans
from sklearn.mixture import GaussianMixture

from countless._errors import InputError, ModelFileError
from countless.divisive import DivisiveClustering, LinkageClustering
from countless.dp_means import DPMeans
from countless.k_medoids import KMedoids
from countless.kernel_dp_means import KernelDPMeans
from countless.kernel_hdp_means import KernelHDPMeans
from countless.preprocess.prepare import NumericStep, Preparation
from countless.serialize.model_file import can_save, load_model, model_bytes, save_model
from countless.spectral_dp_means import SpectralDPMeans

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(center, 0.3, size=(40, 3)) for center in (-4.0, 0.0, 4.0)])
STEPS = Preparation(tuple(NumericStep(name, 0.0, 0.0, 1.0) for name in "abc"))

MIXTURES = [
    GaussianMixture(3, covariance_type=kind, random_state=0)
    for kind in ("full", "tied", "diag", "spherical")
]
SAVABLE = [
    DPMeans(),
    DPMeans(3.0, refine=False),
    DPMeans(background=0.2),
    DPMeans(divergence="cosine", random_state=1),
    KernelDPMeans(random_state=0),
    KernelDPMeans(2.0, kernel="poly", gamma=0.1, refine=False),
    KernelHDPMeans(random_state=0),
    SpectralDPMeans(random_state=0),
    SpectralDPMeans(5.0, kernel="rbf", laplacian=None),
    SpectralDPMeans(1e9, kernel="linear", laplacian=None),
    DivisiveClustering("bisecting", n_clusters=4),
    LinkageClustering("complete", metric="cityblock", n_clusters=5),
    KMeans(3, n_init=2, random_state=0),
    KMedoids(3),
    *MIXTURES,
]


def load_bytes(content, tmp_path, name="m.zip"):
    path = tmp_path / name
    path.write_bytes(content)
    return load_model(path)


@pytest.mark.parametrize("estimator", SAVABLE, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_model_predicts_the_same(estimator, dtype, tmp_path):
    rows = X.astype(dtype)
    estimator = estimator.__class__(**estimator.get_params()).fit(rows)
    save_model(tmp_path / "m.zip", estimator, STEPS)
    loaded, preparation = load_model(tmp_path / "m.zip")
    assert preparation == STEPS
    assert type(loaded) is type(estimator)
    assert loaded.get_params() == estimator.get_params()
    new = np.random.default_rng(1).normal(0, 3, size=(200, 3)).astype(dtype)
    np.testing.assert_array_equal(loaded.predict(new), estimator.predict(new))
    assert loaded.n_features_in_ == 3
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(new), estimator.predict_proba(new))
    if hasattr(estimator, "transform"):
        np.testing.assert_array_equal(loaded.transform(new), estimator.transform(new))


def test_a_model_of_a_stream_keeps_its_ids(tmp_path):
    stream = DPMeans(3.0, random_state=0)
    stream.partial_fit(X[:60]).partial_fit(X[60:])
    save_model(tmp_path / "m.zip", stream)
    loaded = load_model(tmp_path / "m.zip").estimator
    np.testing.assert_array_equal(loaded.cluster_ids_, stream.cluster_ids_)
    np.testing.assert_array_equal(loaded.cluster_weights_, stream.cluster_weights_)
    np.testing.assert_array_equal(loaded.predict(X), stream.predict(X))
    with pytest.raises(ValueError, match="loaded from a file"):
        loaded.partial_fit(X)


def test_equal_models_are_equal_files():
    first, second = (KMeans(3, n_init=1, random_state=0).fit(X) for _ in range(2))
    assert model_bytes(first, STEPS) == model_bytes(second, STEPS)


def test_what_cannot_be_saved_is_refused(tmp_path):
    assert not can_save(DBSCAN())
    assert not can_save(KernelDPMeans(1.0, kernel="precomputed").fit(X @ X.T))
    assert not can_save(SpectralDPMeans(kernel="precomputed", laplacian=None).fit(X @ X.T))
    assert not can_save(BisectingKMeans())
    assert not can_save(DivisiveClustering(metric="precomputed", n_clusters=2).fit(1.0 - np.eye(4)))
    assert not can_save(DivisiveClustering(metric="mixed", n_clusters=2).fit([[1, "a"], [2, "b"]]))
    with pytest.raises(InputError, match="DBSCAN has no state"):
        save_model(tmp_path / "m.zip", DBSCAN().fit(X))
    with pytest.raises(InputError, match="'init' is a ndarray"):
        save_model(tmp_path / "m.zip", KMeans(3, init=X[:3]).fit(X))

    class KMeansOfAnother(KMeans):
        pass

    KMeansOfAnother.__name__ = "KMeans"
    assert not can_save(KMeansOfAnother())
    assert list(tmp_path.iterdir()) == []


FITTED = KMeans(3, n_init=1, random_state=0).fit(X)
CONTENT = model_bytes(FITTED, STEPS)


@settings(max_examples=400)
@given(data=st.data())
def test_damaged_files_are_refused_or_harmless(data, tmp_path_factory):
    content = bytearray(CONTENT)
    how = data.draw(st.sampled_from(["flip", "truncate", "insert", "cut"]))
    for _ in range(data.draw(st.integers(1, 4)) if how == "flip" else 1):
        place = data.draw(st.integers(0, len(content) - 1))
        if how == "flip":
            content[place] ^= data.draw(st.integers(1, 255))
        elif how == "truncate":
            del content[place:]
        elif how == "insert":
            content[place:place] = data.draw(st.binary(min_size=1, max_size=8))
        else:
            del content[place : place + data.draw(st.integers(1, 40))]
    try:
        loaded, preparation = load_bytes(content, tmp_path_factory.getbasetemp(), "fuzz.zip")
    except ModelFileError:
        return
    np.testing.assert_array_equal(loaded.cluster_centers_, FITTED.cluster_centers_)
    assert loaded.get_params() == FITTED.get_params()
    assert preparation == STEPS


def rebuilt(change=None, arrays=None, compression=zipfile.ZIP_STORED, extra=()):
    """Write the file again, with a correct checksum, after a change to what it holds."""
    with zipfile.ZipFile(io.BytesIO(CONTENT)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["model.json"])
    if change:
        change(header)
    members["model.json"] = json.dumps(header).encode()
    for name, array in (arrays or {}).items():
        out = io.BytesIO()
        np.save(out, array)
        members[name] = out.getvalue()
        key = name.removesuffix(".npy")
        header["arrays"][key] = {"dtype": str(array.dtype), "shape": list(array.shape)}
        members["model.json"] = json.dumps(header).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        for name, content in extra:
            archive.writestr(name, content)
    return out.getvalue()


def test_rebuilding_alone_changes_nothing(tmp_path):
    loaded = load_bytes(rebuilt(), tmp_path).estimator
    np.testing.assert_array_equal(loaded.cluster_centers_, FITTED.cluster_centers_)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b"PK\x05\x06" + bytes(18), "no model.json"),
        (rebuilt(compression=zipfile.ZIP_DEFLATED), "compressed"),
        (rebuilt(extra=[("../escape.npy", b"x")]), "unknown member '../escape.npy'"),
        (rebuilt(extra=[("code.py", b"x")]), "unknown member 'code.py'"),
        (rebuilt(extra=[("means_.npy", b"x")]), "members are not those of KMeans"),
        (rebuilt(lambda h: h.update(version=2)), "version 2, this countless reads version 1"),
        (rebuilt(lambda h: h.update(format="pickle")), "does not say"),
        (rebuilt(lambda h: h.update(kind="os.system")), "'os.system' is not a known one"),
        (rebuilt(lambda h: h.update(kind=["KMeans"])), "not a known one"),
        (rebuilt(lambda h: h.update(kind="GaussianMixture")), "its arrays must be"),
        (rebuilt(lambda h: h.update(values={})), "its values must be"),
        (rebuilt(lambda h: h["values"].update(n_iter_="3")), "n_iter_ is '3', expected int"),
        (rebuilt(lambda h: h["values"].update(inertia_=float("nan"))), "NaN"),
        (rebuilt(lambda h: h["values"].update(inertia_=10**400)), "too large"),
        (rebuilt(lambda h: h["parameters"].update(evil=1)), "evil"),
        (rebuilt(lambda h: h["parameters"].update(tol=[1])), "not plain values"),
        (rebuilt(lambda h: h["parameters"].update(tol="x")), "tol"),
        (rebuilt(lambda h: h.update(preparation=3)), "preparation"),
        (rebuilt(lambda h: h["preparation"]["steps"].pop()), "does not make the columns"),
        (rebuilt(lambda h: h["arrays"]["cluster_centers_"].update(shape=[9, 9])), "shape"),
        (rebuilt(arrays={"cluster_centers_.npy": np.full((3, 3), np.nan)}), "finite"),
        (rebuilt(arrays={"cluster_centers_.npy": np.zeros((0, 3))}), "shape"),
        (rebuilt(arrays={"cluster_centers_.npy": np.zeros(3)}), "dimensions"),
        (rebuilt(arrays={"cluster_centers_.npy": np.zeros((3, 3), dtype=int)}), "plain numbers"),
    ],
)
def test_tampered_files_are_refused_with_the_reason(content, message, tmp_path):
    with pytest.raises(ModelFileError, match=message) as caught:
        load_bytes(content, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_two_members_of_one_name(tmp_path):
    content = rebuilt(extra=[("model.json", b"{}")])
    with pytest.raises(ModelFileError, match="two members of one name"):
        load_bytes(content, tmp_path)


def test_deeply_nested_json(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("model.json", "[" * 200_000)
    with pytest.raises(ModelFileError, match="damaged"):
        load_bytes(out.getvalue(), tmp_path)


def test_a_member_that_claims_a_great_size_is_not_read(tmp_path):
    # The sizes in the directory at the end of the zip, which is what a reader trusts.
    content = bytearray(rebuilt())
    entry = content.rfind(b"PK\x01\x02")
    content[entry + 20 : entry + 28] = (2**32 - 2).to_bytes(4, "little") * 2
    with pytest.raises(ModelFileError, match="claims 4294967294 bytes"):
        load_bytes(bytes(content), tmp_path)


def test_gaussian_mixture_shapes_are_checked(tmp_path):
    fitted = GaussianMixture(2, random_state=0).fit(X)
    fitted.covariances_ = fitted.covariances_[:, :2, :2]
    with pytest.raises(ModelFileError, match="covariances_ does not fit"):
        load_bytes(model_bytes(fitted), tmp_path)


@pytest.mark.parametrize("label", [2**31 - 1, 2**62, -1, len(X)])
def test_labels_of_a_tree_ask_for_no_memory(label, tmp_path):
    fitted = DivisiveClustering("bisecting", n_clusters=4).fit(X)
    fitted.labels_ = fitted.labels_.astype(np.int64)
    fitted.labels_[0] = label
    with pytest.raises(ModelFileError, match="labels_ are not numbers of clusters"):
        load_bytes(model_bytes(fitted), tmp_path)
