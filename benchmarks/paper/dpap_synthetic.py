"""Section 6.1 of Tarlow, Zemel and Frey (2008): size priors on data drawn from the model itself.

``python benchmarks/paper/dpap_synthetic.py [--sets 1000] [--pictures FOLDER]`` draws sets of 100
rows from the exemplar model (alpha 1, base variance 1, noise variance 0.5; the paper does not say
how many columns, and in two clusters overlap too much to be told) and gives everybody the same
similarities: affinity propagation at several shifts d of the preferences, iterated conditional
modes from one cluster (ICM-1) and from single rows (ICM-N), and messages with the prior (DPAP),
followed by moves and joins. The pictures are the paper's figures 4 and 5.
"""

import argparse
import json
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import rand_score

from countless import AffinityPropagation
from countless._exemplar.similarity import gaussian_affinity, log_normal
from countless.datasets import sample_exemplar_model
from countless.priors import DirichletProcess

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness import machine, markdown_table

N_ROWS, ALPHA, NOISE, BASE = 100, 1.0, 0.5, 1.0
SHIFTS = (-100, -50, -35, -20, -10, 0)
PAPER_CONVERGED = {"DPAP": 0.94, **{f"AP({shift})": 1.0 for shift in SHIFTS}}

Record = dict[str, Any]


def methods(preference: np.ndarray) -> dict[str, AffinityPropagation]:
    """Return everybody, with the paper's damping."""
    settings = {"affinity": "precomputed", "random_state": 0}
    prior = DirichletProcess(ALPHA)
    moves = {"solver": "icm", "preference": preference, **settings}
    return {
        **{
            f"AP({shift})": AffinityPropagation(
                preference=preference + shift, damping=0.8, **settings
            )
            for shift in SHIFTS
        },
        "ICM-1": AffinityPropagation(prior, init="one", **moves),
        "ICM-N": AffinityPropagation(prior, init="singletons", **moves),
        "DPAP": AffinityPropagation(prior, preference=preference, damping=0.7, **settings),
        "DPAP, refined": AffinityPropagation(
            prior, preference=preference, damping=0.7, refine=True, **settings
        ),
    }


def log_joint(S: np.ndarray, labels: np.ndarray, exemplars: np.ndarray) -> float:
    """Return the log density of a clustering and its rows; preferences are on the diagonal."""
    sizes = np.bincount(labels)
    prior = DirichletProcess(ALPHA).log_prob(labels) - np.log(sizes).sum()
    return float(prior + S[np.arange(len(labels)), exemplars[labels]].sum())


def run_set(seed: int, n_columns: int) -> list[Record]:
    """Run everybody on one set."""
    X, truth, exemplars = sample_exemplar_model(
        N_ROWS,
        DirichletProcess(ALPHA),
        n_features=n_columns,
        noise_variance=NOISE,
        base_variance=BASE,
        random_state=seed,
    )
    S = gaussian_affinity(NOISE)(X, X)
    np.fill_diagonal(S, log_normal(np.square(X).sum(axis=1), BASE, X.shape[1]))
    of_truth = log_joint(S, truth, exemplars)
    records = [{"method": "truth", "sizes": np.bincount(truth), "true k": len(exemplars)}]
    for name, model in methods(S.diagonal().copy()).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(S)
        found = log_joint(S, model.labels_, model.cluster_centers_indices_)
        records.append(
            {
                "method": name,
                "true k": len(exemplars),
                "converged": bool(model.converged_),
                "undisturbed": bool(model.converged_ and model.damping_ == (model.damping or 0.7)),
                "beyond truth": found - of_truth,
                "rand": float(rand_score(truth, model.labels_)),
                "sizes": model.cluster_sizes_,
            }
        )
    return records


def summary(records: list[Record]) -> list[Record]:
    """Return one line for each method."""
    lines: list[Record] = []
    for name in dict.fromkeys(record["method"] for record in records):
        mine = [record for record in records if record["method"] == name]
        sizes = np.concatenate([record["sizes"] for record in mine])
        line: Record = {"method": name, "clusters": len(sizes) / len(mine)}
        line |= {"of 1-5 rows, %": 100 * float(np.mean(sizes <= 5))}
        line |= {"of 50 or more, %": 100 * float(np.mean(sizes >= 50))}
        if name != "truth":
            line["converged, %"] = 100 * np.mean([record["converged"] for record in mine])
            line["at the given damping, %"] = 100 * np.mean(
                [record["undisturbed"] for record in mine]
            )
            paper = PAPER_CONVERGED.get(name)
            line["paper, %"] = None if paper is None else 100 * paper
            line["log joint beyond truth"] = float(np.mean([r["beyond truth"] for r in mine]))
            line["Rand index"] = float(np.mean([record["rand"] for record in mine]))
        lines.append(line)
    return lines


def duels(records: list[Record]) -> list[Record]:
    """Compare DPAP with both ICMs, set by set."""
    ours, others = ("DPAP", "DPAP, refined"), ("ICM-1", "ICM-N")
    by_name = {
        name: [record for record in records if record["method"] == name]
        for name in (*ours, *others)
    }
    lines = []
    for one, other in product(ours, others):
        line: Record = {"method": one, "against": other}
        for what, title in (("beyond truth", "log joint"), ("rand", "Rand index")):
            difference = np.array(
                [
                    mine[what] - theirs[what]
                    for mine, theirs in zip(by_name[one], by_name[other], strict=True)
                ]
            )
            line[f"{title}: higher, %"] = 100 * float(np.mean(difference > 1e-6))
            line[f"{title}: lower, %"] = 100 * float(np.mean(difference < -1e-6))
            line[f"{title}: difference"] = float(difference.mean())
        lines.append(line)
    return lines


def draw(records: list[Record], folder: Path) -> None:
    """Draw the paper's figures 4 and 5."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def of(name: str) -> list[Record]:
        return [record for record in records if record["method"] == name]

    def save(figure: Figure, name: str) -> None:
        figure.savefig(folder / name, dpi=110, metadata={"Software": None})

    folder.mkdir(parents=True, exist_ok=True)
    sizes = Figure(figsize=(8.5, 3.0), layout="constrained")
    FigureCanvasAgg(sizes)
    ends = np.array([1, 2, 3, 5, 8, 13, 20, 32, 50, 80, N_ROWS + 1])
    groups = (["truth"], [f"AP({shift})" for shift in SHIFTS], ["truth", "ICM-1", "ICM-N", "DPAP"])
    titles = ("drawn", "no prior, preferences shifted by d", "Dirichlet process")
    axes = sizes.subplots(1, 3, sharey=True)
    for ax, names, title in zip(axes, groups, titles, strict=True):
        for name in names:
            counts, _ = np.histogram(np.concatenate([r["sizes"] for r in of(name)]), ends)
            style = {"color": "#222222", "linewidth": 2.2} if name == "truth" else {}
            per_set = counts / len(of(name)) / np.diff(ends)
            ax.stairs(per_set, ends, label=name, **style)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("size of a cluster")
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set_ylim(1e-3, 30)
        ax.legend(frameon=False, fontsize="x-small", ncols=2, loc="upper right")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("clusters a set and size")
    save(sizes, "dpap-sizes.png")

    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for name in ("DPAP", "ICM-1", "ICM-N"):
        true_k = np.array([record["true k"] for record in of(name)])
        beyond = np.array([record["beyond truth"] for record in of(name)])
        ks = [k for k in np.unique(true_k) if np.sum(true_k == k) > 1]
        left.plot(ks, [beyond[true_k == k].mean() for k in ks], marker="o", label=name)
    left.axhline(0.0, color="#888888", linewidth=0.8)
    left.set_xlabel("true number of clusters")
    left.set_title("log joint beyond the truth's", loc="left", fontsize="medium")
    left.legend(frameon=False)
    ours, theirs = ([record["rand"] for record in of(name)] for name in ("DPAP", "ICM-1"))
    right.plot([0, 1], [0, 1], color="#888888", linewidth=0.8)
    right.scatter(theirs, ours, s=14, alpha=0.6, linewidths=0)
    right.set_aspect("equal")
    right.set_xlabel("Rand index, ICM-1")
    right.set_ylabel("Rand index, DPAP")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, "dpap-likelihood.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100, help="data sets; the paper has 1,000")
    parser.add_argument("--columns", type=int, default=10, help="of each row")
    parser.add_argument("--jobs", type=int, default=2, help="processes, which share the sets")
    parser.add_argument("--quick", action="store_true", help="10 sets: a smoke run")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw figures 4 and 5")
    parser.add_argument("--json", metavar="FILE", help="write the figures here, too")
    options = parser.parse_args()
    n_sets = 10 if options.quick else options.sets
    about = machine(threads=1) | {"processes": options.jobs}
    print(", ".join(f"{key}: {value}" for key, value in about.items()), "\n")
    run_set(0, options.columns)  # compiles, so that processes find it done
    start = time.perf_counter()
    sets = Parallel(options.jobs)(delayed(run_set)(seed, options.columns) for seed in range(n_sets))
    records = [record for one_set in sets for record in one_set]
    print(f"{n_sets} sets in {time.perf_counter() - start:.0f} s\n")
    tables = {"methods": summary(records), "duels": duels(records)}
    for title, table in tables.items():
        print(
            f"## {title}, {n_sets} sets of {options.columns} columns\n\n{markdown_table(table)}\n"
        )
    if options.pictures:
        draw(records, options.pictures)
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": about, **tables}, indent=1))


if __name__ == "__main__":
    main()
