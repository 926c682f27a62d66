"""What a report says, as a plain dictionary: JSON values only, versioned.

``format``, ``version``
    "countless report" and 1.
``title``, ``source``
    The heading; the table's ``name``, and its numbers of ``rows``, ``rows_used``, ``rows_shown``,
    ``columns`` and ``columns_shown``.
``verdict``
    ``headline``, ``confidence`` (or null) and what it is ``confidence_of``, ``lines`` in plain
    words, ``advice`` where the answer is weak.
``rows``
    Of the rows that are shown: their ``number`` in the table, ``name`` (or null) and ``atom``.
``columns``
    Those that are shown: ``name``, ``kind`` ("numeric" or "categorical"), whether ``used``,
    ``values`` (numbers or null; or indices of ``levels``, -1 for missing).
``treatment``
    What was done to each column of the table: ``name``, ``kind``, ``gaps``, ``done``, ``used``.
``maps``
    Coordinates of the rows shown: ``name``, ``x_label``, ``y_label``, ``x``, ``y``.
``atoms``
    Groups of rows (all rows, not only those shown) that edits cannot separate: ``base``, the
    cluster of the model; ``item``, the micro-cluster; ``rows``, how many.
``names``, ``edits``
    Names of the model's clusters, empty where there is none; edits made before, or null.
``editable``, ``not_editable``
    Whether the clusters can be edited, and why not.
``tree``
    Or null: ``children``, merges of micro-clusters; ``height``; ``refined``, the labels of
    micro-clusters by number of clusters where they are not those of the merges; ``scale``, what
    heights are; ``predicts``, whether splits can be predicted for new rows.
``path``
    Or null: ``k`` with the ``low`` and ``high`` end of the penalties that give it; ``marked``,
    plateaus with their ``score`` and ``width``, the chosen one first; what a penalty is ``called``.
``labelings``
    Other clusterings of the rows shown, to look at beside the model's: ``kind`` ("candidate",
    "draw" or "view"), ``name``, ``note``, ``labels`` (-2 for rows that have none; matched to the
    model's clusters), ``n_clusters``, ``differs`` (share of rows).
``candidates``, ``posterior``, ``dependence``, ``stability``, ``groups``, ``picture``
    Sections that only some models have, or null.
``repeat``
    ``command`` or null, ``python``, ``versions``, ``parameters``.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from countless import __version__
from countless._edits import find_atoms
from countless._report.plain import counted_clusters
from countless._report.sections import (
    candidates_section,
    dependence_section,
    groups_section,
    labelings,
    path_section,
    posterior_section,
    stability_section,
    tree_section,
)
from countless._report.sheet import (
    Sheet,
    choose_columns,
    choose_rows,
    plain_numbers,
    principal_components,
)
from countless._report.verdict import verdict
from countless.edited_clustering import EditedClustering, merges_of, path_of

FORMAT, VERSION = "countless report", 1
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def report_data(
    model: Any,
    sheet: Sheet,
    labels: np.ndarray,
    *,
    path: Any = None,
    coordinates: Any = None,
    stability: Any = None,
    treatment: Sequence[Mapping[str, Any]] | None = None,
    command: str | None = None,
    title: str | None = None,
    picture: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the contents of a report of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted, or read from a file.
    sheet : Sheet
        The rows.
    labels : ndarray of shape (n_rows,)
        Their clusters; -1 is noise.
    path : PenaltyPath, optional
        The path of the rows, if the model does not have it.
    coordinates : array-like of shape (n_rows, 2), optional
        For the map, such as those of UMAP.
    stability : Stability, optional
        As `bootstrap` returns it.
    treatment : sequence of mappings, optional
        What was done to each column.
    command : str, optional
        The command that made the report.
    title : str, optional
        The heading; by default the number of clusters in the table.
    picture : mapping, optional
        For a picture, its section: ``width``, ``height``, ``n_segments``, and ``images`` with a
        ``name`` and a ``source``, a data address. The rows are then its superpixels.

    Examples
    --------
    >>> import json
    >>> from sklearn.datasets import load_iris
    >>> from countless import DPMeans
    >>> from countless._report.sheet import sheet_of
    >>> X = load_iris().data
    >>> model = DPMeans(random_state=0).fit(X)
    >>> data = report_data(model, sheet_of(X, model.labels_, source="iris"), model.labels_)
    >>> data["verdict"]["headline"], sum(data["atoms"]["rows"]), data["path"]["k"][:4]
    ('2 clusters', 150, [1, 2, 3, 4])
    >>> json.loads(json.dumps(data)) == data
    True
    """
    labels = np.asarray(labels).astype(np.int64)
    shown = choose_rows(labels)
    path = path if path is not None else path_of(model)
    # The drawings of a picture would not follow a slider.
    merges = None if picture is not None else merges_of(model, labels, path=path)
    atoms, atom = find_atoms(labels, merges)
    columns = choose_columns(sheet, labels, shown)
    n_clusters = len(np.unique(labels[labels >= 0]))
    edited = model.edits_ if isinstance(model, EditedClustering) else None
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": title or f"{counted_clusters(n_clusters)} in {sheet.source}",
        "source": {
            "name": sheet.source,
            "rows": sheet.n_source_rows,
            "rows_used": sheet.n_rows,
            "rows_shown": len(shown),
            "columns": sheet.n_columns,
            "columns_shown": len(columns),
        },
        "verdict": verdict(model, path, n_clusters),
        "rows": {
            "number": sheet.positions[shown].tolist(),
            "name": None if sheet.names is None else [str(sheet.names[i]) for i in shown],
            "atom": atom[shown].tolist(),
        },
        "columns": columns,
        "treatment": list(treatment) if treatment is not None else _treatment(sheet),
        "maps": _maps(sheet, shown, coordinates),
        "atoms": {name: getattr(atoms, name).tolist() for name in ("base", "item", "rows")},
        "names": list(getattr(model, "cluster_names_", [])),
        "edits": edited,
        "editable": edited is None and picture is None and hasattr(model, "predict"),
        "not_editable": _not_editable(edited, picture),
        "tree": tree_section(model, path, merges),
        "path": path_section(path, model) if merges is not None else None,
        "labelings": labelings(model, labels, shown),
        "candidates": candidates_section(model),
        "posterior": posterior_section(model, labels),
        "dependence": dependence_section(model),
        "stability": stability_section(stability, labels),
        "groups": groups_section(model),
        "picture": None if picture is None else dict(picture),
        "repeat": _repeat(model, command),
    }


def _not_editable(edited: Any, picture: Any) -> str:
    """Return why clusters cannot be edited on the page, if so."""
    if edited is not None:
        return "The clusters were edited before."
    if picture is not None:
        return "Segments of a picture cannot be edited."
    return "This method has no rule for new rows: its clusters cannot be edited."


def _treatment(sheet: Sheet) -> list[dict[str, Any]]:
    """Return the columns as they are, for rows that were given to an estimator directly."""
    found = []
    for column in sheet.columns:
        missing = column.values < 0 if column.levels is not None else np.isnan(column.values)
        found.append(
            {
                "name": column.name,
                "kind": column.kind,
                "gaps": int(missing.sum()),
                "done": column.done or "as it is",
                "used": column.used,
            }
        )
    return found


def _maps(sheet: Sheet, shown: np.ndarray, coordinates: Any) -> list[dict[str, Any]]:
    """Return the coordinates of the rows: given ones, and principal components."""
    maps = []
    if coordinates is not None:
        points = np.asarray(coordinates, dtype=np.float64)
        if points.shape != (sheet.n_rows, 2):
            raise ValueError(
                f"coordinates must have the shape ({sheet.n_rows}, 2); got {points.shape}"
            )
        if not np.isfinite(points).all():
            row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
            raise ValueError(f"coordinates: row {row} is not finite")
        maps.append(_map("given coordinates", ["x", "y"], points[shown]))
    if sheet.matrix is not None and sheet.matrix.shape[1] >= 1:
        points, share = principal_components(sheet.matrix[shown])
        axes = [
            f"principal component {i} ({100 * one:.0f} % of the variance)"
            for i, one in enumerate(share, start=1)
        ]
        maps.append(_map("principal components", axes, points))
    return maps


def _map(name: str, axes: list[str], points: np.ndarray) -> dict[str, Any]:
    x, y = (plain_numbers(values) for values in points.T)
    return {"name": name, "x_label": axes[0], "y_label": axes[1], "x": x, "y": y}


def _repeat(model: Any, command: str | None) -> dict[str, Any]:
    inner = getattr(model, "estimator_", model)
    parameters = inner.get_params(deep=False) if hasattr(inner, "get_params") else {}
    versions = {"countless": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        versions[name] = metadata.version(name)
    python = f"{type(inner).__name__}({_arguments(inner)}).fit(X)"
    if isinstance(model, EditedClustering):
        python = f'apply_edits({python}, "edits.json")'
    return {
        "command": command,
        "python": f"from countless import *\n\nmodel = {python}",
        "versions": versions,
        "parameters": {name: _text(value) for name, value in parameters.items()},
    }


def _arguments(estimator: Any) -> str:
    """Return the parameters that are not their defaults."""
    if not hasattr(estimator, "get_params"):
        return ""
    usual = type(estimator)().get_params(deep=False)
    changed = [
        f"{name}={_text(value)}"
        for name, value in estimator.get_params(deep=False).items()
        if _text(value) != _text(usual.get(name))
    ]
    return ", ".join(changed)


def _text(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else text[:199] + "…"
