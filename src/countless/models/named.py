"""Lookup of models by name, for estimators and the command line."""

from __future__ import annotations

from countless.models.columns import Columns
from countless.models.columnwise import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    FixedGaussian,
    Poisson,
)
from countless.models.gaussian import Gaussian
from countless.models.multinomial import Multinomial
from countless.models.protocol import Model

MODELS: dict[str, type[Model]] = {
    "gaussian": Gaussian,
    "diagonal": DiagonalGaussian,
    "fixed": FixedGaussian,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "poisson": Poisson,
    "multinomial": Multinomial,
    "columns": Columns,
}


def as_model(model: str | Model) -> Model:
    """Return a given model, or the model of this name with default parameters.

    Examples
    --------
    >>> from countless.models import Poisson
    >>> from countless.models.named import as_model
    >>> as_model("gaussian"), as_model(Poisson(shape=2))
    (Gaussian(), Poisson(shape=2))
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, str) and model in MODELS:
        return MODELS[model]()
    names = ", ".join(map(repr, MODELS))
    raise ValueError(f"model must be one of {names}, or a model; got {model!r}")
