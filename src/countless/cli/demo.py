"""``countless demo``: a complete run on a table that ships with scikit-learn."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import FILES, force_option, json_option, quiet_option, seed_option

if TYPE_CHECKING:
    from .._data.table import Table


@click.command(short_help="Cluster a table of wines, and see what comes out.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("countless-demo"),
    show_default=True,
    help="Where results go.",
)
@seed_option
@json_option
@quiet_option
@force_option
def demo(out: Path, seed: int, as_json: bool, quiet: bool, force: bool) -> None:
    """Cluster 178 wines of three cultivars, without saying that there are three.

    The cultivars are kept aside and compared with the clusters afterwards.
    """
    from .._data.columns import Roles
    from .._data.write import check_free
    from .console import Screen
    from .data import prepare_data
    from .methods import DEFAULT, make_estimator
    from .run import Request, run

    check_free(out, FILES, force)
    screen = Screen(quiet=quiet, as_json=as_json)
    with screen.step("read", "reading the wine table"):
        table = _wine()
    roles = Roles(compare="cultivar")
    data = prepare_data(screen, table, roles, missing="error", scale=True, divergence="sqeuclidean")
    estimator = make_estimator(DEFAULT, {}, seed=seed, jobs=None)
    arguments = {"out": str(out), "seed": seed, "force": force}
    run(screen, data, estimator, Request("demo", DEFAULT, arguments, seed, out, force, plot=True))


def _wine() -> "Table":
    import numpy as np
    from sklearn.datasets import load_wine

    from .._data.table import Column, Numbers, Table, Words

    wine = load_wine()
    columns: dict[str, Column] = {
        name: Numbers(wine.data[:, j]) for j, name in enumerate(wine.feature_names)
    }
    columns["cultivar"] = Words(wine.target.astype(np.int64), ("1", "2", "3"))
    return Table("wine (scikit-learn)", columns, len(wine.data), format="scikit-learn")
