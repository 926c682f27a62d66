"""The code in the documentation runs, and prints what the documentation says."""

import doctest
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.utils.estimator_checks import check_estimator

ROOT = Path(__file__).parent.parent
FENCED = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
    if FENCED.search(page.read_text(encoding="utf-8"))
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
LINKING = [
    page
    for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))]
    if LINK.search(page.read_text(encoding="utf-8"))
]


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
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert re.search(r"[1-9] (clusters|segments)", capsys.readouterr().out)


@pytest.mark.slow
def test_pictures_are_small_and_can_be_drawn_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pictures.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "pictures.py"), run_name="__main__")
    kept = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert [path.name for path in kept] == sorted(path.name for path in tmp_path.iterdir())
    assert all(path.stat().st_size < 60_000 for path in kept)


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.name)
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
