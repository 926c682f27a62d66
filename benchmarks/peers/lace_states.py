"""lace: the same tables, by default and with its opt-in kernel of splits and merges of rows."""

import sys
import time

import lace
import numpy as np
import polars as pl
from crosscat_table import answer, hidden_rows, open_job, peak_megabytes


def frame_of(cells, kinds):
    """Return the table as lace takes it: levels as text, counts as integers."""
    columns = {"ID": [str(row) for row in range(len(cells))]}
    for j, kind in enumerate(kinds):
        columns[f"c{j:03d}"] = pl.Series(
            [value_of(value, kind) for value in cells[:, j].tolist()],
            dtype={"number": pl.Float64, "count": pl.UInt32}.get(kind, pl.String),
        )
    return pl.DataFrame(columns)


def value_of(value, kind):
    if value != value:
        return None
    if kind == "number":
        return value
    return int(value) if kind == "count" else f"l{int(value)}"


def transitions(name):
    """Return None, lace's default, or the default with its split-merge kernel for rows."""
    if name == "lace":
        return None
    step, rows, columns = lace.StateTransition, lace.RowKernel, lace.ColumnKernel
    return [
        step.column_assignment(columns.gibbs()),
        step.state_prior_process_params(),
        step.row_assignment(rows.sams()),
        step.view_prior_process_params(),
        step.feature_priors(),
        step.row_assignment(rows.slice()),
        step.component_parameters(),
    ]


def main() -> None:
    job, cells, kinds, hidden = open_job(sys.argv[1])
    before = peak_megabytes()
    engine = lace.Engine.from_df(
        frame_of(cells, kinds), n_states=job["n_chains"], rng_seed=job["seed"]
    )
    begin = time.process_time()
    engine.update(job["n_sweeps"], transitions=transitions(job["method"]), quiet=True)
    result = {"cpu": time.process_time() - begin, "extra": peak_megabytes() - before}
    result["views"] = [list(engine.column_assignment(state)) for state in range(job["n_chains"])]
    if hidden:
        logp, guesses = [], []
        for column, rows, truth in hidden_rows(hidden):
            name, values = f"c{column:03d}", []
            for row, value in zip(rows, truth, strict=True):
                given = {
                    f"c{j:03d}": value_of(cells[row, j], kind)
                    for j, kind in enumerate(kinds)
                    if cells[row, j] == cells[row, j]
                }
                asked = pl.DataFrame({name: [value_of(value, kinds[column])]})
                logp.append(float(np.asarray(engine.logp(asked, given=given)).ravel()[0]))
                found = engine.predict(name, given=given, with_uncertainty=False)
                values.append(float(found[1:]) if isinstance(found, str) else float(found))
            guesses.append((int(column), values, truth.tolist()))
        result |= {"logp": logp, "guesses": guesses}
    answer(sys.argv[2], result)


if __name__ == "__main__":
    main()
