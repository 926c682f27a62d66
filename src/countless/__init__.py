"""Clustering without choosing k."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from countless._registry import PUBLIC

if TYPE_CHECKING:
    from countless._path.model_penalty import aic_penalty as aic_penalty
    from countless._path.model_penalty import alpha_from_penalty as alpha_from_penalty
    from countless._path.model_penalty import penalty_from_alpha as penalty_from_alpha
    from countless._path.penalty import farthest_first_penalty as farthest_first_penalty
    from countless._path.penalty import penalty_path as penalty_path
    from countless._report.describe import describe as describe
    from countless._report.page import report as report
    from countless._tree.gap import cut_gap as cut_gap
    from countless.affinity_propagation import AffinityPropagation as AffinityPropagation
    from countless.auto import AutoClustering as AutoClustering
    from countless.bhc import BayesianHierarchicalClustering as BayesianHierarchicalClustering
    from countless.biclustering import DPBiclustering as DPBiclustering
    from countless.crosscat import CrossCat as CrossCat
    from countless.divisive import DivisiveClustering as DivisiveClustering
    from countless.divisive import LinkageClustering as LinkageClustering
    from countless.dp_means import DPMeans as DPMeans
    from countless.dp_mixture import DPMixture as DPMixture
    from countless.duplicates import near_duplicates as near_duplicates
    from countless.edited_clustering import EditedClustering as EditedClustering
    from countless.edited_clustering import apply_edits as apply_edits
    from countless.graph_dp_means import GraphDPMeans as GraphDPMeans
    from countless.hdp_means import HDPMeans as HDPMeans
    from countless.hdp_means import hdp_penalties as hdp_penalties
    from countless.hdp_mixture import HDPMixture as HDPMixture
    from countless.kernel_dp_means import KernelDPMeans as KernelDPMeans
    from countless.kernel_hdp_means import KernelHDPMeans as KernelHDPMeans
    from countless.serialize.model_file import load_model as load_model
    from countless.serialize.model_file import save_model as save_model
    from countless.spectral_dp_means import SpectralDPMeans as SpectralDPMeans
    from countless.stability import bootstrap as bootstrap

__version__ = "0.1.0"

__all__ = ["__version__", *PUBLIC]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in PUBLIC:
        raise AttributeError(f"module 'countless' has no attribute {name!r}")
    value = getattr(import_module(PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
