"""Kulis and Jordan, section 6.2: passes and seconds on a table of the photo patches' size."""

import time
from pathlib import Path

from countless import DPMeans, farthest_first_penalty
from countless.datasets import benchmark_set
from published import KJ_PATCHES as THEIRS
from section import Form, Section, run


def make(form: Form, folder: Path) -> Section:
    rows, columns = THEIRS["rows"], THEIRS["columns"]
    section = Section(
        "Section 6.2: the size of the photo patches",
        f"""{rows:,} patches of {columns} numbers: {THEIRS["passes"]} passes of
        {THEIRS["seconds_a_pass"]} s until convergence, {THEIRS["gibbs_seconds_a_sweep"]} s for a
        sweep of Gibbs sampling, which does not converge.""",
    )
    n_rows = form.pick(2_000, 30_000, rows)
    X, centers, _ = benchmark_set("b", n_rows=n_rows)
    DPMeans(1e9, refine=False).fit(X[:1000])  # compiles
    penalty = farthest_first_penalty(X, len(centers))
    start, cpu = time.perf_counter(), time.process_time()
    model = DPMeans(penalty, refine=False).fit(X)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    theirs_all = THEIRS["passes"] * THEIRS["seconds_a_pass"]
    section.values = {"passes": model.n_iter_, "seconds": seconds, "cpu": cpu, "rows": n_rows}
    section.table(
        [
            {"": "rows", "theirs": rows, "ours": n_rows},
            {"": "passes until convergence", "theirs": THEIRS["passes"], "ours": model.n_iter_},
            {
                "": "seconds a pass",
                "theirs": THEIRS["seconds_a_pass"],
                "ours": seconds / model.n_iter_,
            },
            {"": "seconds in all", "theirs": theirs_all, "ours": seconds},
            {"": "processor seconds in all", "ours": cpu},
            {"": "clusters", "ours": model.n_clusters_},
            {"": "distances computed, share of all", "ours": float(model.share_computed_)},
        ]
    )
    section.text(
        f"""The patches are not public: these rows are set *b* of `countless.datasets`,
        {len(centers)} overlapping blobs in 16 dimensions rotated into {columns}, single precision;
        the penalty is that of the farthest-first rule at {len(centers)} clusters (the paper's is
        not given). Algorithm 1 to the letter, so passes and clusters are those of a plain loop;
        bounds from the triangle inequality spare most distances. Their machine is of 2011, ours
        shared with others when this ran."""
    )
    if n_rows < rows:
        section.left_out(f"the full size, {rows:,} rows: the full form has it")
    return section


if __name__ == "__main__":
    run(make)
