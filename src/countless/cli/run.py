"""One clustering from a prepared table to the files of a run; ``fit`` and ``demo`` share it."""

import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from .. import __version__
from .._data.table import counted
from .._data.write import Content, table_csv, write_directory
from .._errors import InputError
from .._labels import NOISE
from .._report.plain import (
    how_probable,
    how_sure,
    how_sure_of_draws,
    number,
    users_choice,
    what_to_try,
)
from .._report.summary import ClusterSummary
from .._report.text import TEXT, candidates_view, clusters_view
from ..edited_clustering import apply_edits
from ..preprocess.prepare import Preparation
from ..serialize.model_file import can_save, model_bytes
from .console import Screen, to_json
from .data import Cells, MemoryTable, PreparedTable, agreement_line
from .methods import METHODS
from .mixture import posterior_of, posterior_picture, posterior_record
from .options import FILES
from .picture import candidates_picture, path_picture
from .progress import follow
from .report import report_of_data
from .schema import VERSION
from .texts import read_texts, words_and_names

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow", "scikit-image")


@dataclass(frozen=True)
class Request:
    """What to run on the data, and where results are written."""

    command: str
    method: str
    arguments: dict[str, Any]
    seed: int
    out: Path
    force: bool
    plot: bool
    report: bool = False
    n_bootstrap: int = 0
    edits: dict[str, Any] | None = None
    texts: Path | None = None
    layers: bool = False
    nodes: Path | None = None


def run(screen: Screen, data: PreparedTable, estimator: Any, request: Request) -> None:
    """Cluster the data, report the result, and write it."""
    with _resuming(screen, estimator):
        _run(screen, data, estimator, request)


def _run(screen: Screen, data: PreparedTable, estimator: Any, request: Request) -> None:
    texts = None
    if request.texts is not None:
        assert isinstance(data, MemoryTable), "tables out of core were refused"
        texts = read_texts(request.texts, data.table.n_rows)
    labels = _fit(screen, data, estimator, request.method)
    gap = None
    if request.arguments.get("optimality_gap"):
        with screen.step("optimality-gap", "computing a lower bound"):
            try:
                gap = estimator.optimality_gap(data.given, **_fit_arguments(data))
            except ValueError as error:
                raise InputError(f"--optimality-gap: {error}") from error
    if request.edits is not None:
        estimator = _edit(screen, data, estimator, request.edits)
        labels = estimator.labels_
    with screen.step("summarize", "describing the clusters"):
        clusters = data.summarize(labels)
        agreement = data.agreement(labels)
        cells = data.cells([cluster.typical for cluster in clusters])
    result = result_of(estimator, clusters, cells, data) | {"agreement": agreement}
    if gap is not None:
        result["optimality_gap"] = {**gap._asdict(), "gap": gap.gap}
    if texts is not None:
        _add_words(result, data, estimator, clusters, texts)
    columns: dict[str, np.ndarray] = {}
    if request.layers:
        columns, result["layers"] = _layers(estimator, request.method)
    show_result(screen, clusters, cells, result, request.method)

    files: dict[str, Content] = {
        "labels.csv": data.labels_csv(labels, columns),
        "clusters.csv": clusters_csv(result["clusters"], clusters, cells, data.preparation),
    }
    try:
        files |= data.with_clusters(labels, columns)
    except InputError as error:
        screen.warn(f"no table with the clusters is written: {error}")
    if can_save(estimator):
        files["model.zip"] = model_bytes(estimator, data.preparation)
    else:
        screen.note(f"{request.method} has no rule for new rows: labels are saved, a model is not")
    if request.plot:
        picture = METHODS[request.method].picture
        with screen.step("plot", f"drawing the {picture}"):
            files[f"{picture}.png"] = _PICTURES[picture](estimator, data, request.seed)
    if request.report:
        assert isinstance(data, MemoryTable), "tables out of core were refused"
        with screen.step("report", "drawing the report"):
            files["report.html"] = report_of_data(estimator, data, labels, request)
    record = write_run(screen, data.record(), estimator, request, result, files)
    screen.finish(record)


def _fit(screen: Screen, data: PreparedTable, estimator: Any, method: str) -> Any:
    n_rows, n_columns = data.shape
    if data.weight is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(f"{method} takes no row weights; leave out --weight")
    if data.groups is not None and not has_fit_parameter(estimator, "groups"):
        raise InputError(f"{method} takes no groups; leave out --group, or use hdp-means")
    doing = f"{method} on {n_rows} rows of {n_columns}"
    with screen.step("fit", doing) as say:
        if screen.err.is_terminal:
            follow(estimator, say, data.shape)
        try:
            labels = estimator.fit_predict(data.given, **_fit_arguments(data))
        except (ValueError, OSError) as error:
            raise InputError(f"{method}: {data.in_table_terms(error)}") from error
    if hasattr(estimator, "checkpoint"):
        estimator.set_params(checkpoint=None)  # not a part of the model
    return labels


def _fit_arguments(data: PreparedTable) -> dict[str, Any]:
    """Return the weights and the groups of the rows, where there are any."""
    known = {"sample_weight": data.weight, "groups": data.groups}
    return {name: values for name, values in known.items() if values is not None}


def _layers(estimator: Any, method: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the columns of the layers, and their tree for the run record."""
    try:
        labels, tree = estimator.layers_, estimator.layer_tree_
    except AttributeError as error:
        raise InputError(f"--layers: {method} has no path here; try --method dp-means") from error
    layers = [
        {**layer._asdict(), "parents": parent.tolist(), "sizes": size.tolist()}
        for layer, parent, size in zip(tree.layers, tree.parents, tree.sizes, strict=True)
    ]
    columns = {f"layer_{number}": own for number, own in enumerate(labels, start=1)}
    return columns, {"layers": layers, "tree": tree.lines()}


def _add_words(
    result: dict[str, Any],
    data: PreparedTable,
    estimator: Any,
    clusters: list[ClusterSummary],
    texts: list[str],
) -> None:
    """Add the words and the names of clusters to the result."""
    given = getattr(estimator, "cluster_names_", [])
    words, names = words_and_names(data, estimator.labels_, clusters, texts, given)
    for one in result["clusters"]:
        if one["label"] in words:
            one["name"] = names[one["label"]]
            one["words"] = words[one["label"]]


def _edit(screen: Screen, data: PreparedTable, estimator: Any, edits: dict[str, Any]) -> Any:
    """Return the fitted estimator with the user's edits."""
    with screen.step("edit", "applying the edits"):
        try:
            return apply_edits(estimator, edits, data.given)
        except ValueError as error:
            raise InputError(f"--edits: {error}") from error


@contextmanager
def _resuming(screen: Screen, estimator: Any) -> Iterator[None]:
    """Lock the estimator's checkpoint, and remove it once the results are written."""
    path = getattr(estimator, "checkpoint", None)
    if path is None:
        yield
        return
    from .._search.checkpoint import claim_file

    with ExitStack() as stack:
        try:
            file = stack.enter_context(claim_file(path))
        except (ValueError, OSError) as error:
            raise InputError(f"checkpoint: {error}") from error
        if file.path.exists():
            screen.note(f"going on from {path}")
        estimator.set_params(checkpoint=file)
        try:
            yield
        except KeyboardInterrupt:
            if file.path.exists():
                screen.note(f"the same command goes on from {path}")
            raise
        file.path.unlink(missing_ok=True)


def result_of(
    estimator: Any, clusters: list[ClusterSummary], cells: Cells, data: Any
) -> dict[str, Any]:
    """Return the result, for the run record; ``data`` has columns and groups."""
    result: dict[str, Any] = {
        "n_clusters": sum(cluster.label != NOISE for cluster in clusters),
        "n_noise": sum(cluster.size for cluster in clusters if cluster.label == NOISE),
    }
    penalties = ("penalty_", "local_penalty_", "global_penalty_")
    for name in (*penalties, "objective_", "alpha_", "log_evidence_", "n_iter_", "converged_"):
        if hasattr(estimator, name):
            result[name.removesuffix("_")] = getattr(estimator, name)
    if getattr(estimator, "background", None) is not None:
        price = estimator.background_price_
        result["background_price"] = price if np.isfinite(price) else None
    if hasattr(estimator, "edits_"):
        result["edits"] = estimator.edits_["edits"]
    elif data.groups is not None:
        pairs = zip(estimator.groups_, estimator.n_local_clusters_, strict=True)
        n_local = {str(name): int(n) for name, n in pairs}
        result["groups"] = {"column": data.roles.group, "n_local_clusters": n_local}
    if hasattr(estimator, "candidates_"):
        result["best_method"], result["reason"] = estimator.best_method_, estimator.reason_
        result["confidence"], result["candidates"] = estimator.confidence_, estimator.candidates_
    elif path := getattr(estimator, "path_", None):
        result["confidence"] = path.confidence
        result["plateaus"] = path.plateaus[:10]
        if getattr(estimator, "n_clusters", None) is not None:
            result["supported_clusters"] = path.n_clusters
    if (posterior := posterior_of(estimator)) is not None:
        result["posterior"] = posterior_record(posterior)
    used = [column.name for column in data.columns if column.used]
    result["clusters"] = [
        {
            **{name: value for name, value in cluster._asdict().items() if name != "means"},
            **_name_of(estimator, cluster.label),
            "typical": int(cells.rows[cluster.typical]) + 1,
            "typical_values": {name: cells.cell(cluster.typical, name) for name in used},
        }
        for cluster in clusters
    ]
    return result


def background_line(result: dict[str, Any]) -> str:
    """Return the line that says how many rows belong to no cluster.

    Examples
    --------
    >>> noise = {"label": -1, "share": 0.03}
    >>> background_line({"background_price": 2.5, "n_noise": 12, "clusters": [noise]})
    'background: 12 rows, 3 %, farther than 2.5 from every center'
    >>> background_line({"background_price": None, "n_noise": 0, "clusters": []})
    'background: no row; nothing shows that there is any'
    """
    price, n_rows = result["background_price"], result["n_noise"]
    if price is None:
        return "background: no row; nothing shows that there is any"
    share = sum(cluster["share"] for cluster in result["clusters"] if cluster["label"] == NOISE)
    how_many = f"{counted(n_rows, 'row')}, {100 * share:.2g} %"
    return f"background: {how_many}, farther than {number(price)} from every center"


def _name_of(estimator: Any, label: int) -> dict[str, str]:
    """Return the name that the user gave to a cluster, if any."""
    names = getattr(estimator, "cluster_names_", [])
    name = names[label] if 0 <= label < len(names) else ""
    return {"name": name} if name else {}


def show_result(
    screen: Screen,
    clusters: list[ClusterSummary],
    cells: Cells,
    result: dict[str, Any],
    method: str,
) -> None:
    """Print the number of clusters, its confidence, and the distinguishing features of each."""
    line = f"{counted(result['n_clusters'], 'cluster')}, found by {method}"
    if "edits" in result:
        line += f" and edited ({counted(len(result['edits']), 'edit')})"
    if "best_method" in result:
        line += f": {result['best_method']}"
    if "penalty" in result:
        line += f" at penalty {number(result['penalty'])}"
    if "global_penalty" in result:
        line += f" at global penalty {number(result['global_penalty'])}"
        line += f" and local penalty {number(result['local_penalty'])}"
    if result["n_noise"] and "background_price" not in result:
        line += f"; {counted(result['n_noise'], 'row')} of noise"
    screen.show(line)
    if "optimality_gap" in result:
        share = 100 * result["optimality_gap"]["gap"]
        screen.show(f"no clustering has an objective that is more than {share:.2g} % lower")
    if "background_price" in result:
        screen.show(background_line(result))
    if "groups" in result:
        sizes = result["groups"]["n_local_clusters"].values()
        often = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else f"{min(sizes)}"
        screen.show(f"{counted(len(sizes), 'data set')}, each with {often} of them")
    if "candidates" in result:
        screen.show(how_probable(result["confidence"]), result["reason"])
        screen.show("", candidates_view(result["candidates"], result["best_method"]))
        for line in what_to_try(result["n_clusters"], result["confidence"]):
            screen.show(line)
    elif "supported_clusters" in result:
        screen.show(users_choice(result["supported_clusters"], result["confidence"]))
    elif "confidence" in result:
        screen.show(how_sure(result["confidence"], result["plateaus"]))
    if "posterior" in result:
        screen.show(*how_sure_of_draws(result["posterior"]))
    names, words = (
        {one["label"]: one[kind] for one in result["clusters"] if kind in one}
        for kind in ("name", "words")
    )
    screen.show("", clusters_view(clusters, cells.cell, cells.row_name, names, words))
    if "layers" in result:
        counts = [str(layer["n_clusters"]) for layer in result["layers"]["layers"]]
        screen.show("", f"Layers of {' > '.join(counts)} clusters, coarse to fine:")
        tree = result["layers"]["tree"]
        screen.show(*(f"  {line}" for line in tree[: TEXT.tree_lines]))
        if len(tree) > TEXT.tree_lines:
            screen.show(f"  ... and {len(tree) - TEXT.tree_lines} more")
    if agreement := result["agreement"]:
        screen.show("", agreement_line(agreement))


def _draw_path(estimator: Any, data: PreparedTable, seed: int) -> bytes:
    """Draw the path that the fit used, or that of the data if it used none."""
    if (path := getattr(estimator, "path_", None)) is not None:
        return path_picture(path)
    if not hasattr(estimator, "divergence"):
        raise InputError("--plot draws what the penalty was chosen from; leave out --penalty")
    from .._path.penalty import penalty_path

    settings = {"divergence": estimator.divergence, "random_state": seed}
    return path_picture(penalty_path(data.matrix, sample_weight=data.weight, **settings))


# What --plot draws, by the picture of the method.
_PICTURES = {
    "candidates": lambda estimator, data, seed: candidates_picture(estimator, data.matrix),
    "path": _draw_path,
    "posterior": lambda estimator, data, seed: posterior_picture(estimator),
}


def clusters_csv(
    records: list[dict[str, Any]],
    clusters: list[ClusterSummary],
    cells: Cells,
    preparation: Preparation,
) -> bytes:
    """Return the profile of each cluster as CSV; ``records`` are those of `result_of`."""
    header = ["cluster", "name", "rows", "share", "typical row"]
    header += [
        feature.column if feature.level is None else f"{feature.column} = {feature.level}"
        for feature in preparation.features()
    ]
    lines = [
        [
            str(cluster.label),
            record.get("name", ""),
            str(cluster.size),
            f"{cluster.share:.6g}",
            cells.row_name(cluster.typical),
            *(f"{mean:.6g}" for mean in cluster.means),
        ]
        for record, cluster in zip(records, clusters, strict=True)
    ]
    return table_csv(header, zip(*lines, strict=True))


def write_run(
    screen: Screen,
    source: dict[str, Any],
    estimator: Any,
    request: Request,
    result: dict[str, Any],
    files: Mapping[str, Content],
) -> dict[str, Any]:
    """Write the files of a run, with its record, which is returned, and a list of what they are."""
    names = sorted([*files, "README.txt", "run.json"])
    record = run_record(screen, source, estimator, request, result, names)
    own = {"README.txt": readme(names), "run.json": to_json(record).encode()}
    write_directory(request.out, {**files, **own}, FILES, request.force)
    screen.show("", f"Wrote {request.out}/: {', '.join(names)}")
    return record


def readme(names: Iterable[str]) -> bytes:
    """Return a text that says what each file of a run is.

    Examples
    --------
    >>> print(readme(["README.txt"]).decode(), end="")
    What countless has written here:
    <BLANKLINE>
    README.txt
        this list
    """
    lines = [f"{name}\n{indent(fill(FILES[name], 76), '    ')}\n" for name in names]
    return "\n".join(["What countless has written here:\n", *lines]).encode()


def run_record(
    screen: Screen,
    source: dict[str, Any],
    estimator: Any,
    request: Request,
    result: dict[str, Any],
    files: list[str],
) -> dict[str, Any]:
    """Return the contents of run.json: how to repeat the run, the input, and the result."""
    return {
        "schema": VERSION,
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
