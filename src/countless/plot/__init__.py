"""Pictures, with matplotlib: ``pip install 'countless[plot]'``."""

from countless.plot.path import PenaltyPathDisplay

__all__ = ["PenaltyPathDisplay"]
