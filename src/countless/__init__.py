"""Clustering without choosing k."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countless._path.penalty import farthest_first_penalty, penalty_path
    from countless._report.page import report
    from countless._tree.gap import cut_gap
    from countless.affinity_propagation import AffinityPropagation
    from countless.auto import AutoClustering
    from countless.bhc import BayesianHierarchicalClustering
    from countless.biclustering import DPBiclustering
    from countless.crosscat import CrossCat
    from countless.divisive import DivisiveClustering, LinkageClustering
    from countless.dp_means import DPMeans
    from countless.dp_mixture import DPMixture
    from countless.edited_clustering import EditedClustering, apply_edits
    from countless.graph_dp_means import GraphDPMeans
    from countless.hdp_means import HDPMeans, hdp_penalties
    from countless.hdp_mixture import HDPMixture
    from countless.kernel_dp_means import KernelDPMeans
    from countless.kernel_hdp_means import KernelHDPMeans
    from countless.serialize.model_file import load_model, save_model
    from countless.spectral_dp_means import SpectralDPMeans
    from countless.stability import bootstrap

__version__ = "0.1.0.dev0"

__all__ = [
    "AffinityPropagation",
    "AutoClustering",
    "BayesianHierarchicalClustering",
    "CrossCat",
    "DPBiclustering",
    "DPMeans",
    "DPMixture",
    "DivisiveClustering",
    "EditedClustering",
    "GraphDPMeans",
    "HDPMeans",
    "HDPMixture",
    "KernelDPMeans",
    "KernelHDPMeans",
    "LinkageClustering",
    "SpectralDPMeans",
    "__version__",
    "apply_edits",
    "bootstrap",
    "cut_gap",
    "farthest_first_penalty",
    "hdp_penalties",
    "load_model",
    "penalty_path",
    "report",
    "save_model",
]

# The module of each public name, which is imported when the name is first used.
_MODULE = {
    "AutoClustering": "countless.auto",
    "CrossCat": "countless.crosscat",
    "AffinityPropagation": "countless.affinity_propagation",
    "BayesianHierarchicalClustering": "countless.bhc",
    "DPBiclustering": "countless.biclustering",
    "DPMeans": "countless.dp_means",
    "DPMixture": "countless.dp_mixture",
    "DivisiveClustering": "countless.divisive",
    "EditedClustering": "countless.edited_clustering",
    "GraphDPMeans": "countless.graph_dp_means",
    "HDPMeans": "countless.hdp_means",
    "HDPMixture": "countless.hdp_mixture",
    "KernelDPMeans": "countless.kernel_dp_means",
    "KernelHDPMeans": "countless.kernel_hdp_means",
    "LinkageClustering": "countless.divisive",
    "SpectralDPMeans": "countless.spectral_dp_means",
    "apply_edits": "countless.edited_clustering",
    "bootstrap": "countless.stability",
    "cut_gap": "countless._tree.gap",
    "farthest_first_penalty": "countless._path.penalty",
    "hdp_penalties": "countless.hdp_means",
    "load_model": "countless.serialize.model_file",
    "penalty_path": "countless._path.penalty",
    "report": "countless._report.page",
    "save_model": "countless.serialize.model_file",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'countless' has no attribute {name!r}")
    value = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
