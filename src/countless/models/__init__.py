"""Component models: what one cluster looks like.

Each has statistics that add up over rows, and everything that clustering asks of them: the log
marginal likelihood, predictive densities, draws, and hyperparameters from the data.
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
