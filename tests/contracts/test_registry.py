"""An estimator in the registry stands everywhere else too; a failure names the missing place."""

import ast
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import countless
from countless._registry import ESTIMATORS, FUNCTIONS, METHODS, PUBLIC
from countless.baselines import BASELINES
from countless.cli.run import _PICTURES
from countless.serialize import SERIALIZERS

ROOT = Path(countless.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"


def imported_for_type_checkers():
    """Return the names that ``countless/__init__.py`` imports under TYPE_CHECKING, with modules."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body for alias in node.names}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_an_estimator(name):
    entry = ESTIMATORS[name]
    estimator = entry.make(**entry.quick)
    assert isinstance(estimator, BaseEstimator)
    assert type(estimator) is getattr(countless, name)
    assert type(estimator).__module__ == entry.module


def test_type_checkers_see_the_public_names():
    assert imported_for_type_checkers() == PUBLIC, "TYPE_CHECKING block of countless/__init__.py"


def test_what_a_model_file_can_hold_has_a_serializer():
    entries = [*ESTIMATORS.values(), *(method.estimator for method in BASELINES.values())]
    saved = {entry.class_name for entry in entries if entry.is_saved}
    # Not fitted by users: AutoClustering chooses the first two, apply_edits makes the other.
    internal = {"MergedMixture", "NeighborCommunities", "EditedClustering"}
    assert set(SERIALIZERS) - internal == saved, "Serializer in countless/serialize"


@pytest.mark.parametrize("name", sorted({*ESTIMATORS, *FUNCTIONS}))
def test_a_public_name_is_in_the_reference(name):
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert f"   ~countless.{name}\n" in page, "docs/api.md"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_in_the_guide_and_the_changes(name):
    guide = "".join(
        page.read_text(encoding="utf-8") for page in DOCS.glob("*.md") if page.name != "api.md"
    )
    assert re.search(rf"\b{name}\b", guide), "a page of docs/"
    changes = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{name}\b", changes), "CHANGELOG.md"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_what_its_user_has_to_know(name):
    method = METHODS[name]
    known = method.parameters()
    assert {method.key_parameter, *method.defaults, *(method.pairs or ())} <= set(known)
    assert set(method.estimator.quick) <= set(known)
    assert method.summary[0].islower()
    assert method.picture in {"", "blocks", *_PICTURES}


def test_names_are_those_of_the_methods():
    assert all(name == method.name for name, method in {**METHODS, **BASELINES}.items())
    assert not set(METHODS) & set(BASELINES)
