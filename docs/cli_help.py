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
- `path.png`, with `--plot`: the number of clusters against the penalty; for mixtures
  `posterior.png`: traces, the posterior of k and who is together with whom.

Files are complete or not written, and none is overwritten without `--force`. They are written into
a scratch folder beside the target (`.countless-...`), made exclusively and locked while the command
runs, flushed to disk, and then renamed; on a full disk or after a kill the old results are still
there. The next run into the same place removes what a killed one has left behind.

A problem with the data is one line that begins with `error:` and names the row, column or
parameter; the exit code is then 2, and 130 after an interrupt. Reading text and Parquet needs
`pip install 'countless[table]'`, drawing `pip install 'countless[plot]'`.

## A table that does not fit in memory

```console
$ countless fit big.parquet --out-of-core --checkpoint run.zip
$ countless fit shared/folder --dask tcp://scheduler:8786
$ countless predict big-clusters/model.zip new.parquet --out-of-core --out new-labels.csv
```

`--out-of-core` reads an npy, Parquet or text file, or a folder of Parquet files, block by block.
The table is looked at once, then clustered from a copy of the prepared rows in the temporary folder
(`TMPDIR`); an npy file whose columns are used as they are is clustered where it is. In memory are
some blocks and, for each row, its label, and its weight where there is one. The answer is that of
the table in memory, but for the last digits of a scale.

`--dask` does the same on a Dask cluster, whose workers must see the file under the same path; every
chunk is read and prepared there. `--dask local` starts `--jobs` workers here. It needs
`pip install 'countless[dask]'`.

Both want columns of numbers. Text can only name the rows (`--id`), gaps can be refused or left out
but not filled in, and `--compare` and `--group` need the table in memory. Nobody looks whether a
column of numbers names the rows or holds known groups; the command says so.

`--checkpoint` saves the run every few passes. After Ctrl-C, or worse, the same command goes on from
the file; it is gone when the run is done.

## Rows that keep coming

```console
$ sensor | countless fit - --stream --block-rows 5000 --out sensor
```

Every block of rows is taken in, and its labels are written to `labels.csv.part`, before the next
one is read; what is kept of the rows is bounded. When the input ends, or after Ctrl-C or SIGTERM,
the labels get the name `labels.csv`, and `model.zip` and `run.json` are written. A second stream
into the same folder is refused, with `--force`, too.

The first block decides what the columns are, their scale, what fills gaps and, unless `--penalty`
is a number, the penalty: make it large enough to speak for the rest. An id never changes its
meaning; one that is no longer in the model became part of another cluster. A row that cannot be
used ends the stream with exit code 2, and the blocks before it are kept.

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
