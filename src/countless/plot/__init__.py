"""Pictures, with matplotlib: ``pip install 'countless[plot]'``."""

from countless.plot.dendrogram import DendrogramDisplay
from countless.plot.heatmap import HeatmapDisplay
from countless.plot.path import PenaltyPathDisplay

__all__ = ["DendrogramDisplay", "HeatmapDisplay", "PenaltyPathDisplay"]
