"""Clustering without choosing k."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countless.bayes.mixture import DPMixture
    from countless.exemplar.estimator import AffinityPropagation
    from countless.hard.dp_means import DPMeans
    from countless.hard.graph.estimator import GraphDPMeans
    from countless.hard.hdp.estimator import HDPMeans, hdp_penalties
    from countless.hard.kernel.dp import KernelDPMeans
    from countless.hard.kernel.hdp import KernelHDPMeans
    from countless.hard.penalty import farthest_first_penalty, penalty_path
    from countless.hard.spectral.estimator import SpectralDPMeans
    from countless.tree.bhc import BayesianHierarchicalClustering

__version__ = "0.1.0.dev0"

__all__ = [
    "AffinityPropagation",
    "BayesianHierarchicalClustering",
    "DPMeans",
    "DPMixture",
    "GraphDPMeans",
    "HDPMeans",
    "KernelDPMeans",
    "KernelHDPMeans",
    "SpectralDPMeans",
    "__version__",
    "farthest_first_penalty",
    "hdp_penalties",
    "penalty_path",
]

# Where each public name lives; a name is imported when it is first asked for.
_HOME = {
    "AffinityPropagation": "countless.exemplar.estimator",
    "BayesianHierarchicalClustering": "countless.tree.bhc",
    "DPMeans": "countless.hard.dp_means",
    "DPMixture": "countless.bayes.mixture",
    "GraphDPMeans": "countless.hard.graph.estimator",
    "HDPMeans": "countless.hard.hdp.estimator",
    "KernelDPMeans": "countless.hard.kernel.dp",
    "KernelHDPMeans": "countless.hard.kernel.hdp",
    "SpectralDPMeans": "countless.hard.spectral.estimator",
    "farthest_first_penalty": "countless.hard.penalty",
    "hdp_penalties": "countless.hard.hdp.estimator",
    "penalty_path": "countless.hard.penalty",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'countless' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
