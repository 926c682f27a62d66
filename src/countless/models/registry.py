"""Every component model once: its short name, and where its class is.

The public names of `countless.models`, models by name, model files and the command read this list,
which imports no model. What a model can do is said by the attributes of its class
(`countless.models.protocol.Model`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from countless.models.protocol import Model

# The module and the class of each model, by its name.
MODELS = {
    "gaussian": ("gaussian", "Gaussian"),
    "diagonal": ("columnwise", "DiagonalGaussian"),
    "fixed": ("columnwise", "FixedGaussian"),
    "bernoulli": ("columnwise", "Bernoulli"),
    "categorical": ("columnwise", "Categorical"),
    "poisson": ("columnwise", "Poisson"),
    "multinomial": ("multinomial", "Multinomial"),
    "columns": ("columns", "Columns"),
}


def model_class(name: str) -> type[Model]:
    """Return the class of a model by its name; raise a KeyError if there is none.

    Examples
    --------
    >>> from countless.models.registry import model_class
    >>> model_class("diagonal").__name__
    'DiagonalGaussian'
    """
    module, class_name = MODELS[name]
    return getattr(import_module(f"countless.models.{module}"), class_name)


def as_model(model: str | Model) -> Model:
    """Return a given model, or the model of this name with default parameters.

    Examples
    --------
    >>> from countless.models import Poisson
    >>> from countless.models.registry import as_model
    >>> as_model("gaussian"), as_model(Poisson(shape=2))
    (Gaussian(), Poisson(shape=2))
    """
    from countless.models.protocol import Model

    if isinstance(model, Model):
        return model
    if isinstance(model, str) and model in MODELS:
        return model_class(model)()
    names = ", ".join(map(repr, MODELS))
    raise ValueError(f"model must be one of {names}, or a model; got {model!r}")
