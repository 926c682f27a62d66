"""Write cli.md from the command's own help, or with --check say whether it is current."""

import sys
from pathlib import Path

from countless.cli import main

PAGE = Path(__file__).with_name("cli.md")

INTRODUCTION = """\
# Command line

```console
$ countless fit penguins.csv --gaps drop --exclude class
$ countless predict penguins-clusters/model.zip new.csv --out new-labels.csv
$ countless path penguins.csv --gaps drop --plot path.png
```

`fit` reads a table, says what each column is and what it did with it, and prints how many clusters
there are, how sure that is, and what sets each cluster apart. It writes

- `labels.csv`: a line for each row of the table, in its order; a row left out for its gaps has an
  empty label,
- `model.zip`: JSON and plain arrays, for `predict`,
- `run.json`: versions, arguments, seed, a digest of the input, what was read and done, results and
  timings,
- `path.png`, with `--plot`: the number of clusters against the penalty.

Files are complete or not written, and none is overwritten without `--force`. A problem with the
data is one line that begins with `error:` and names the row, column or parameter; the exit code is
then 2, and 130 after an interrupt. Reading text and Parquet needs `pip install 'countless[table]'`,
drawing `pip install 'countless[plot]'`.

`python -m countless` is the same command. The rest of this page is what `--help` prints.
"""


def page() -> str:
    """Return the whole page."""
    settings = {"resilient_parsing": True, "terminal_width": 80}
    top = main.make_context("countless", [], **settings)
    parts = [INTRODUCTION, _section("countless", main.get_help(top))]
    for name in main.list_commands(top):
        command = main.commands[name]
        context = command.make_context(name, [], parent=top, **settings)
        parts.append(_section(f"countless {name}", command.get_help(context)))
    return "\n".join(parts)


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            sys.exit("docs/cli.md is not current: run python docs/cli_help.py")
    else:
        PAGE.write_text(page(), encoding="utf-8")
