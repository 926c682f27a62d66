"""Every estimator clusters hostile tables rightly, or refuses them in one line."""

import faulthandler
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import hostile
from countless import (
    AffinityPropagation,
    DivisiveClustering,
    DPMixture,
    GraphDPMeans,
    KernelDPMeans,
    KernelHDPMeans,
    LinkageClustering,
    SpectralDPMeans,
)
from countless._graph.null_reference import RANDOM_GRAPHS
from countless._registry import ESTIMATORS

# Chains of few sweeps may not agree; that is not what is asked here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Seconds after which a fit counts as endless: compiling its kernels takes less.
ENDLESS = 300
# A rise by this share of the first objective is rounding.
ROUNDING = 1e-12
CHAIN = {"n_chains": 1, "n_sweeps": 30, "n_jobs": 1, "random_state": 0}


def seeded(entry):
    """Return an estimator with a seed, and with one short chain if it has chains."""
    settings = CHAIN if "n_chains" in entry.parameters() else {"random_state": 0}
    known = entry.parameters()
    return entry.make(**{name: value for name, value in settings.items() if name in known})


OF_TABLES = {
    **{name: seeded(entry) for name, entry in ESTIMATORS.items() if entry.takes != "edges"},
    "DPMixture diagonal": DPMixture("diagonal", **CHAIN),
    "KernelDPMeans linear": KernelDPMeans(kernel="linear", random_state=0),
    "LinkageClustering ward": LinkageClustering("ward"),
}
TABLES = hostile.tables()

# Tables that ask of most estimators what others ask already, and who is asked all the same.
REPEATED = re.compile(
    "offset (1e.0[4578]|10000|-1e|1000)|scale 1e(-38|-20|.20|.100|37)|at 1e9|constant (0.1|1$)|"
    "beside (0|1$)|8 x 50|20 x 200|float(16|32$)|order|contiguous|outlier 1e.08|Cauchy$|two points"
)
QUICK = {"AffinityPropagation", "DPMeans", "DivisiveClustering", "LinkageClustering"}
# These share most of their code with quicker ones, or take longer: the worst tables are enough.
COSTLY = {"AutoClustering", "CrossCat", "HDPMeans", "HDPMixture", "KernelHDPMeans"}
WORST = re.compile(
    "offset 1e(.15|20)|scale 1e(-300|-100|.150|.300|-42)|4 points x 30$|constant 1e.16|signed|"
    "beside 1.7|one row|two equal|8 x 20$|one column$|int64|bool|outlier 1e.15|cubed"
)


def is_asked(kind, name):
    """Tell whether an estimator is asked about a table."""
    if kind in COSTLY:
        return WORST.search(name)
    return kind in QUICK or not REPEATED.search(name)


# What a table cannot be asked of an estimator, and why.
COPIES = "copies of rows that were not rounded are evidence of narrow clusters"
ONE_SCALE = "one model of all cells: columns must have about the same scale"
OTHER_ANSWERS = {
    ("AffinityPropagation", "each row twice"): "its preference is the median similarity",
    ("BayesianHierarchicalClustering", "each row twice"): COPIES,
    ("CrossCat", "each row twice"): COPIES,
    ("DPMixture", "each row twice"): COPIES,
    ("DPMixture diagonal", "each row twice"): COPIES,
    ("HDPMixture", "each row twice"): COPIES,
    ("CrossCat", "all but one constant"): "labels_ are of the view with most columns",
    ("CrossCat", "bool"): "pairs of columns that are equal make views of their own",
    ("CrossCat", "two values"): "one binary column: no mixture is better than one cluster",
    ("DPBiclustering", "two values"): "one binary column: no mixture is better than one cluster",
    ("DPMixture", "two values"): "rounded to steps of 1, two values may be one cluster",
    ("DPMixture diagonal", "two values"): "rounded to steps of 1, two values may be one cluster",
    ("HDPMixture", "two values"): "rounded to steps of 1, two values may be one cluster",
    ("DPBiclustering", "all but one constant"): ONE_SCALE,
}
FULL_COVARIANCES = "full covariances need as many rows as columns"
REFUSED = {
    ("DPBiclustering", "offsets by column"): ONE_SCALE,
    ("DPBiclustering", "beside 1e+16"): ONE_SCALE,
    ("DPBiclustering", "beside 1.7e+18"): ONE_SCALE,
    **{
        (name, shape): FULL_COVARIANCES
        for name in ("BayesianHierarchicalClustering", "DPMixture", "HDPMixture")
        for shape in ("8 x 20", "8 x 50", "8 x 200", "20 x 200")
    },
}
# Where chains find clusters beside columns of noise, they take longer.
LONGER = {"all but one constant": 200}
# What an error of one line may be about.
REASONS = "scale X|scale it|scale them|scale the columns|too few rows|beyond 1e|sample"


@pytest.fixture(autouse=True)
def few_random_graphs(monkeypatch):
    """Choose penalties of graphs beside few random ones: these clusters stand out anyway."""
    few = replace(RANDOM_GRAPHS, n_graphs_of_few=8)
    monkeypatch.setattr("countless._graph.null_reference.RANDOM_GRAPHS", few)


def fit_in_time(estimator, X):
    """Fit, or end the process with a traceback if that takes for ever, in compiled code too."""
    faulthandler.dump_traceback_later(ENDLESS, exit=True)
    try:
        return estimator.fit(X)
    finally:
        faulthandler.cancel_dump_traceback_later()


def keep_contract(estimator, table):
    """Fit a table, and compare what comes of it with what is right."""
    try:
        fitted = fit_in_time(clone(estimator), table.X)
    except ValueError as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert table.may_refuse, refusal
        assert re.fullmatch(f".*({REASONS}).*", str(refusal)), refusal  # of one line
        assert not isinstance(refusal, np.linalg.LinAlgError)
        return
    labels = fitted.labels_
    assert labels.shape == (table.X.shape[0],)
    assert fitted.n_clusters_ == len(np.unique(labels)) == labels.max() + 1
    if table.labels is None:
        assert fitted.n_clusters_ <= table.most
    else:
        assert adjusted_rand_score(table.labels, labels) == 1
    history = np.asarray(getattr(fitted, "objective_history_", [0.0]))
    assert np.diff(history).max(initial=0.0) <= ROUNDING * abs(history[0])
    for name in ("cluster_centers_", "objective_", "penalty_", "confidence_"):
        value = getattr(fitted, name, None)
        assert value is None or np.isfinite(value).all(), name


def test_every_estimator_has_a_contract_case():
    asked = {type(each).__name__ for each in (*OF_TABLES.values(), *OF_PAIRS.values())}
    assert asked == set(ESTIMATORS)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in OF_TABLES for name in TABLES if is_asked(kind, name)],
)
def test_hostile_tables(kind, name):
    table, estimator = TABLES[name], OF_TABLES[kind]
    if (kind, name) in OTHER_ANSWERS:
        table = table._replace(labels=None, most=len(table.X) // 2)
    if (kind, name) in REFUSED:
        table = table._replace(may_refuse=True)
    if name in LONGER and "n_sweeps" in estimator.get_params():
        estimator = clone(estimator).set_params(n_sweeps=LONGER[name])
    keep_contract(estimator, table)


DISTANCES = cdist(hostile.BLOBS, hostile.BLOBS)
KERNEL = np.exp(-(DISTANCES**2) / 20)
WEIGHTS = np.where(KERNEL > 1e-3, KERNEL, 0.0)
PRECOMPUTED = {"kernel": "precomputed", "random_state": 0}
OF_PAIRS = {
    "AffinityPropagation": AffinityPropagation(affinity="precomputed", random_state=0),
    "DivisiveClustering": DivisiveClustering(metric="precomputed"),
    "GraphDPMeans": GraphDPMeans(random_state=0),
    "KernelDPMeans": KernelDPMeans(**PRECOMPUTED),
    "KernelHDPMeans": KernelHDPMeans(**PRECOMPUTED),
    "LinkageClustering ward": LinkageClustering("ward", metric="precomputed"),
    "SpectralDPMeans": SpectralDPMeans(**PRECOMPUTED),
}
MATRICES = {
    "AffinityPropagation": hostile.matrices(-(DISTANCES**2), 0.0),
    "DivisiveClustering": hostile.matrices(DISTANCES, 0.0),
    "GraphDPMeans": hostile.matrices(WEIGHTS, 1.0),
    "KernelDPMeans": hostile.matrices(KERNEL, 1.0),
    "KernelHDPMeans": hostile.matrices(KERNEL, 1.0),
    "LinkageClustering ward": hostile.matrices(DISTANCES, 0.0),
    "SpectralDPMeans": hostile.matrices(KERNEL, 1.0),
}


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        pytest.param(kind, table, id=f"{kind}-{table.name}")
        for kind in OF_PAIRS
        for table in MATRICES[kind]
    ],
)
def test_hostile_matrices(kind, table):
    keep_contract(OF_PAIRS[kind], table)


@st.composite
def transformed_blobs(draw):
    """Draw the blobs with other units, origin, type and number of copies."""
    copies = draw(st.integers(1, 3))
    if draw(st.booleans()):
        dtype, scale, offset = np.float32, draw(st.integers(-30, 30)), draw(st.integers(-4, 2))
    else:
        dtype, scale, offset = np.float64, draw(st.integers(-120, 120)), draw(st.integers(-4, 12))
    X = (np.repeat(hostile.BLOBS, copies, axis=0) + 10.0**offset) * 10.0**scale
    labels = np.repeat(hostile.TRUTH, copies)
    return hostile.Hostile("blobs", X.astype(dtype), labels)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(table=transformed_blobs())
@pytest.mark.parametrize("kind", ["DPMeans", "DivisiveClustering", "SpectralDPMeans"])
def test_no_transformation_changes_the_answer(kind, table):
    keep_contract(OF_TABLES[kind], table)
