"""Component models: conjugate likelihoods of the rows of one cluster.

Each has additive sufficient statistics, the log marginal likelihood, predictive densities,
posterior draws of parameters, and hyperparameters that are set from the data. Public names are
imported on first use, so that the list of models in `countless.models.registry` is read fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from countless.models.registry import MODELS

if TYPE_CHECKING:
    from countless.models.columns import Columns as Columns
    from countless.models.columnwise import Bernoulli as Bernoulli
    from countless.models.columnwise import Categorical as Categorical
    from countless.models.columnwise import DiagonalGaussian as DiagonalGaussian
    from countless.models.columnwise import FixedGaussian as FixedGaussian
    from countless.models.columnwise import Poisson as Poisson
    from countless.models.gaussian import Gaussian as Gaussian
    from countless.models.hyper import Hyper as Hyper
    from countless.models.hyper import InverseGamma as InverseGamma
    from countless.models.multinomial import Multinomial as Multinomial
    from countless.models.protocol import BoundModel as BoundModel
    from countless.models.protocol import Model as Model

_MODULE = {class_name: module for module, class_name in MODELS.values()} | {
    "BoundModel": "protocol",
    "Hyper": "hyper",
    "InverseGamma": "hyper",
    "Model": "protocol",
}

__all__ = sorted(_MODULE)


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'countless.models' has no attribute {name!r}")
    value = getattr(import_module(f"countless.models.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
