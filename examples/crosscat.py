"""Two tables glued together, taken apart again: which columns belong together, and who fits worst.

Irises and wines share nothing but the number of rows. Run ``python examples/crosscat.py``; where
matplotlib is installed it also draws crosscat-dependence.png and crosscat-views.png.
"""

import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from countless import CrossCat


def glue(seed=0, missing=0.05):
    """Return 150 irises beside 150 wines with some missing values, and the names of the columns."""
    random = np.random.default_rng(seed)
    iris, wine = load_iris(), load_wine()
    flowers = iris.data[random.permutation(150)]
    wines = wine.data[random.permutation(178)[:150]]
    table = np.hstack([flowers, wines])
    table[random.random(table.shape) < missing] = np.nan
    return table, [*iris.feature_names, *wine.feature_names]


def fit(table):
    """Return views of the table; two short chains will do here, whether or not they agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CrossCat(n_chains=2, n_sweeps=40, random_state=1).fit(table)


def main():
    table, names = glue()
    model = fit(table)
    for view in model.views_:
        print(f"{view.n_clusters} clusters of rows by {', '.join(names[j] for j in view.columns)}")
    filled, uncertainty = model.impute()
    row, column = np.argwhere(~np.isnan(uncertainty))[0]
    spread = uncertainty[row, column]
    print(f"row {row}, {names[column]}: {filled[row, column]:.2f} give or take {spread:.2f}")
    worst = model.unusual_cells(1)[0]
    print(f"fits worst: row {worst.row}, {names[worst.column]} = {worst.value:g}")
    if find_spec("matplotlib"):
        import matplotlib

        matplotlib.use("Agg")
        draw(model, names)


def draw(model, names):
    """Draw both pictures."""
    from countless.plot import DependenceDisplay, ViewsDisplay
    from countless.plot.dependence import view_numbers

    display = DependenceDisplay(model.dependence(), view_numbers(model), names).plot()
    display.figure_.savefig("crosscat-dependence.png")
    ViewsDisplay.from_estimator(model).figure_.savefig("crosscat-views.png")


if __name__ == "__main__":
    main()
