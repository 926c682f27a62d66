"""Imports point one way, and `import countless` stays light."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import countless
from countless._registry import ESTIMATORS

PACKAGE = Path(countless.__file__).parent

# Each part of the package stands on a floor and imports its own floor or lower ones only.
FLOORS = (
    {"kernels"},
    {
        "_compat",
        "_data",
        "_errors",
        "_files",
        "_formats",
        "_labels",
        "_memory",
        "_numbers",
        "_parameters",
        "_registry",
        "_show",
        "_threads",
        "datasets",
        "dissimilarity",
        "divergences",
        "duplicates",
        "metrics",
        "models",
        "priors",
    },
    {"_edits", "_exemplar", "_graph", "_mcmc", "_path", "_search", "_spectral", "_tree"},
    # The public estimators but those that choose or change others.
    {entry.module.split(".")[1] for entry in ESTIMATORS.values()} - {"auto"}
    | {"_kernel_estimator", "baselines", "k_medoids", "stability"},
    {"_auto", "auto", "edited_clustering"},
    {"_export", "_report", "anndata", "image", "plot", "preprocess", "serialize"},
    {"cli", "__main__"},
)
FLOOR = {part: level for level, parts in enumerate(FLOORS) for part in parts}

KERNEL_PACKAGES = {"numpy", "numba", "countless"}
HEAVY = ("numba", "scipy", "sklearn", "numpy", "pandas", "pyarrow", "matplotlib", "click", "rich")

INSIDE = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]

KERNELS = [path for path in INSIDE if path.parent == PACKAGE / "kernels"]
NOT_COMPAT = [path for path in INSIDE if path != PACKAGE / "_compat.py"]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def for_types_only(tree: ast.Module) -> set[ast.AST]:
    """Return the imports under ``if TYPE_CHECKING``, which do not run."""
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {inner for block in blocks for inner in ast.walk(block)}


@cache
def imported(path: Path, *, when_run: bool = False) -> list[str]:
    """Return the dotted names a module imports anywhere in its text, relative ones resolved."""
    package = ["countless", *path.relative_to(PACKAGE).parent.parts]
    names = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = for_types_only(tree) if when_run else set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            names += [f"{origin}.{alias.name}" for alias in node.names]
    return names


def parts_used(path: Path) -> set[str]:
    """Return the parts of the package that a module imports."""
    inside = [name.split(".")[1] for name in imported(path) if name.startswith("countless.")]
    return {part for part in inside if part in FLOOR}


def modules_after(statement: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after a statement."""
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("path", INSIDE, ids=name_of)
def test_every_module_has_a_floor(path):
    assert part_of(path) in FLOOR, f"say in FLOORS where {part_of(path)} belongs"


@pytest.mark.parametrize("path", INSIDE, ids=name_of)
def test_imports_point_down(path):
    upwards = {part for part in parts_used(path) if FLOOR[part] > FLOOR[part_of(path)]}
    assert not upwards, f"{name_of(path)} imports {upwards}, which stand above it"


@pytest.mark.parametrize("path", INSIDE, ids=name_of)
def test_modules_import_from_each_other_and_not_from_the_top(path):
    # The lazy public names would hide which part is meant.
    lazy = {"countless", *(f"countless.{name}" for name in countless.__all__)}
    assert not set(imported(path)) & (lazy - {"countless.__version__"})


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_kernels_import_numpy_and_numba_only(path):
    outside = {name.split(".")[0] for name in imported(path)} - set(sys.stdlib_module_names)
    assert outside <= KERNEL_PACKAGES
    assert parts_used(path) <= {"kernels"}


@pytest.mark.parametrize("path", NOT_COMPAT, ids=name_of)
def test_private_scikit_learn_names_stay_in_compat(path):
    private = [
        name
        for name in imported(path)
        if name.startswith("sklearn.") and any(word.startswith("_") for word in name.split("."))
    ]
    assert not private, f"{name_of(path)} imports {private}: put it into _compat.py"


def modules():
    """Return the modules of the package by name, and what each imports when it runs."""
    paths = {
        ".".join(["countless", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(
            ".__init__"
        ): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    return {
        module: {
            name if name in paths else name.rpartition(".")[0]
            for name in imported(path, when_run=True)
        }
        & (set(paths) - {module})
        for module, path in paths.items()
    }


def cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the modules that import each other, directly or through others."""
    n_modules, order = len(imports), sorted(imports)
    place = {module: i for i, module in enumerate(order)}
    edges = [(place[a], place[b]) for a in order for b in imports[a]]
    a, b = zip(*edges, strict=True)
    graph = coo_array((np.ones(len(edges)), (a, b)), shape=(n_modules, n_modules))
    _, label = connected_components(graph, connection="strong")
    groups = [[order[i] for i in np.flatnonzero(label == each)] for each in np.unique(label)]
    return [group for group in groups if len(group) > 1]


def test_no_module_imports_itself_through_others():
    assert cycles(modules()) == []


def test_the_check_of_cycles_can_fail():
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert cycles(imports) == [["b", "c"]]


def test_import_is_light():
    # Compared with a bare interpreter, since a site hook may load something of its own.
    loaded = modules_after("import countless") - modules_after("pass")
    assert "countless" in loaded
    assert not loaded & set(HEAVY)


def test_the_check_of_light_imports_can_fail():
    assert "numpy" in modules_after("import numpy") - modules_after("pass")


@pytest.mark.parametrize("name", countless.__all__)
def test_public_names_exist_and_are_listed(name):
    assert getattr(countless, name) is not None
    assert dir(countless) == sorted(countless.__all__)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'countless' has no attribute 'KMeans'"):
        _ = countless.KMeans


def test_relative_imports_are_resolved(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "kernels").mkdir()
    module = tmp_path / "kernels" / "ward.py"
    module.write_text("from .. import dp_means\nfrom . import rows\nimport sklearn._loss\n")
    assert imported(module) == [
        "countless.dp_means",
        "countless.kernels.rows",
        "sklearn._loss",
    ]
    assert parts_used(module) == {"dp_means", "kernels"}
