"""Pictures, with matplotlib: ``pip install 'countless[plot]'``."""

from countless.plot.bicluster import BiclusterDisplay
from countless.plot.candidates import CandidatesDisplay
from countless.plot.cluster_count import ClusterCountDisplay
from countless.plot.components import ComponentsDisplay
from countless.plot.dendrogram import DendrogramDisplay
from countless.plot.dependence import DependenceDisplay
from countless.plot.heatmap import HeatmapDisplay
from countless.plot.path import PenaltyPathDisplay
from countless.plot.similarity import SimilarityDisplay
from countless.plot.stability import StabilityDisplay
from countless.plot.trace import TraceDisplay
from countless.plot.views import ViewsDisplay

__all__ = [
    "BiclusterDisplay",
    "CandidatesDisplay",
    "ClusterCountDisplay",
    "ComponentsDisplay",
    "DendrogramDisplay",
    "DependenceDisplay",
    "HeatmapDisplay",
    "PenaltyPathDisplay",
    "SimilarityDisplay",
    "StabilityDisplay",
    "TraceDisplay",
    "ViewsDisplay",
]
