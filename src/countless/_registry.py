"""The public estimators, each once: other lists of estimators and methods are read from here.

``import countless`` (public names), the command (``--method``, ``countless methods``), model files,
and the contract tests (scikit-learn's checks, hostile tables, imports, the reference page) read it.
It imports nothing but the standard library.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Estimator(NamedTuple):
    """An estimator class, and what the command, model files and tests must know about it.

    Examples
    --------
    >>> from countless._registry import ESTIMATORS
    >>> ESTIMATORS["DPMeans"].make(penalty=2.0)
    DPMeans(penalty=2.0)
    """

    class_name: str
    module: str
    takes: str = "rows"  # prepared rows; or "edges" of a graph; or "table", columns as they are
    gives: str = "clusters"  # of rows; or of "nodes"; "blocks" of rows and columns; "views"
    # Of the command's options for large or endless tables, and for layers.
    supports: tuple[str, ...] = ()
    is_saved: bool = True  # whether `countless.serialize` has a serializer of this class
    quick: Mapping[str, Any] = _NOTHING  # parameters with which a fit of a small table is fast

    def load(self) -> type:
        """Import the class."""
        return getattr(import_module(self.module), self.class_name)

    def make(self, **parameters: Any) -> Any:
        """Return an estimator with these parameters."""
        return self.load()(**parameters)

    def parameters(self) -> list[str]:
        """Return the names of the parameters."""
        return sorted(self.make().get_params(deep=False))


class Method(NamedTuple):
    """A value of ``--method``: an estimator, some of its parameters fixed.

    Examples
    --------
    >>> from countless._registry import METHODS
    >>> METHODS["mst"].make(max_diameter=2.0)
    DivisiveClustering(max_diameter=2.0, method='mst')
    """

    name: str
    estimator: Estimator
    summary: str
    key_parameter: str  # the one that its user has to know
    defaults: Mapping[str, Any] = _NOTHING
    # Parameters with which it takes dissimilarities of rows, or similarities made of them, and how.
    pairs: Mapping[str, Any] | None = None
    similarity: str | None = None
    picture: str = ""  # what --plot draws: path, posterior, blocks or candidates

    def make(self, **parameters: Any) -> Any:
        """Return an estimator with the method's defaults, changed by ``parameters``."""
        return self.estimator.make(**{**self.defaults, **parameters})

    def parameters(self) -> list[str]:
        """Return the names of the parameters that can be set."""
        return self.estimator.parameters()


_CHAIN = {"n_chains": 1, "n_sweeps": 6}

_DIVISIVE = Estimator("DivisiveClustering", "countless.divisive", supports=("layers",))

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "affinity",
                Estimator(
                    "AffinityPropagation", "countless.affinity_propagation", supports=("layers",)
                ),
                "as many exemplars among the rows as messages between them settle on",
                "preference",
                {"preference": "auto"},
                pairs={"affinity": "precomputed"},
                similarity="negative",
            ),
            Method(
                "auto",
                # What is saved is the estimator that it chose.
                Estimator("AutoClustering", "countless.auto", supports=("layers",), is_saved=False),
                "the default: round, elliptical or connected clusters, whichever the data supports",
                "candidates",
                picture="candidates",
            ),
            Method(
                "bhc",
                Estimator("BayesianHierarchicalClustering", "countless.bhc"),
                "a tree of merges that are tests of one cluster against many, cut where they fail",
                "alpha",
            ),
            Method(
                "bicluster",
                Estimator(
                    "DPBiclustering",
                    "countless.biclustering",
                    takes="table",
                    gives="blocks",
                    quick=_CHAIN,
                ),
                "clusters of rows and columns at once, in blocks that are alike; takes missing "
                "values",
                "model",
                picture="blocks",
            ),
            Method(
                "bisecting",
                _DIVISIVE,
                "k-means by splitting one cluster in two, as often as the data supports",
                "max_diameter",
                {"method": "bisecting"},
            ),
            Method(
                "crosscat",
                Estimator(
                    "CrossCat",
                    "countless.crosscat",
                    takes="table",
                    gives="views",
                    quick={"n_chains": 1, "n_sweeps": 20},
                ),
                "columns that belong together, and groups of rows for each set; takes missing "
                "values",
                "models",
            ),
            Method(
                "diana",
                _DIVISIVE,
                "a tree from the top: the rows least like the others leave; cut at a wide gap",
                "max_diameter",
                {"method": "diana"},
                pairs={"metric": "precomputed"},
            ),
            Method(
                "dp-means",
                Estimator(
                    "DPMeans",
                    "countless.dp_means",
                    supports=(
                        *("out-of-core", "dask", "stream", "checkpoint"),
                        *("optimality-gap", "layers"),
                    ),
                ),
                "round clusters: as many centers as the data supports, each at the penalty's cost",
                "penalty",
                picture="path",
            ),
            Method(
                "dp-mixture",
                Estimator(
                    "DPMixture", "countless.dp_mixture", quick={"n_chains": 1, "n_sweeps": 10}
                ),
                "clusters of a --model drawn from their posterior: how many, and how sure",
                "model",
                picture="posterior",
            ),
            Method(
                "graph-dp-means",
                Estimator(
                    "GraphDPMeans",
                    "countless.graph_dp_means",
                    takes="edges",
                    gives="nodes",
                    is_saved=False,
                ),
                "clusters of a graph's nodes with few links between them; reads an edge list",
                "penalty",
            ),
            Method(
                "hdp-means",
                Estimator("HDPMeans", "countless.hdp_means", supports=("optimality-gap",)),
                "several data sets (--group) that share centers, each at a penalty of its own",
                "global_penalty",
            ),
            Method(
                "hdp-mixture",
                Estimator("HDPMixture", "countless.hdp_mixture", quick=_CHAIN),
                "clusters of a --model that several data sets (--group) share, as by dp-mixture",
                "model",
                picture="posterior",
            ),
            Method(
                "kernel-dp-means",
                Estimator("KernelDPMeans", "countless.kernel_dp_means", supports=("layers",)),
                "dp-means in the feature space of a kernel; memory grows with the square of the "
                "rows",
                "penalty",
                pairs={"kernel": "precomputed"},
                similarity="inner",
                picture="path",
            ),
            Method(
                "kernel-hdp-means",
                Estimator("KernelHDPMeans", "countless.kernel_hdp_means"),
                "hdp-means in the feature space of a kernel, for several data sets (--group)",
                "global_penalty",
                pairs={"kernel": "precomputed"},
                similarity="inner",
            ),
            Method(
                "linkage",
                Estimator("LinkageClustering", "countless.divisive", supports=("layers",)),
                "a tree from the bottom: average linkage or another of SciPy's; cut at a wide gap",
                "method",
                pairs={"metric": "precomputed"},
            ),
            Method(
                "mst",
                _DIVISIVE,
                "connected shapes: the longest edges of the minimum spanning tree are cut",
                "max_diameter",
                {"method": "mst"},
                pairs={"metric": "precomputed"},
            ),
            Method(
                "spectral-dp-means",
                Estimator("SpectralDPMeans", "countless.spectral_dp_means", supports=("layers",)),
                "connected shapes, by the eigenvectors of a graph of nearest neighbors",
                "penalty",
                pairs={"kernel": "precomputed"},
                similarity="exponential",
                picture="path",
            ),
        )
    }
)

ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {method.estimator.class_name: method.estimator for method in METHODS.values()}
)

# The class that `apply_edits` makes of a fitted estimator; it has no fit of its own.
EDITED_CLUSTERING = Estimator("EditedClustering", "countless.edited_clustering")

# Public functions, and the modules that they are imported from.
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "aic_penalty": "countless._path.model_penalty",
        "alpha_from_penalty": "countless._path.model_penalty",
        "apply_edits": "countless.edited_clustering",
        "bootstrap": "countless.stability",
        "cut_gap": "countless._tree.gap",
        "describe": "countless._report.describe",
        "farthest_first_penalty": "countless._path.penalty",
        "hdp_penalties": "countless.hdp_means",
        "load_model": "countless.serialize.model_file",
        "near_duplicates": "countless.duplicates",
        "penalty_from_alpha": "countless._path.model_penalty",
        "penalty_path": "countless._path.penalty",
        "report": "countless._report.page",
        "save_model": "countless.serialize.model_file",
    }
)

# The module of each public name.
PUBLIC: Mapping[str, str] = MappingProxyType(
    {
        **{name: entry.module for name, entry in ESTIMATORS.items()},
        EDITED_CLUSTERING.class_name: EDITED_CLUSTERING.module,
        **FUNCTIONS,
    }
)
