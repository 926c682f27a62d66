"""The answers of every public estimator, function, command and backend on small tables.

A refactoring must not change them. Record the answers before and after it, and compare:

    python benchmarks/answers.py record OLD.json [--only dp-means]
    python benchmarks/answers.py compare OLD.json NEW.json [--only dp-means]

Each case is a name and its facts: labels as a digest and their number of clusters, which must be
equal, and numbers such as the objective, which may differ by 1e-12 of their size. A public name of
`countless` without a case is an error. `--only` selects the cases whose name contains the text.
"""

import argparse
import hashlib
import inspect
import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import chdir, nullcontext
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner
from distributed import Client
from threadpoolctl import threadpool_limits

import countless
from answer_cases import (
    BACKEND_FITS,
    BACKENDS,
    COMMANDS,
    ESTIMATORS,
    FUNCTIONS,
    SEEDS,
    table,
    write_files,
)
from countless.cli import main as command_line

TOLERANCE = 1e-12
LABELS = "labels_", "row_labels_", "column_labels_", "local_labels_"
NUMBERS = (
    *("objective_", "log_joint_", "log_evidence_", "cut_", "relaxed_objective_", "penalty_"),
    *("alpha_", "confidence_", "preference_", "cluster_centers_", "linkage_matrix_"),
    *("log_merge_odds_", "eigenvalues_"),
)
PRINTED = {
    *("n_clusters", "n_segments", "penalty", "objective", "log_joint", "confidence"),
    *("low", "high", "sizes", "dependence", "filled"),
}


def partition(labels) -> str:
    labels = np.asarray(labels, dtype=np.int64)
    digest = hashlib.sha256(labels.tobytes()).hexdigest()[:16]
    return f"{len(np.unique(labels[labels >= 0]))} clusters {digest}"


def numbers(values) -> list[float]:
    """Summarise numbers by their count, norm and a sum that depends on their order."""
    flat = np.asarray(values.toarray() if hasattr(values, "toarray") else values, float).ravel()
    flat = flat[np.isfinite(flat)]
    return [flat.size, float(np.linalg.norm(flat)), float(np.abs(flat) @ np.arange(flat.size))]


def facts(fitted) -> dict:
    """Return what is known of a fitted estimator."""
    found = {"n_clusters_": int(fitted.n_clusters_)}
    for name in LABELS:
        if hasattr(fitted, name):
            found[name] = partition(getattr(fitted, name))
    for name in NUMBERS:
        value = getattr(fitted, name, None)
        if value is not None:
            found[name] = numbers(value) if np.ndim(value) else float(value)
    posterior = getattr(fitted, "posterior_", None)
    if hasattr(posterior, "log_joint"):
        found["log_joint"] = numbers(posterior.log_joint)
    if hasattr(posterior, "labels"):
        found["draws"] = partition(posterior.labels)
    for i, view in enumerate(getattr(fitted, "views_", ())):
        found[f"view {i}"] = f"{list(view.columns)} {partition(view.labels)}"
    return found


def fit(name: str, parameters: dict, data: str, seed: int) -> dict:
    """Fit an estimator, and predict its own rows where that is possible."""
    X, arguments = table(data, seed)
    estimator = getattr(countless, name)(**parameters).set_params(random_state=seed)
    found = facts(estimator.fit(X, **arguments))
    if hasattr(estimator, "predict"):
        known = inspect.signature(estimator.predict).parameters
        predicted = estimator.predict(X, **{k: v for k, v in arguments.items() if k in known})
        found["predict"] = partition(predicted)
    return found


def fit_backend(backend: str, parameters: dict, data: str) -> dict:
    """Fit DP-means to rows in a backend."""
    rows = BACKENDS[backend](table(data, 0)[0])
    with Client(processes=False, dashboard_address=":0") if backend == "dask" else nullcontext():
        return facts(countless.DPMeans(**parameters).fit(rows))


def call(name: str, seed: int) -> dict:
    X, arguments = table("groups", seed)
    answer = FUNCTIONS[name](X, arguments["groups"])
    return {"answer": answer if answer is None else numbers(answer)}


def run(line: str, out: str) -> dict:
    """Run commands; return the facts that each prints, and the labels or table that it writes."""
    found = {}
    for number, command in enumerate(line.replace("OUT", out).split(" && ")):
        target = ["--out", out] if command.startswith(("fit", "segment")) else []
        done = CliRunner().invoke(command_line, [*command.split(), "--json", *target])
        if done.exit_code:
            raise RuntimeError(done.output) from done.exception
        answer = json.loads(done.stdout)
        for echoed in ("arguments", "input", "method"):
            answer.pop(echoed, None)
        found |= {f"{number}{path}": value for path, value in _printed(answer)}
        if "labels" in answer:
            found[f"{number}/labels"] = partition(answer["labels"])
    for path in Path(out).glob("labels.*"):
        found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    for path in Path().glob(f"{out}.csv"):
        for name, column in pd.read_csv(path).items():
            text = column.dtype.kind not in "if"
            found[f"{number}/{name}"] = (
                partition(column.factorize(sort=True)[0]) if text else numbers(column)
            )
    return found


def _printed(value, path: str = "") -> Iterator[tuple]:
    """Yield the facts in the nested objects and lists that a command prints, with their paths."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _printed(inner, f"{path}/{key}")
    elif PRINTED & set(path.split("/")):
        yield path, value


def told(name: str, parameters: dict) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in parameters.items())})"


def cases() -> Iterator[tuple]:
    """Yield the name of each case, the function that computes its facts, and its arguments."""
    for name, fits in ESTIMATORS.items():
        for (given, tables), seed in product(fits, SEEDS):
            for data in tables.split():
                yield f"{told(name, given)} on {data} {seed}", fit, name, given, data, seed
    for name, seed in product(FUNCTIONS, SEEDS):
        yield f"{name} {seed}", call, name, seed
    for (given, tables), backend in product(BACKEND_FITS, BACKENDS):
        for data in tables.split():
            title = f"{told('DPMeans', given)} on {data} in {backend}"
            yield title, fit_backend, backend, given, data
    for number, command in enumerate(COMMANDS):
        yield f"command {command}", run, command, f"out{number}"


def matches(name: str, only: str) -> bool:
    """Whether the name of a case contains a text; `dp-means` is found in `DPMeans`."""
    return only.lower().replace("-", "") in name.lower().replace("-", "")


def record(only: str) -> dict[str, dict]:
    """Return the facts of all cases whose name contains a text, by name; an error is a fact."""
    known = {*ESTIMATORS, *FUNCTIONS, "__version__"}
    if known != set(countless.__all__):
        raise SystemExit(f"not both public and here: {sorted(known ^ set(countless.__all__))}")
    found: dict[str, dict] = {}
    for name, compute, *arguments in cases():
        if matches(name, only):
            start = time.process_time()
            try:
                found[name] = compute(*arguments)
            except Exception as error:
                found[name] = {"error": f"{type(error).__name__}: {error}"}
                print(f"{name}: {found[name]['error']}")
            print(f"{time.process_time() - start:8.2f} s  {name}", file=sys.stderr)
    return found


def differences(old: dict[str, dict], new: dict[str, dict]) -> Iterator[str]:
    """Yield a line for each fact that is not the same in two records."""
    for name in {**old, **new}:
        if name not in old or name not in new:
            yield f"{name}: only in the {'old' if name in old else 'new'} record"
            continue
        for key in {**old[name], **new[name]}:
            before, after = old[name].get(key, "absent"), new[name].get(key, "absent")
            if not equal(before, after):
                yield f"{name}: {key}: {before} -> {after}"


def equal(a, b) -> bool:
    """Whether two facts are equal; numbers that are not integers may differ by the tolerance."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE) or (math.isnan(a) and math.isnan(b))
    return a == b


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("file", type=Path)
    commands.add_parser("compare").add_argument("files", type=Path, nargs=2)
    for command in commands.choices.values():
        command.add_argument("--only", default="", help="cases whose name contains this")
    chosen = parser.parse_args()
    if chosen.command == "compare":
        records = [json.loads(file.read_text()) for file in chosen.files]
        old, new = ({k: v for k, v in r.items() if matches(k, chosen.only)} for r in records)
        lines = list(differences(old, new))
        print(*lines, sep="\n", end="\n" if lines else "")
        sys.exit(bool(lines))
    target = chosen.file.absolute()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, chdir(folder), threadpool_limits(1):
        write_files()
        found = record(chosen.only)
    target.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(any("error" in case for case in found.values()))


if __name__ == "__main__":
    main()
