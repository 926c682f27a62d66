"""Words that textbooks do not use for what is meant stay out of code, tests and guide."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WRITTEN = [
    path
    for folder, ending in (("src", "py"), ("tests", "py"), ("docs", "md"), ("examples", "py"))
    for path in sorted((ROOT / folder).rglob(f"*.{ending}"))
    if path != Path(__file__)
] + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

# What was written, and what a reader expects. Only words that have no other use here.
OLD = {
    r"--gaps|GAP_WORDS|GAP_CHOICES|n_gaps": "missing values",
    r"(can|cannot|could) be had": "combined with",
    r"one line(s)? in so many|one sweep in so many": "every `thin`-th sweep",
    r"\bCLEMENCY\b|against the odds|given up half": "log slack, early rejection",
    r"\bbelieved\b": "prior specification",
    r"\b[Rr]estless|\bRESTLESS": "ambiguous",
    r"\bFarData\b|\bopen_far\b": "stored table",
    r"half is forgotten|are forgotten": "burn-in",
    r"\brandom_chance\b|\bNO_CHANCE\b|\bLUCKY\b|\bJudged\b": "null reference, statistics",
    r"\b[Ww]hole numbers?\b": "integer",
    r"\banew\b": "again",
    r"\bno room for\b": "memory, space",
    r"\bdearest\b|\bventures?\b|\bVENTURE": "costliest, over-split",
    r"\bself\.home\b|\bhomes\b": "backend",
    r"def test_(another_order|how_sure|where_chains_start)\b": "what the test asserts",
    r"def test_\w*(_restless|says_how_sure)": "what the test asserts",
}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_old_words_do_not_come_back(path):
    text = path.read_text(encoding="utf-8")
    for old, expected in OLD.items():
        found = re.search(old, text)
        assert found is None, f"{found[0]!r} stands in {path.name}: say {expected}"


def test_the_check_can_fail():
    assert any(re.search(old, "say --gaps drop") for old in OLD)
