"""Clustering without choosing k."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countless.auto.estimator import AutoClustering
    from countless.bayes.bicluster.estimator import DPBiclustering
    from countless.bayes.crosscat.estimator import CrossCat
    from countless.bayes.hdp import HDPMixture
    from countless.bayes.mixture import DPMixture
    from countless.confidence import bootstrap
    from countless.exemplar.estimator import AffinityPropagation
    from countless.hard.dp_means import DPMeans
    from countless.hard.graph.estimator import GraphDPMeans
    from countless.hard.hdp.estimator import HDPMeans, hdp_penalties
    from countless.hard.kernel.dp import KernelDPMeans
    from countless.hard.kernel.hdp import KernelHDPMeans
    from countless.hard.penalty import farthest_first_penalty, penalty_path
    from countless.hard.spectral.estimator import SpectralDPMeans
    from countless.io.model_file import load_model, save_model
    from countless.tree.bhc import BayesianHierarchicalClustering
    from countless.tree.divisive import DivisiveClustering, LinkageClustering
    from countless.tree.gap import cut_gap

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
    "GraphDPMeans",
    "HDPMeans",
    "HDPMixture",
    "KernelDPMeans",
    "KernelHDPMeans",
    "LinkageClustering",
    "SpectralDPMeans",
    "__version__",
    "bootstrap",
    "cut_gap",
    "farthest_first_penalty",
    "hdp_penalties",
    "load_model",
    "penalty_path",
    "save_model",
]

# The module of each public name, which is imported when the name is first used.
_MODULE = {
    "AutoClustering": "countless.auto.estimator",
    "CrossCat": "countless.bayes.crosscat.estimator",
    "AffinityPropagation": "countless.exemplar.estimator",
    "BayesianHierarchicalClustering": "countless.tree.bhc",
    "DPBiclustering": "countless.bayes.bicluster.estimator",
    "DPMeans": "countless.hard.dp_means",
    "DPMixture": "countless.bayes.mixture",
    "DivisiveClustering": "countless.tree.divisive",
    "GraphDPMeans": "countless.hard.graph.estimator",
    "HDPMeans": "countless.hard.hdp.estimator",
    "HDPMixture": "countless.bayes.hdp",
    "KernelDPMeans": "countless.hard.kernel.dp",
    "KernelHDPMeans": "countless.hard.kernel.hdp",
    "LinkageClustering": "countless.tree.divisive",
    "SpectralDPMeans": "countless.hard.spectral.estimator",
    "bootstrap": "countless.confidence",
    "cut_gap": "countless.tree.gap",
    "farthest_first_penalty": "countless.hard.penalty",
    "hdp_penalties": "countless.hard.hdp.estimator",
    "load_model": "countless.io.model_file",
    "penalty_path": "countless.hard.penalty",
    "save_model": "countless.io.model_file",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'countless' has no attribute {name!r}")
    value = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
