"""DP-means beside its peers, in one run.

Prints Markdown tables: the four generated sets, the cost of a pass, the cost of choosing the
penalty, the growth of time with rows, columns and clusters, and the time a new process needs.
``README.md`` says how to read them.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import euclidean_distances

from countless import farthest_first_penalty
from countless.datasets import benchmark_set
from harness import (
    Contestant,
    ContestantFailed,
    Limits,
    Measurement,
    machine,
    markdown_table,
    measure,
    run_isolated,
)

PDC = Contestant("PDC-DP-means, wheel", "pdc.py", ("pdc-dp-means==0.0.6", "numpy<2"))
PLAIN = Contestant("Algorithm 1, chunked NumPy", "plain_numpy.py")
KMEANS = Contestant("scikit-learn KMeans, Lloyd", "sklearn_kmeans.py")
FAISS = Contestant("faiss Kmeans", "faiss_kmeans.py", ("faiss-cpu",))
START_UP = Contestant("start-up", "start_up.py")
COUNTLESS_PLAIN = Contestant("countless, refine=False", "countless_dp_means.py")
COUNTLESS = Contestant("countless", "countless_dp_means.py")

PENALTY_ROWS = 20_000  # the farthest-first rule looks at this many rows
QUICK_ROWS = {"a": 20_000, "b": 20_000, "c": 10_000, "d": 100_000}
LARGE_BYTES = 100_000_000  # inputs above this are fitted once unless --repeat says otherwise
TOLERATED = 1.001  # times the objective at the true centers: where a fit is as good as the truth
ROUNDING = 1e-7  # equal partitions can differ by this much in two sums of their objective
# What a fit may take beside the rows: a tenth of them, and labels and bounds of each.
TENTH, ROW_BYTES = 0.1, 16
BLOCK_ROWS = 16_384

Record = dict[str, Any]


class Problem(NamedTuple):
    """One data set on disk, with the penalty and the objective to compare with."""

    name: str
    X: np.ndarray
    path: Path
    penalty: float
    n_true: int
    true_objective: float
    repeat: int


class Bench:
    """The settings of one run, and what it takes to measure one contestant under them."""

    def __init__(self, arguments: argparse.Namespace):
        self.limits = Limits(arguments.threads, arguments.timeout)
        self.sets = arguments.sets
        self.repeat = arguments.repeat
        self.quick = arguments.quick
        self.ours = not arguments.peers_only

    @contextmanager
    def problem(self, name: str, X: np.ndarray, centers: np.ndarray) -> Iterator[Problem]:
        """Store the rows for the contestants, and set the penalty by the farthest-first rule."""
        random = np.random.RandomState(1)
        sample = random.choice(len(X), min(PENALTY_ROWS, len(X)), replace=False)
        penalty = float(farthest_first_penalty(X[sample], len(centers)))
        repeat = self.repeat or (1 if X.nbytes > LARGE_BYTES else 3)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.npy"
            np.save(path, X)
            truth = nearest_cost(X, centers) + penalty * len(centers)
            yield Problem(name, X, path, penalty, len(centers), truth, repeat)

    def generated(self, name: str):
        """Open one of the four generated sets."""
        data = benchmark_set(name, QUICK_ROWS[name] if self.quick else None)
        return self.problem(name, data.X, data.centers)

    def measure(self, contestant: Contestant, problem: Problem, **options: Any) -> Measurement:
        print(f"{problem.name}: {contestant.title} {options}", file=sys.stderr, flush=True)
        return measure(contestant, problem.path, options, problem.repeat, self.limits)


def nearest_cost(X: np.ndarray, centers: np.ndarray) -> float:
    """Sum the squared distances from the rows to their nearest centers."""
    blocks = (X[start : start + BLOCK_ROWS] for start in range(0, len(X), BLOCK_ROWS))
    return float(
        sum(
            euclidean_distances(block.astype(np.float64), centers, squared=True).min(axis=1).sum()
            for block in blocks
        )
    )


def objective(X: np.ndarray, labels: np.ndarray, penalty: float) -> tuple[float, int]:
    """Return the objective of a partition at its exact means, and how many clusters it has."""
    clusters, labels = np.unique(labels, return_inverse=True)
    weight = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) / weight for column in X.T], axis=1)
    cost = 0.0
    for start in range(0, len(X), BLOCK_ROWS):
        difference = X[start : start + BLOCK_ROWS] - means[labels[start : start + BLOCK_ROWS]]
        cost += np.einsum("id,id->", difference, difference)
    return float(cost + penalty * len(clusters)), len(clusters)


class Result(NamedTuple):
    """One contestant's line: what was measured, or why nothing was."""

    title: str
    k: int | None = None
    objective: float = np.inf
    run: Measurement | None = None
    reason: str = ""


def attempt(bench: Bench, problem: Problem, contestant: Contestant, title="", **options) -> Result:
    """Measure a contestant and judge its labels; a failure becomes a line that says so."""
    title = title or contestant.title
    try:
        run = bench.measure(contestant, problem, **options)
    except ContestantFailed as failure:
        return Result(title, reason=f"not run: {failure}")
    value, k = objective(problem.X, run.labels, problem.penalty)
    print(f"  {run.seconds:.3f} s, {run.passes} passes, k={k}, {value:.6g}", file=sys.stderr)
    return Result(title, k, value, run)


def compare(bench: Bench, problem: Problem) -> list[Record]:
    """Run everybody on one set; the k-means kinds get PDC's k and that of the lowest objective."""
    peers = [attempt(bench, problem, peer, penalty=problem.penalty) for peer in (PDC, PLAIN)]
    ours = []
    if bench.ours:
        ours = [
            attempt(bench, problem, COUNTLESS_PLAIN, penalty=problem.penalty, refine=False),
            attempt(bench, problem, COUNTLESS, penalty=problem.penalty, refine=True),
        ]
    lowest = min(peers + ours, key=lambda result: result.objective)
    for k in dict.fromkeys(result.k for result in (peers[0], lowest) if result.k):
        for peer in (KMEANS, FAISS):
            peers.append(attempt(bench, problem, peer, f"{peer.title} at k={k}", n_clusters=k))
    mark = min(TOLERATED * problem.true_objective, *(result.objective for result in peers))
    pdc = peers[0].run
    return [record(problem, result, mark, pdc.seconds if pdc else None) for result in peers + ours]


def record(problem: Problem, result: Result, mark: float, pdc_seconds: float | None) -> Record:
    line: Record = {"set": f"{problem.name}, penalty {problem.penalty:.3g}", "method": result.title}
    if result.run is None:
        return line | {"seconds": result.reason}
    extra = result.run.extra_bytes
    to_truth = seconds_to(TOLERATED * problem.true_objective, result)
    return line | {
        "seconds": result.run.seconds,
        "to the truth": to_truth,
        "/ PDC's end": to_truth / pdc_seconds if to_truth and pdc_seconds else None,
        "to the lowest": seconds_to(mark, result),
        "passes": result.run.passes,
        "k": result.k,
        "objective": result.objective,
        "/ true": result.objective / problem.true_objective,
        "extra MB": None if extra is None else extra / 1e6,
        "allowed MB": (TENTH * problem.X.nbytes + ROW_BYTES * len(problem.X)) / 1e6,
        "/ input": None if extra is None else extra / problem.X.nbytes,
        "distances skipped": result.run.details.get("skipped_share"),
    }


def seconds_to(mark: float, result: Result) -> float | None:
    """Return when the objective first was down to ``mark``, or None if it never was.

    Without one time stamp for each value of the running objective, that is the end of the fit.
    """
    mark *= 1 + ROUNDING
    if result.run is None or result.objective > mark:
        return None
    history = result.run.details.get("objective_history", [])
    seconds = result.run.details.get("pass_seconds", [])
    if len(history) != len(seconds):
        return result.run.seconds
    stamped = zip(history, seconds, strict=True)
    return next((when for value, when in stamped if value <= mark), result.run.seconds)


def sets_table(bench: Bench) -> list[Record]:
    rows: list[Record] = []
    for name in bench.sets:
        with bench.generated(name) as problem:
            rows += compare(bench, problem)
    return rows


def pass_table(bench: Bench) -> list[Record]:
    """Compare the average pass on set b with k-means passes at the same k."""
    with bench.generated("b") as problem:
        results = [attempt(bench, problem, PLAIN, penalty=problem.penalty)]
        if bench.ours:
            options = {"penalty": problem.penalty, "refine": False}
            results.insert(0, attempt(bench, problem, COUNTLESS_PLAIN, **options))
        k = next((result.k for result in results if result.k), problem.n_true)
        # A random start costs nothing, so that the time is that of the passes alone.
        lloyd = attempt(bench, problem, KMEANS, n_clusters=k, init="random", tol=0.0, max_iter=20)
        results += [lloyd, attempt(bench, problem, FAISS, n_clusters=k)]
    rows: list[Record] = []
    for result in results:
        if result.run is None:
            rows.append({"method": result.title, "k": result.reason})
            continue
        row = {"method": result.title, "k": result.k, "passes": result.run.passes}
        row["seconds a pass"] = result.run.seconds / result.run.passes
        if lloyd.run is not None:
            row["/ Lloyd pass"] = row["seconds a pass"] * lloyd.run.passes / lloyd.run.seconds
        rows.append(row)
    return rows


def auto_table(bench: Bench) -> list[Record]:
    """Compare choosing the penalty with a fit at the penalty that was chosen."""
    rows: list[Record] = []
    for name in bench.sets:
        with bench.generated(name) as problem:
            auto = bench.measure(COUNTLESS, problem, penalty="auto")
            chosen = auto.details["penalty"]
            known = bench.measure(COUNTLESS, problem, penalty=chosen)
            rows.append(
                {
                    "set": name,
                    "true k": problem.n_true,
                    "k": len(np.unique(auto.labels)),
                    "penalty chosen": chosen,
                    "seconds, auto": auto.seconds,
                    "seconds, penalty known": known.seconds,
                    "ratio": auto.seconds / known.seconds,
                }
            )
    return rows


def growth_table(bench: Bench) -> list[Record]:
    """Double rows, columns and clusters in turn; show the time and its ratio to the line above."""
    base = {"n": 5_000 if bench.quick else 50_000, "d": 16, "k": 50}
    rows: list[Record] = []
    for varied in base:
        before: dict[str, float] = {}
        for factor in (1, 2, 4):
            size = base | {varied: factor * base[varied]}
            row: Record = {"varied": varied, **size}
            with bench.problem(f"growth with {varied}", *blobs(**size)) as problem:
                results = [attempt(bench, problem, PLAIN, penalty=problem.penalty)]
                if bench.ours:
                    for contestant, refine in ((COUNTLESS_PLAIN, False), (COUNTLESS, True)):
                        options = {"penalty": problem.penalty, "refine": refine}
                        results.append(attempt(bench, problem, contestant, **options))
            for title, _, _, run, reason in results:
                row[title] = reason or f"{run.seconds:.3f} s, {run.passes} passes"
                if run is not None and title in before:
                    row[title] += f" (x{run.seconds / before[title]:.1f})"
                if run is not None:
                    before[title] = run.seconds
            rows.append(row)
    return rows


def blobs(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows around standard normal centers; return both."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((k, d))
    X = centers[random.integers(k, size=n)]
    return X + 0.3 * random.standard_normal(X.shape), centers


def start_table(bench: Bench) -> list[Record]:
    """Time a small first fit with an empty compilation cache, then in a later process."""
    rows: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.npy"
        np.save(data, np.random.default_rng(0).standard_normal((200, 4)))
        variables = {"NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        for process in ("first, nothing compiled", "later"):
            times = run_isolated(START_UP, {"data": str(data)}, bench.limits, variables)
            rows.append(
                {"process": process, "import, s": times["import"], "first fit, s": times["fit"]}
            )
    return rows


PARTS = {
    "sets": ("The four sets", sets_table),
    "pass": ("A pass on set b", pass_table),
    "auto": ("Choosing the penalty", auto_table),
    "growth": ("Growth of time", growth_table),
    "start": ("A new process", start_table),
}
OURS_ALONE = ("auto", "start")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=names_among(QUICK_ROWS), default="a,b,c,d", help="generated sets to use")
    add("--parts", type=names_among(PARTS), default=",".join(PARTS), help="tables to make")
    add("--threads", type=int, default=2, help="threads for everybody (default: %(default)s)")
    add("--repeat", type=int, help="best of this many fits (default: 3; 1 above 100 MB)")
    add("--timeout", type=float, default=900.0, help="seconds for each contestant on each set")
    add("--quick", action="store_true", help="fewer rows: a smoke run")
    add("--peers-only", action="store_true", help="leave this library out")
    add("--json", type=Path, help="write every figure to this file too")
    return parser.parse_args(arguments)


def names_among(known: Mapping[str, Any]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        if unknown := [name for name in text.split(",") if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return text.split(",")

    return names


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    bench = Bench(options)
    about = machine(options.threads)
    tables: dict[str, list[Record]] = {}
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    for part in options.parts:
        if part in OURS_ALONE and not bench.ours:
            continue
        title, make = PARTS[part]
        try:
            tables[part] = make(bench)
        except ContestantFailed as failure:
            tables[part] = [{"not run": str(failure)}]
        print(f"\n### {title}\n\n{markdown_table(tables[part])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "tables": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
