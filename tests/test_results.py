"""RESULTS.md is written by its commands: each exists, and only its own block is replaced."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from results import rewritten, sections  # noqa: E402

PAGE = """# Results

`python benchmarks/one.py --sets "a b"` compares.

<!-- output of one -->
old
<!-- end of one -->

Kept.

`python benchmarks/two.py`:
<!-- output of two -->
<!-- end of two -->
"""


def test_commands_are_split_as_a_shell_does():
    found = sections(PAGE)
    assert found["one"].command == ("python", "benchmarks/one.py", "--sets", "a b")
    assert found["two"].command == ("python", "benchmarks/two.py")


def test_only_the_output_of_one_section_changes():
    page = rewritten(rewritten(PAGE, "two", "| 2 |"), "one", "| 1 |\n")
    expected = PAGE.replace("\nold\n", "\n\n| 1 |\n\n")
    assert page == expected.replace("of two -->\n<", "of two -->\n\n| 2 |\n\n<")
    assert rewritten(page, "one", "| 1 |\n") == page


def test_every_section_names_a_benchmark_that_exists():
    page = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")
    found = sections(page)
    assert len(found) == page.count("<!-- output of") == page.count("<!-- end of") > 1
    assert all((BENCHMARKS.parent / each.command[1]).exists() for each in found.values())
