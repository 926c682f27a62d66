"""CrossCat beside lace and a single mixture: planted views, growth, and cells that were hidden.

Prints Markdown tables. ``views``: in how many of 8 chains the views of a mixed table are found
(adjusted Rand index above .95) and what a chain costs. ``growth``: CPU seconds of a sweep as rows,
columns and views grow. ``long``: the same and memory at 100,000 rows. ``cells``: log likelihood and
error on hidden cells of public tables, as they are and with 50 columns of noise, and how far others
are from CrossCat, cell by cell; the tables are read from the folder that ``--sets`` names.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from countless.models.checks import spread_rounding
from harness import (
    Contestant,
    ContestantFailed,
    Limits,
    machine,
    print_parts,
    run_isolated,
    say,
)

OURS = Contestant("countless", "crosscat_methods.py")
LACE = Contestant("lace", "lace_states.py", ("pylace", "polars"))
N_HIDDEN, MOST_ROWS, N_NOISE = 300, 1_500, 50
FOUND = 0.95


def planted(n_rows, n_columns, n_views, n_groups=5, missing=0.05, seed=0):
    """Return a mixed table with planted views, the kinds of its columns, and their views."""
    random = np.random.default_rng(seed)
    view_of = np.sort(np.arange(n_columns) % n_views)
    labels = random.integers(n_groups, size=(n_views, n_rows))
    shares = {"number": 0.5, "category": 0.3, "count": 0.1, "binary": 0.1}
    kinds = random.choice(list(shares), size=n_columns, p=list(shares.values())).tolist()
    cells = np.empty((n_rows, n_columns))
    for j, kind in enumerate(kinds):
        z = labels[view_of[j]]
        if kind == "number":
            cells[:, j] = random.normal(0, 2, n_groups)[z] + random.normal(size=n_rows)
        elif kind == "category":
            below = np.cumsum(random.dirichlet(np.full(4, 0.5), n_groups), axis=1)[z, :-1]
            cells[:, j] = (random.random((n_rows, 1)) > below).sum(axis=1)
        elif kind == "count":
            cells[:, j] = random.poisson(random.gamma(1.0, 5.0, n_groups)[z])
        else:
            cells[:, j] = random.random(n_rows) < random.beta(0.5, 0.5, n_groups)[z]
    cells[random.random(cells.shape) < missing] = np.nan
    return cells, kinds, view_of


def levels_of(cells, kinds):
    """Return how many levels each column of categories has, None for others."""
    return [
        int(np.nanmax(cells[:, j])) + 1 if kind == "category" else None
        for j, kind in enumerate(kinds)
    ]


def run(contestant, cells, kinds, options, **job):
    """Run one contestant; None and a line on standard error where it cannot be."""
    title = f"{contestant.title} ({job['method']}, {job['n_sweeps']} sweeps)"
    print(f"{cells.shape}: {title}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, cells=cells)
        job = {"data": str(path), "kinds": kinds, "levels": levels_of(cells, kinds), **job}
        try:
            return run_isolated(contestant, job, Limits(1, options.timeout))
        except ContestantFailed as failure:
            print(f"  not run: {failure}", file=sys.stderr)
            return None


def views_table(options):
    """Count the chains that find planted views."""
    n_rows, n_columns, n_views = (300, 20, 3) if options.quick else (1_000, 50, 4)
    cells, kinds, view_of = planted(n_rows, n_columns, n_views, seed=options.seed)
    methods = [
        (OURS, "crosscat", 100),
        (LACE, "lace", 1_000),
        (LACE, "lace, sams", 500),
    ]
    lines = []
    for contestant, method, n_sweeps in methods:
        n_sweeps = max(n_sweeps // 10, 20) if options.quick else n_sweeps
        job = {"method": method, "n_chains": 8, "n_sweeps": n_sweeps, "seed": options.seed}
        found = run(contestant, cells, kinds, options, warm=True, **job)
        if found is None:
            continue
        scores = [adjusted_rand_score(view_of, views) for views in found["views"]]
        lines.append(
            {
                "method": method if contestant is LACE else "countless",
                "sweeps": n_sweeps,
                "chains that find the views": f"{sum(s > FOUND for s in scores)} of {len(scores)}",
                "mean ARI": float(np.mean(scores)),
                "CPU s a chain": found["cpu"] / 8,
                "CPU / countless": found["cpu"] / lines[0]["CPU s a chain"] / 8 if lines else 1.0,
            }
        )
    return lines


def growth_table(options):
    """Time sweeps as the table grows."""
    shapes = [(1_000, 50, 4), (4_000, 50, 4), (1_000, 200, 4), (1_000, 50, 12), (10_000, 100, 4)]
    return sweeps_table([(200, 10, 2), (400, 10, 2)] if options.quick else shapes, options)


def long_table(options):
    """Time sweeps of a table with many rows."""
    return sweeps_table([(3_000 if options.quick else 100_000, 20, 3)], options)


def sweeps_table(shapes, options):
    """Time sweeps of tables with planted views."""
    lines = []
    for shape in shapes:
        cells, kinds, _ = planted(*shape, seed=options.seed)
        line = dict(zip(("rows", "columns", "views"), shape, strict=True))
        job = {"n_chains": 1, "seed": options.seed, "warm": True}
        ours = run(OURS, cells, kinds, options, method="crosscat", n_sweeps=51, **job)
        if ours:
            # The first sweep finds a start; after the last, one clustering is found for the draws.
            start, *others = ours["sweeps"]
            line["s a sweep"] = float(np.mean(others))
            line["s, start"] = start
            line["s, point estimates"] = ours["cpu"] - sum(ours["sweeps"])
            line["MB"] = ours["extra"]
        few, many = 100, 200
        job["method"] = "lace"
        runs = [run(LACE, cells, kinds, options, n_sweeps=n, **job) for n in (few, many)]
        if all(runs):  # sweeps alone
            line["lace: s a sweep"] = (runs[1]["cpu"] - runs[0]["cpu"]) / (many - few)
            line[f"lace: s, {few} sweeps"] = runs[0]["cpu"]
            line["sweep / lace's"] = line["s a sweep"] / line["lace: s a sweep"] if ours else None
        lines.append(line)
    return lines


def read_set(path, class_columns=("class", "name", "income")):
    """Return a public table as cells and kinds; names of rows and classes are left out."""
    import pandas as pd

    frame = pd.read_csv(path, na_values=["?"])
    frame = frame.drop(columns=[name for name in class_columns if name in frame.columns])
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    cells, kinds = [], []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            kinds.append("binary" if set(column.dropna()) <= {0, 1} else "number")
            cells.append(column.to_numpy(dtype=float))
        else:
            codes, _ = pd.factorize(column)
            kinds.append("category")
            cells.append(np.where(codes < 0, np.nan, codes))
    return np.column_stack(cells).astype(float), kinds


def hide(cells, kinds, seed):
    """Return a table with some cells hidden, and where they were."""
    random = np.random.default_rng(seed)
    rows, columns = np.nonzero(~np.isnan(cells))
    chosen = random.permutation(len(rows))[:N_HIDDEN]
    hidden, left = [], cells.copy()
    for row, column in zip(rows[chosen], columns[chosen], strict=True):
        value = cells[row, column]
        # A level that no other row has would be unknown to everybody.
        if kinds[column] != "number" and np.sum(left[:, column] == value) < 2:
            continue
        left[row, column] = np.nan
        hidden.append((int(row), int(column), float(value)))
    return left, hidden


def with_noise(cells, kinds, seed):
    """Return the table with columns that have nothing to do with it."""
    noise = np.random.default_rng(seed).normal(size=(len(cells), N_NOISE))
    return np.hstack([cells, noise]), [*kinds, *["number"] * N_NOISE]


def cells_table(options):
    """Hide cells of public tables."""
    sets = {
        "zoo": "zoo/zoo.csv",
        "heart": "heart_disease/heart_cleveland.csv",
        "credit": "credit_approval/credit_approval.csv",
        "satellites": "satellites/satellites.csv",
        "adult": "adult_sample/adult_sample.csv.gz",
    }
    lines = []
    wanted = options.names.split(",") if options.names else sets
    for name, _, noise in (asked.partition("+") for asked in wanted):
        if not (options.sets / sets[name]).exists():
            print(f"{name}: no file {sets[name]} in {options.sets}", file=sys.stderr)
            continue
        cells, kinds = read_set(options.sets / sets[name])
        # The density of rounded numbers has no bound, so that all get them spread over the steps.
        numbers = [j for j, kind in enumerate(kinds) if kind == "number"]
        cells = spread_rounding(cells, numbers, np.random.default_rng(options.seed))
        left, hidden = hide(cells, kinds, options.seed)
        spread = np.nanstd(left, axis=0)
        for noisy in (True,) if noise else (False, True):
            table = with_noise(left, kinds, options.seed) if noisy else (left, kinds)
            scores = None
            for contestant, method, n_sweeps in (
                (OURS, "crosscat", 100),
                (OURS, "mixture", 100),
                (LACE, "lace", 1_000),
            ):
                n_sweeps = 20 if options.quick else n_sweeps
                job = {"method": method, "n_chains": 4, "n_sweeps": n_sweeps, "hidden": hidden}
                found = run(contestant, *table, options, seed=options.seed, warm=True, **job)
                if found is None:
                    continue
                own = cell_scores(found, kinds, spread)
                scores = own if method == "crosscat" else scores
                line = {"set": name + (" + 50 of noise" if noisy else ""), "method": method}
                for title, values in own.items():
                    line[title] = float(np.mean(values)) if len(values) else None
                    apart = values - scores[title] if scores and method != "crosscat" else []
                    line[f"{title}: above CrossCat's"] = with_error(apart)
                lines.append(line | {"CPU s": found["cpu"]})
                say(lines[-1])
    return lines


def cell_scores(found, kinds, spread):
    """Return the log likelihoods of hidden cells, squared errors of numbers, and wrong guesses."""
    squares, wrong = [], []
    for column, values, truth in found["guesses"]:
        apart = np.array(values) - truth
        if kinds[column] in ("number", "count"):
            squares.extend((apart / max(spread[column], 1e-300)) ** 2)
        else:
            wrong.extend(np.abs(apart) > 0.5)
    return {
        "log likelihood": np.array(found["logp"]),
        "squared error / variance": np.array(squares),
        "wrong categories": np.array(wrong, dtype=float),
    }


def with_error(apart):
    """Return the mean of differences between two methods, cell by cell, and its standard error."""
    if len(apart) < 2:
        return None
    return f"{np.mean(apart):+.3f} ± {np.std(apart, ddof=1) / np.sqrt(len(apart)):.3f}"


PARTS = {
    "views": ("Planted views", views_table),
    "growth": ("Growth", growth_table),
    "long": ("Many rows", long_table),
    "cells": ("Hidden cells", cells_table),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default="views,growth,long,cells", help="tables to make (default: %(default)s)")
    add("--sets", type=Path, default=Path("data"), help="folder of public tables")
    add("--names", help="some of the public tables: heart, or heart+noise alone")
    add("--seed", type=int, default=0)
    add("--timeout", type=float, default=1800.0, help="seconds for each contestant")
    add("--quick", action="store_true", help="fewer rows and sweeps: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    print_parts(options.parts, PARTS, options, machine(1))


if __name__ == "__main__":
    main()
