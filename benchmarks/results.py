"""Rewrite sections of RESULTS.md with the output of the commands that stand in them.

    python benchmarks/results.py                        # the sections and their commands
    python benchmarks/results.py hdp background         # run these and rewrite their sections
    python benchmarks/results.py all

A section is a heading, a command in backquotes, and a block between two comments, ``<!-- output of
NAME -->`` and ``<!-- end of NAME -->``. The block is replaced by the command's standard output;
sentences around it are kept. A command that fails leaves its section as it was.
"""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).with_name("RESULTS.md")
SECTION = re.compile(
    r"^`(?P<command>python benchmarks/[^`\n]+)`[^\n]*\n+"
    r"<!-- output of (?P<name>[\w-]+) -->\n(?P<output>.*?)<!-- end of (?P=name) -->$",
    re.MULTILINE | re.DOTALL,
)


class Section(NamedTuple):
    """A command, and where its output stands in the page."""

    command: tuple[str, ...]
    start: int
    stop: int


def sections(page: str) -> dict[str, Section]:
    """Return the sections of a page by name."""
    return {
        match["name"]: Section(tuple(shlex.split(match["command"])), *match.span("output"))
        for match in SECTION.finditer(page)
    }


def rewritten(page: str, name: str, output: str) -> str:
    """Return the page with another output in one section."""
    section = sections(page)[name]
    return f"{page[: section.start]}\n{output.strip()}\n\n{page[section.stop :]}"


def run(command: tuple[str, ...]) -> str:
    """Run a command with this interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, *command[1:]], cwd=RESULTS.parents[1], stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed; its section is as it was")
    return done.stdout


def main() -> None:
    known = sections(RESULTS.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="SECTION")
    names = parser.parse_args().names
    if unknown := set(names) - {"all", *known}:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if not names:
        print(*(f"{name}: {shlex.join(known[name].command)}" for name in known), sep="\n")
    for name in known if "all" in names else names:
        output = run(known[name].command)
        page = RESULTS.read_text(encoding="utf-8")  # after the command, which may take hours
        RESULTS.write_text(rewritten(page, name, output), encoding="utf-8")


if __name__ == "__main__":
    main()
