"""The page of a report: one HTML file that loads nothing, and shows data as text only."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from countless import __version__
from countless._data.write import write_file

SCRIPTS = (
    "1_dom.js",
    "2_edits.js",
    "3_profile.js",
    "4_state.js",
    "5_plots.js",
    "6_cards.js",
    "7_sections.js",
    "8_main.js",
)
_BOKEH = ("bokeh.min.js", "bokeh-api.min.js")
# These could end the element that holds the data, or a line of JavaScript.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def report(
    model: Any,
    X: Any,
    path: str | Path,
    *,
    columns: Any = None,
    rows: Any = None,
    source: str | None = None,
    title: str | None = None,
    coordinates: Any = None,
    n_bootstrap: int = 0,
    force: bool = False,
) -> Path:
    """Write a page about a clustering that can be looked at, edited and sent.

    The file needs no network and no server. It has the verdict in words, a map, a card for each
    cluster, the path with a slider for the number of clusters, and what else the model has; for a
    table of more than 20,000 rows, a sample of its rows. Clusters can be renamed, merged, split and
    locked on it; what it saves is for `apply_edits`. Needs ``pip install 'countless[report]'``.

    Parameters
    ----------
    model : estimator
        Fitted, of countless or with scikit-learn's ``labels_`` or ``predict``.
    X : array-like, sparse matrix, data frame or graph
        The rows of the fit; or other rows, whose clusters are then predicted.
    path : str or Path
        Where to write.
    columns : sequence of str, optional
        Names of the columns of an array.
    rows : sequence of str, optional
        Names of the rows.
    source : str, optional
        The name of the table.
    title : str, optional
        The heading.
    coordinates : array-like of shape (n_samples, 2), optional
        For the map, beside principal components; such as those of UMAP.
    n_bootstrap : int, default=0
        How many resamples are clustered to see how stable each cluster is.
    force : bool, default=False
        Whether to overwrite.

    Returns
    -------
    Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from countless import DPMeans, report
    >>> iris = load_iris()
    >>> model = DPMeans(random_state=0).fit(iris.data)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "iris.html")
    >>> page = report(model, iris.data, path, columns=iris.feature_names, source="iris")
    >>> page.stat().st_size < 2_000_000
    True
    """
    from countless._report.data import report_data
    from countless._report.sheet import sheet_of
    from countless.edited_clustering import labels_of, path_of

    _packages()
    labels = cast(np.ndarray, labels_of(model, X))
    sheet = sheet_of(X, labels, source=source or "table", names=_texts("rows", rows, len(labels)))
    if (given := _texts("columns", columns, sheet.n_columns)) is not None:
        sheet = sheet.renamed(given)
    data = report_data(
        model,
        sheet,
        labels,
        path=path_of(model, X),
        coordinates=coordinates,
        stability=_stability(model, X, n_bootstrap),
        title=title,
    )
    write_file(Path(path), page_bytes(data), force=force)
    return Path(path)


def _texts(what: str, values: Any, n: int) -> list[str] | None:
    if values is None:
        return None
    texts = [str(value) for value in values]
    if len(texts) != n:
        raise ValueError(f"{what} has {len(texts)} names for {n} {what}")
    return texts


def _stability(model: Any, X: Any, n_bootstrap: int) -> Any:
    if type(n_bootstrap) is not int or n_bootstrap < 0:
        raise ValueError(f"n_bootstrap must be an integer from 0 up; got {n_bootstrap!r}")
    if not n_bootstrap:
        return None
    from countless.stability import bootstrap

    return bootstrap(model, X, n_draws=n_bootstrap, random_state=0)


def page_bytes(data: Mapping[str, Any]) -> bytes:
    """Return the page that shows a report's data.

    Examples
    --------
    >>> embedded({"name": "</script><b>"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e"}'
    """
    jinja2, markup, bokeh = _packages()
    folder = files("countless._report") / "assets"
    own = "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    scripts = [*bokeh, f'(() => {{\n"use strict";\n{own}}})();\n']
    template = jinja2.Environment(autoescape=True).from_string(
        (folder / "template.html.j2").read_text(encoding="utf-8")
    )
    page = template.render(
        data=data,
        version=__version__,
        policy=markup(_policy(scripts)),
        style=markup((folder / "page.css").read_text(encoding="utf-8")),
        scripts=[markup(script) for script in scripts],
        embedded=markup(embedded(data)),
    )
    return page.encode()


def embedded(data: Mapping[str, Any]) -> str:
    """Return data as JSON that cannot end the element that holds it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A surrogate without its partner cannot be encoded.
    return text.translate(_ESCAPES).encode("utf-8", "replace").decode()


def _policy(scripts: list[str]) -> str:
    """Return a policy by which these scripts run, nothing is compiled, and nothing is loaded.

    Bokeh writes style sheets into the page; styles cannot run or load anything here.
    """
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _packages() -> tuple[Any, Any, list[str]]:
    """Return Jinja2, its markup, and Bokeh's scripts, or raise an error that names the extra."""
    try:
        import jinja2
        from markupsafe import Markup

        return jinja2, Markup, _bokeh_scripts()
    except ImportError as error:
        raise ImportError(
            "reports need Bokeh and Jinja2: pip install 'countless[report]'"
        ) from error


@cache
def _bokeh_scripts() -> list[str]:
    """Return the scripts in Bokeh's package, which is not imported."""
    spec = find_spec("bokeh")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("Bokeh is not installed")
    folder = Path(spec.submodule_search_locations[0], "server", "static", "js")
    scripts = [(folder / name).read_text(encoding="utf-8") for name in _BOKEH]
    if any("</script" in script.lower() for script in scripts):
        raise ValueError("Bokeh's JavaScript cannot be put into a page: it would end its element")
    return scripts
