"""Every method that ``--method`` can name: the estimators of countless, then the baselines."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from .._errors import InputError
from ..baselines import BASELINES, Method

ESTIMATORS: Mapping[str, Method] = {
    "affinity": Method(
        "affinity",
        "countless.affinity_propagation",
        "AffinityPropagation",
        "as many exemplars among the rows as messages between them settle on",
        "preference",
        {"preference": "auto"},
        pairs={"affinity": "precomputed"},
        similarity="negative",
    ),
    "auto": Method(
        "auto",
        "countless.auto",
        "AutoClustering",
        "the default: round, elliptical or connected clusters, whichever the data supports",
        "candidates",
    ),
    "bhc": Method(
        "bhc",
        "countless.bhc",
        "BayesianHierarchicalClustering",
        "a tree of merges that are tests of one cluster against many, cut where they fail",
        "alpha",
    ),
    "bicluster": Method(
        "bicluster",
        "countless.biclustering",
        "DPBiclustering",
        "clusters of rows and of columns at once, whose blocks are alike; takes missing values",
        "model",
        takes="table",
    ),
    "bisecting": Method(
        "bisecting",
        "countless.divisive",
        "DivisiveClustering",
        "k-means by splitting one cluster in two, again and again, as often as the data asks for",
        "max_diameter",
        {"method": "bisecting"},
    ),
    "crosscat": Method(
        "crosscat",
        "countless.crosscat",
        "CrossCat",
        "columns that belong together, and groups of rows for each set; takes missing values",
        "models",
        takes="table",
    ),
    "diana": Method(
        "diana",
        "countless.divisive",
        "DivisiveClustering",
        "a tree from the top: the rows least like the others leave, until a gap says stop",
        "max_diameter",
        {"method": "diana"},
        pairs={"metric": "precomputed"},
    ),
    "dp-means": Method(
        "dp-means",
        "countless.dp_means",
        "DPMeans",
        "round clusters: as many centers as the data asks for, each at the price of the penalty",
        "penalty",
    ),
    "dp-mixture": Method(
        "dp-mixture",
        "countless.dp_mixture",
        "DPMixture",
        "clusters of a --model drawn from their posterior: how many there are, and how sure",
        "model",
    ),
    "graph-dp-means": Method(
        "graph-dp-means",
        "countless.graph_dp_means",
        "GraphDPMeans",
        "clusters of a graph's nodes with few links between them; reads an edge list",
        "penalty",
        takes="edges",
    ),
    "hdp-means": Method(
        "hdp-means",
        "countless.hdp_means",
        "HDPMeans",
        "several data sets (--group) that share centers, each for a price of its own",
        "global_penalty",
    ),
    "hdp-mixture": Method(
        "hdp-mixture",
        "countless.hdp_mixture",
        "HDPMixture",
        "clusters of a --model that several data sets (--group) share, drawn as by dp-mixture",
        "model",
    ),
    "kernel-dp-means": Method(
        "kernel-dp-means",
        "countless.kernel_dp_means",
        "KernelDPMeans",
        "dp-means in the feature space of a kernel; memory grows with the square of the rows",
        "penalty",
        pairs={"kernel": "precomputed"},
        similarity="inner",
    ),
    "kernel-hdp-means": Method(
        "kernel-hdp-means",
        "countless.kernel_hdp_means",
        "KernelHDPMeans",
        "hdp-means in the feature space of a kernel, for several data sets (--group)",
        "global_penalty",
        pairs={"kernel": "precomputed"},
        similarity="inner",
    ),
    "linkage": Method(
        "linkage",
        "countless.divisive",
        "LinkageClustering",
        "a tree from the bottom: average linkage or another of SciPy's, cut at its widest gap",
        "method",
        pairs={"metric": "precomputed"},
    ),
    "mst": Method(
        "mst",
        "countless.divisive",
        "DivisiveClustering",
        "shapes that hang together: the longest edges of the minimum spanning tree are cut",
        "max_diameter",
        {"method": "mst"},
        pairs={"metric": "precomputed"},
    ),
    "spectral-dp-means": Method(
        "spectral-dp-means",
        "countless.spectral_dp_means",
        "SpectralDPMeans",
        "shapes that hang together, by the eigenvectors of a graph of nearest neighbours",
        "penalty",
        pairs={"kernel": "precomputed"},
        similarity="exponential",
    ),
}
METHODS: Mapping[str, Method] = {**ESTIMATORS, **BASELINES}
DEFAULT, DEFAULT_FOR_GROUPS, DEFAULT_FOR_OPTIONS = "auto", "hdp-means", "dp-means"
OUT_OF_CORE = ("dp-means",)  # methods that support tables out of core
SAMPLED = ("bicluster", "dp-mixture", "hdp-mixture")  # methods with posterior draws

_WORDS = {"none": None, "true": True, "false": False}


def check_names(name: str, given: Iterable[str], valid: Iterable[str]) -> None:
    """Raise an error that names an unknown parameter of a method, and lists the known ones."""
    valid = list(valid)
    for parameter in given:
        if parameter not in valid:
            close = get_close_matches(parameter, valid, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(
                f"{name} has no parameter {parameter!r}; {hint}it has {', '.join(valid)}"
            )


def make_estimator(
    name: str, given: Mapping[str, Any], *, seed: int | None, jobs: int | None
) -> Any:
    """Return an estimator with the given parameters, and seed and threads if it has them.

    Examples
    --------
    >>> make_estimator("k-means", {"n_clusters": 3}, seed=0, jobs=None)
    KMeans(n_clusters=3, n_init=10, random_state=0)
    """
    method = METHODS[name]
    valid = method.parameters()
    check_names(name, given, valid)
    parameters = dict(given)
    if "random_state" in valid:
        parameters.setdefault("random_state", seed)
    if "n_jobs" in valid and jobs is not None:
        parameters.setdefault("n_jobs", jobs)
    return method.make(**parameters)


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Parse ``key=value`` texts to parameters: numbers, true, false, none, or text.

    Examples
    --------
    >>> parse_settings(["n_clusters=3", "divergence=kl", "refine=false"])
    {'n_clusters': 3, 'divergence': 'kl', 'refine': False}
    """
    parameters: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {setting!r} must be written as key=value")
        if key.strip() in parameters:
            raise InputError(f"--set gives {key.strip()!r} twice")
        parameters[key.strip()] = _value(text.strip())
    return parameters


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        number = json.loads(text)
    except json.JSONDecodeError:
        return text
    return number if isinstance(number, int | float) else text
