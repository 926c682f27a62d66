"""CrossCat, and one mixture of all columns: views found, seconds, and cells that were hidden."""

import sys
import time
import warnings

import numpy as np
from crosscat_table import answer, hidden_rows, open_job, peak_megabytes


def fit(job, cells, kinds):
    """Fit what the job names; return the estimator and the CPU seconds of its fit."""
    from countless import CrossCat, DPMixture
    from countless.models import Categorical, Columns

    settings = {
        "n_chains": job["n_chains"],
        "n_sweeps": job["n_sweeps"],
        "random_state": job["seed"],
        "n_jobs": 1,
    }
    models = [
        # All levels, so that a level that is hidden is one.
        Categorical(levels=[float(level) for level in range(levels)]) if levels else kind
        for kind, levels in zip(kinds, job["levels"], strict=True)
    ]
    if job["method"] == "mixture":
        model = DPMixture(Columns(models), **settings)
    else:
        model = CrossCat(models, **settings)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(cells)
    return model, time.process_time() - begin


def timed_sweeps():
    """Have chains note the CPU seconds of each sweep; return where."""
    from countless._mcmc.crosscat.chain import CrossCatChain

    seconds, sweep = [], CrossCatChain.sweep

    def timed(chain):
        begin = time.process_time()
        sweep(chain)
        seconds.append(time.process_time() - begin)

    CrossCatChain.sweep = timed
    return seconds


def guess(model, cells, column, hidden, levels):
    """Return the expected values of one column: the means, or the likeliest levels."""
    if hasattr(model, "impute"):
        return np.array(model.impute(cells).table[:, column], dtype=float)
    # A mixture has no method for this: weigh values of the column by their densities.
    grid = (
        np.arange(float(levels)) if levels else np.quantile(hidden, np.linspace(0.005, 0.995, 60))
    )
    scores = np.empty((len(cells), len(grid)))
    for place, value in enumerate(grid):
        filled = cells.copy()
        filled[:, column] = value
        scores[:, place] = model.score_samples(filled)
    if levels:
        return grid[scores.argmax(axis=1)]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True)) * np.gradient(grid)
    return (weights * grid).sum(axis=1) / weights.sum(axis=1)


def main() -> None:
    job, cells, kinds, hidden = open_job(sys.argv[1])
    if job.get("warm"):  # compile, or load what was compiled, before the clock starts
        fit({**job, "n_chains": 1, "n_sweeps": 2}, cells[:40], kinds)
    sweeps, before = timed_sweeps(), peak_megabytes()
    model, cpu = fit(job, cells, kinds)
    result = {"cpu": cpu, "extra": peak_megabytes() - before, "sweeps": sweeps}
    if job["method"] != "mixture":
        result["views"] = [chain[-1].tolist() for chain in model.posterior_.views]
    if hidden:
        logp, errors = [], []
        for column, rows, truth in hidden_rows(hidden):
            without = cells[rows]
            whole = without.copy()
            whole[:, column] = truth
            logp.append(model.score_samples(whole) - model.score_samples(without))
            seen = cells[:, column][~np.isnan(cells[:, column])]
            levels = 2 if kinds[column] == "binary" else job["levels"][column]
            value = guess(model, without, column, seen, levels)
            errors.append((column, value, truth))
        result["logp"] = np.concatenate(logp).tolist()
        result["guesses"] = [(int(c), v.tolist(), t.tolist()) for c, v, t in errors]
    answer(sys.argv[2], result)


if __name__ == "__main__":
    main()
