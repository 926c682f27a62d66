"""Priors over partitions: how many clusters, and of which sizes, before any data is seen."""

from countless.priors.base import PartitionPrior, Tables
from countless.priors.hyper import Beta, Gamma
from countless.priors.restaurant import DirichletProcess, FiniteDirichlet, PitmanYor
from countless.priors.sizes import SizePrior, UniformPartition

__all__ = [
    "Beta",
    "DirichletProcess",
    "FiniteDirichlet",
    "Gamma",
    "PartitionPrior",
    "PitmanYor",
    "SizePrior",
    "Tables",
    "UniformPartition",
]
