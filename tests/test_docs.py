"""The code in the documentation runs, and prints what the documentation says."""

import ast
import doctest
import importlib
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import matplotlib
import matplotlib.pyplot as plt
import pytest
from sklearn.utils.estimator_checks import check_estimator

ROOT = Path(__file__).parent.parent
FENCED = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Folders of pages; others below docs/ are generated.
FOLDERS = ("", "explanation", "how-to", "tutorials")
GUIDE = [page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
PAGES = [
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *GUIDE]
    if FENCED.search(page.read_text(encoding="utf-8"))
]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
# Building the site runs all of them; these are enough to see here that programs run.
RUN_HERE = ("first_fit", "graph", "stream")
LINK = re.compile(r"\]\((?!https?:|#|gallery/)([^)#]+)")
LINKING = [
    page for page in [*ROOT.glob("*.md"), *GUIDE] if LINK.search(page.read_text(encoding="utf-8"))
]


def name_of(path: Path) -> str:
    """Return the name of a page or program within the repository."""
    return path.relative_to(ROOT).as_posix()


def run_page(page: Path) -> ModuleType:
    """Run a page's blocks from top to bottom as one module, and return it."""
    text = page.read_text(encoding="utf-8")
    module = ModuleType("documentation_page")
    namespace = vars(module)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for block in FENCED.finditer(text):
        language, code = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if language == "python":
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
        else:
            test = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), line)
            runner.run(test, clear_globs=False)
            namespace.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0, "see the captured output"
    return module


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if path.stem in RUN_HERE], ids=name_of
)
def test_examples_run(example, monkeypatch, capsys):
    matplotlib.use("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(example), run_name="__main__")
    assert plt.get_fignums(), "a program of the gallery ends with a picture"
    assert re.search(r"[1-9] clusters", capsys.readouterr().out)


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_examples_open_and_end_alike(example):
    """A title with its line, what is learned, names that the library has, and a picture."""
    text = example.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line, empty, *rest = (ast.get_docstring(tree) or "").splitlines()
    assert line == "=" * len(title)
    assert not empty
    assert any("Learn " in sentence for sentence in rest)
    assert text.endswith("plt.show()\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("countless"):
            module = importlib.import_module(node.module)
            assert not [name.name for name in node.names if not hasattr(module, name.name)]


@pytest.mark.slow
def test_pictures_are_small_and_can_be_drawn_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pictures.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "pictures.py"), run_name="__main__")
    kept = sorted((ROOT / "docs" / "images").glob("*.png"))
    drawn = [path.name for path in tmp_path.iterdir()]
    # The report's is a screenshot of a browser.
    assert [path.name for path in kept] == sorted([*drawn, "report.png"])
    assert all(path.stat().st_size < 60_000 for path in kept)


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_to_files_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]


# A check that does not apply here (array API input, without its flag) warns that it was skipped.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_estimator_skeleton_keeps_the_scikit_learn_contract(monkeypatch):
    page = run_page(ROOT / "CONTRIBUTING.md")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # so that it can be pickled
    check_estimator(page.LeaderClustering())


def test_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match="see the captured output"):
        run_page(page)
