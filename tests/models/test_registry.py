"""Every component model is in the registry, and wherever a model must be."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import countless.models
from countless.models.protocol import Model
from countless.models.registry import MODELS, as_model, model_class

MODULES = {path.stem for path in Path(countless.models.__file__).parent.glob("*.py")}
DOCS = Path(__file__).parents[2] / "docs"


def test_every_model_class_is_registered():
    defined = {
        (module, name)
        for module in MODULES - {"__init__"}
        for name, made in inspect.getmembers(import_module(f"countless.models.{module}"))
        if inspect.isclass(made)
        and issubclass(made, Model)
        and not inspect.isabstract(made)
        and made.__module__ == f"countless.models.{module}"
    }
    assert defined == set(MODELS.values()), "list the model in models/registry.py"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_wherever_models_are(name, cases):
    made = model_class(name)
    assert name in cases, "add a case to tests/models/conftest.py"
    assert type(cases[name].given) is made
    assert made.__name__ in countless.models.__all__
    assert getattr(countless.models, made.__name__) is made
    if DOCS.exists():
        entry = f"   ~countless.models.{made.__name__}\n"
        assert entry in (DOCS / "api.md").read_text(encoding="utf-8"), "add it to docs/api.md"
        guide = (DOCS / "models.md").read_text(encoding="utf-8")
        assert f"| `{made.__name__}` |" in guide, "describe it in docs/models.md"


@pytest.mark.parametrize("name", MODELS)
def test_facts_of_a_model_are_true(name, cases):
    """What the class says of missing values and scaling is what binding it does."""
    made, X = model_class(name), cases[name].X.astype(object)
    X[0, 0] = None
    if made.allow_nan:
        made().bind(X).rows(X)
    else:
        with pytest.raises(ValueError, match="row 0, column 0"):
            made().bind(X)
    if made.for_cells:
        assert made().bind(X[:, :1]).n_features == 1
        assert made.column_type is None or isinstance(made.column_type, str)


def test_the_list_of_models_imports_no_model():
    code = "import sys; import countless.models.registry; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="model must be one of 'gaussian', "):
        as_model("gausian")
    with pytest.raises(AttributeError, match="has no attribute 'Gausian'"):
        _ = countless.models.Gausian
