"""Component models: conjugate likelihoods of the rows of one cluster.

Each has additive sufficient statistics, the log marginal likelihood, predictive densities,
posterior draws of parameters, and hyperparameters that are set from the data.
"""

from countless.models.columns import Columns
from countless.models.columnwise import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    FixedGaussian,
    Poisson,
)
from countless.models.gaussian import Gaussian
from countless.models.hyper import Hyper, InverseGamma
from countless.models.multinomial import Multinomial
from countless.models.protocol import BoundModel, Model

__all__ = [
    "Bernoulli",
    "BoundModel",
    "Categorical",
    "Columns",
    "DiagonalGaussian",
    "FixedGaussian",
    "Gaussian",
    "Hyper",
    "InverseGamma",
    "Model",
    "Multinomial",
    "Poisson",
]
