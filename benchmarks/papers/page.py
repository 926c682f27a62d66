"""Render the page of the guide, "The papers, redone", from the output files of the scripts.

``python benchmarks/papers/page.py [--results FOLDER] [--page docs/papers.md]``; nothing is
computed here, and pictures are copied beside the page.
"""

import argparse
import json
import platform
import shutil
from pathlib import Path
from typing import Any

from section import RESULTS

DOCS = Path(__file__).parents[2] / "docs"
CHAPTERS = {
    "Kulis and Jordan, Revisiting k-means (2012)": (
        "kj_table1",
        "kj_three_gaussians",
        "kj_hdp",
        "kj_patches",
        "kj_theorems",
    ),
    "Tarlow, Zemel and Frey, Flexible priors for exemplar-based clustering (2008)": (
        "tzf_exact",
        "tzf_synthetic",
        "tzf_segmentation",
    ),
    "Murphy, Machine Learning: a Probabilistic Perspective, chapter 25 (2012)": (
        "murphy_measures",
        "murphy_priors",
        "murphy_mixture",
        "murphy_affinity",
        "murphy_spirals",
        "murphy_linkage",
        "murphy_yeast",
        "murphy_table25_1",
        "murphy_newsgroups",
        "murphy_animals",
        "murphy_crosscat",
        "murphy_literal",
    ),
}
HEAD = """# The papers, redone

The tables and figures of the three texts that this library implements, theirs and ours side by
side, and each difference explained. `make papers` makes this page; `make papers QUICK=1` does so
within ten minutes. Every number of ours is read from the output file of a script in
`benchmarks/papers/`, and theirs stand in `published.py` there. The texts' own pictures are not
reproduced: a sentence says what each shows.

{made}
"""


def render(results: Path, pictures: Path) -> str:
    """Return the page, and copy the pictures that it shows."""
    found = {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}
    forms = sorted({section["form"] for section in found.values()})
    seconds = sum(section["cpu_seconds"] for section in found.values())
    made = (
        f"This page was made in the {' and '.join(forms)} form, in {seconds / 60:.0f} minutes of "
        f"processor time, with Python {platform.python_version()}."
    )
    absent = [name for names in CHAPTERS.values() for name in names if name not in found]
    if absent:
        scripts = ", ".join(f"`{name}.py`" for name in absent)
        made += f"\n\nLeft out, as their scripts did not finish in that run: {scripts}."
    lines = [HEAD.format(made=made)]
    pictures.mkdir(parents=True, exist_ok=True)
    for chapter, names in CHAPTERS.items():
        lines.append(f"## {chapter}\n")
        for name in names:
            if name in found:
                lines += _section(name, found[name], results, pictures)
    return "\n".join(lines)


def _section(name: str, section: dict[str, Any], results: Path, pictures: Path) -> list[str]:
    lines = [f"### {section['title']}\n", f"*Theirs*: {' '.join(section['theirs'].split())}\n"]
    for block in section["blocks"]:
        if block["kind"] == "text":
            lines.append(f"{block['text']}\n")
        elif block["kind"] == "table":
            lines.append(f"{_table(block['records'])}\n")
        elif block["kind"] == "private picture":
            lines.append(
                f"*{block['text']}* The script writes this picture to `{block['file']}`; its data "
                "may not be redistributed.\n"
            )
        else:
            shutil.copy(results / block["file"], pictures / block["file"])
            lines.append(
                f"![{block['text']}]({pictures.parent.name}/{pictures.name}/{block['file']})\n"
            )
    form = "" if section["form"] == "full" else f" --form {section['form']}"
    lines.append(f"(`python benchmarks/papers/{name}.py{form}`: {section['cpu_seconds']:.0f} s)\n")
    return lines


def _table(records: list[dict[str, str]]) -> str:
    """Lay out records as a table of Markdown; numbers to the right."""
    columns = list(dict.fromkeys(key for record in records for key in record))
    rows = [[record.get(column, "-") for column in columns] for record in records]
    is_text = [any(_is_word(row[i]) for row in rows) for i in range(len(columns))]
    lines = [[column.strip() for column in columns], ["---" if t else "---:" for t in is_text]]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *rows])


def _is_word(cell: str) -> bool:
    return cell[:1].isalpha() or cell[:1] in "*`{("


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="output files of the scripts")
    parser.add_argument("--page", type=Path, default=DOCS / "papers.md", help="what is written")
    options = parser.parse_args()
    page = render(options.results, options.page.parent / "images" / "papers")
    options.page.write_text(page.rstrip() + "\n")
    print(options.page)


if __name__ == "__main__":
    main()
