"""Prior distributions of partitions: of the number of clusters and of their sizes."""

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
