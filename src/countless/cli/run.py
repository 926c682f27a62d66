"""One clustering from a prepared table to the files of a run; ``fit`` and ``demo`` share it."""

import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from .. import __version__, metrics
from ..io.errors import InputError
from ..io.model_file import can_save, model_bytes
from ..io.table import counted
from ..io.write import labels_csv, write_directory
from ..report.plain import how_sure, number
from ..report.summary import NOISE, ClusterSummary, summarize_clusters
from ..report.text import clusters_view
from .data import Data
from .picture import path_picture
from .progress import follow
from .screen import Screen, to_json

FILES = ("labels.csv", "model.zip", "path.png", "run.json")

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow")


@dataclass(frozen=True)
class Request:
    """What to do with the data, and where the results go."""

    command: str
    method: str
    arguments: dict[str, Any]
    seed: int
    out: Path
    force: bool
    plot: bool


def run(screen: Screen, data: Data, estimator: Any, request: Request) -> None:
    """Cluster the data, say what was found, and write it down."""
    labels = _fit(screen, data, estimator, request.method)
    with screen.step("summarize", "describing the clusters"):
        clusters = summarize_clusters(
            data.matrix, labels, data.plan.preparation.features(), weight=data.weight
        )
        agreement = _agreement(data, labels)
    result = _result(estimator, labels, clusters, data) | {"agreement": agreement}
    _show(screen, data, clusters, result, request.method)

    files = {"labels.csv": _labels(data, labels)}
    if can_save(estimator):
        files["model.zip"] = model_bytes(estimator, data.plan.preparation)
    else:
        screen.note(f"{request.method} has no rule for new rows: labels are saved, a model is not")
    if request.plot:
        with screen.step("plot", "drawing the penalty path"):
            files["path.png"] = path_picture(_path_of(estimator, data, request.seed))
    record = run_record(screen, data.record(), estimator, request, result, [*files, "run.json"])
    files["run.json"] = to_json(record).encode()
    write_directory(request.out, files, FILES, request.force)
    screen.show("", f"Wrote {request.out}/: {', '.join(sorted(files))}")
    for hint in data.hints():
        screen.note(hint)
    screen.finish(record)


def _fit(screen: Screen, data: Data, estimator: Any, method: str) -> np.ndarray:
    n_rows, n_columns = data.matrix.shape
    extra: dict[str, Any] = {}
    if data.weight is not None:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise InputError(f"{method} takes no row weights; leave out --weight")
        extra["sample_weight"] = data.weight
    if data.groups is not None:
        if not has_fit_parameter(estimator, "groups"):
            raise InputError(f"{method} takes no groups; leave out --group, or use hdp-means")
        extra["groups"] = data.groups
    doing = f"clustering {n_rows} rows and {n_columns} features by {method}"
    with screen.step("fit", doing) as say:
        if screen.err.is_terminal:
            follow(estimator, say)
        try:
            labels = estimator.fit_predict(data.matrix, **extra)
        except (ValueError, MemoryError) as error:
            raise InputError(f"{method}: {data.in_table_terms(error)}") from error
    return np.asarray(labels)


def _agreement(data: Data, labels: np.ndarray) -> dict[str, Any] | None:
    """Compare the clusters with a column that was kept aside for that."""
    if data.roles.compare is None:
        return None
    codes = data.table.words(data.roles.compare).codes[data.plan.prepared.rows]
    known = codes >= 0
    if not known.any():
        raise InputError(f"column {data.roles.compare!r} is empty: nothing to compare with")
    truth, found = codes[known], labels[known]
    return {
        "column": data.roles.compare,
        "rows": int(known.sum()),
        "normalized_mutual_information": metrics.normalized_mutual_info_score(truth, found),
        "adjusted_rand": metrics.adjusted_rand_score(truth, found),
        "purity": metrics.purity(truth, found),
    }


def _result(
    estimator: Any, labels: np.ndarray, clusters: list[ClusterSummary], data: Data
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "n_clusters": sum(cluster.label != NOISE for cluster in clusters),
        "n_noise": int((labels == NOISE).sum()),
    }
    penalties = ("penalty_", "local_penalty_", "global_penalty_")
    for name in (*penalties, "objective_", "n_iter_", "converged_"):
        if hasattr(estimator, name):
            result[name.removesuffix("_")] = getattr(estimator, name)
    if data.groups is not None:
        pairs = zip(estimator.groups_, estimator.n_local_clusters_, strict=True)
        n_local = {str(name): int(n) for name, n in pairs}
        result["groups"] = {"column": data.roles.group, "n_local_clusters": n_local}
    if path := getattr(estimator, "path_", None):
        result["confidence"] = path.confidence
        result["plateaus"] = path.plateaus[:10]
    used = [column.name for column in data.plan.columns if column.used]
    result["clusters"] = [
        {
            **cluster._asdict(),
            "typical": int(data.plan.prepared.rows[cluster.typical]) + 1,
            "typical_values": {name: data.cell(cluster.typical, name) for name in used},
        }
        for cluster in clusters
    ]
    return result


def _show(
    screen: Screen, data: Data, clusters: list[ClusterSummary], result: dict[str, Any], method: str
) -> None:
    line = f"{counted(result['n_clusters'], 'cluster')}, found by {method}"
    if "penalty" in result:
        line += f" at penalty {number(result['penalty'])}"
    if "global_penalty" in result:
        line += f" at global penalty {number(result['global_penalty'])}"
        line += f" and local penalty {number(result['local_penalty'])}"
    if result["n_noise"]:
        line += f"; {counted(result['n_noise'], 'row')} of noise"
    screen.show(line)
    if "groups" in result:
        sizes = result["groups"]["n_local_clusters"].values()
        often = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else f"{min(sizes)}"
        screen.show(f"{counted(len(sizes), 'data set')}, each with {often} of them")
    if "confidence" in result:
        screen.show(how_sure(result["confidence"], result["plateaus"]))
    screen.show("", clusters_view(clusters, data.cell, data.row_name))
    if agreement := result["agreement"]:
        screen.show(
            "",
            f"Agreement with {agreement['column']}: "
            f"NMI {agreement['normalized_mutual_information']:.2f}, "
            f"adjusted Rand {agreement['adjusted_rand']:.2f}, purity {agreement['purity']:.2f}",
        )


def _path_of(estimator: Any, data: Data, seed: int) -> Any:
    """Return the path that the fit used, or the path of the data when it used none."""
    if (path := getattr(estimator, "path_", None)) is not None:
        return path
    if not hasattr(estimator, "divergence"):
        raise InputError("--plot draws what the penalty was chosen from; leave out --penalty")
    from ..hard.penalty import penalty_path

    settings = {"divergence": estimator.divergence, "random_state": seed}
    return penalty_path(data.matrix, sample_weight=data.weight, **settings)


def _labels(data: Data, labels: np.ndarray) -> bytes:
    return labels_csv(labels, data.plan.prepared.rows, data.table.n_rows, data.ids())


def run_record(
    screen: Screen,
    source: dict[str, Any],
    estimator: Any,
    request: Request,
    result: dict[str, Any],
    files: list[str],
) -> dict[str, Any]:
    """Return what run.json says: how to repeat the run, what was read, and what came out."""
    return {
        "countless": __version__,
        "versions": _versions(),
        "command": request.command,
        "arguments": request.arguments,
        "seed": request.seed,
        "input": source,
        "method": {
            "name": request.method,
            "class": type(estimator).__name__,
            "parameters": estimator.get_params(deep=False),
        },
        "result": result,
        "warnings": screen.warnings,
        "seconds": screen.seconds,
        "files": sorted(files),
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
