"""Write cli.md from the command's own help, or with --check say whether it is current."""

import sys
from pathlib import Path

from countless.cli import main

PAGE = Path(__file__).with_name("cli.md")

INTRODUCTION = """\
# Command line

```console
$ countless fit penguins.csv --missing drop --exclude class
$ countless predict penguins-clusters/model.zip new.csv --out new-labels.csv
$ countless path penguins.csv --missing drop --plot path.png
```

`fit` reads a table, reports the type and the preprocessing of each column, and prints the number of
clusters, its confidence, and the features that distinguish each cluster. It writes

- `table.csv`: the table, its text as it was, with two more columns, `cluster` and `distance`: that
  of the row from the mean of its cluster in units of the prepared columns. It has the format of the
  input, so for Parquet it is `table.parquet` ([](files.md) has all formats). It is not written for
  arrays, standard input, graphs without `--nodes`, views and biclusters, nor out of core,
- `labels.csv`: a line for each row of the table, in its order, for programs: the same from all
  methods, streams and `predict`; a row dropped for missing values has an empty label,
  (with `--layers` both have a column for each layer, `layer_1`, `layer_2`, ..., coarse to fine),
- `clusters.csv`: a line for each cluster, the largest first: its size, typical row, and the mean of
  each column, or for a category the share of rows that have it,
- `README.txt`: what each file is,
- `model.zip`: JSON and plain arrays, for `predict`,
- `run.json`: versions, arguments, seed, a digest of the input, preprocessing, results and timings,
- `path.png`, with `--plot`: the number of clusters against the penalty; for mixtures
  `posterior.png`: traces, the posterior of k and the posterior similarity matrix.

Files are written atomically, and none is overwritten without `--force`. They are written into a
temporary folder next to the target (`.countless-...`), created exclusively and locked while the
command runs, flushed to disk, and then renamed; on a full disk or after a kill the old results are
still there. The next run into the same folder removes what a killed one has left behind.

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
The first pass determines column types and scales; the preprocessed rows are then copied to the
temporary folder (`TMPDIR`) and clustered from there. An npy file that needs no preprocessing is
read in place. In memory are some blocks and, for each row, its label, and its weight where there is
one. The result is that of the table in memory, up to rounding of the scales.

`--dask` does the same on a Dask cluster, whose workers must see the file under the same path; every
chunk is read and preprocessed there. `--dask local` starts `--jobs` workers on this machine. It
needs `pip install 'countless[dask]'`.

Both need numeric columns. A text column can only be the row identifier (`--id`), missing values can
be an error or their rows dropped, but not imputed, and `--compare` and `--group` need the table in
memory. Numeric columns that identify the rows or contain known classes are not detected; the
command says so.

`--checkpoint` saves the run every few passes. After Ctrl-C or a crash the same command resumes from
the file, which is removed when the run has finished.

## Streams

```console
$ sensor | countless fit - --stream --block-rows 5000 --out sensor
```

The model is updated with each block of rows, and its labels are written to `labels.csv.part`,
before the next block is read; memory is bounded. When the input ends, or after Ctrl-C or SIGTERM,
the labels are renamed to `labels.csv`, and `model.zip` and `run.json` are written. A second stream
into the same folder is an error, also with `--force`.

The first block determines column types, scales, the values imputed for missing ones and, unless
`--penalty` is a number, the penalty: make it large enough to be representative. A cluster id is
never reused; one that is no longer in the model was merged into another cluster. An invalid row
ends the stream with exit code 2, and the blocks before it are kept.

## For programs

`--json` prints one JSON object and nothing else. Its field `schema` is the version of its form:
`countless schema fit` prints the JSON Schema, with a description of each field, and so for every
command. The version rises when a field is removed or changes its meaning.

```console
$ countless fit penguins.csv --missing drop --json | jq .result.n_clusters
```

Compiled code is cached where the package is, or in the folder NUMBA_CACHE_DIR. The first run of a
method compiles what it needs, and says so. `countless warm-up` compiles everything at once: for an
image of a container, or before a demonstration.

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
