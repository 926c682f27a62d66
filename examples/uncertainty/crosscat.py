"""
Which columns belong together?
==============================

Learn how `CrossCat` takes apart what does not belong together. Irises and wines are joined side by
side: they share nothing but the number of rows, and one cell in twenty is missing.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from countless import CrossCat
from countless.plot import DependenceDisplay, ViewsDisplay
from countless.plot.dependence import view_numbers

random = np.random.default_rng(0)
iris, wine = load_iris(), load_wine()
names = [*iris.feature_names, *wine.feature_names]
table = np.hstack([iris.data[random.permutation(150)], wine.data[random.permutation(178)[:150]]])
table[random.random(table.shape) < 0.05] = np.nan

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # two short chains do here
    model = CrossCat(n_chains=2, n_sweeps=40, random_state=1).fit(table)
for view in model.views_:
    print(f"{view.n_clusters} groups of rows by {', '.join(names[j] for j in view.columns)}")
filled, uncertainty = model.impute()
row, column = np.argwhere(~np.isnan(uncertainty))[0]
print(f"row {row}, {names[column]}: {filled[row, column]:.2f} ± {uncertainty[row, column]:.2f}")
worst = model.unusual_cells(1)[0]
print(f"fits worst: row {worst.row}, {names[worst.column]} = {worst.value:g}")

# %%
# The probability that two columns share a view.

DependenceDisplay(model.dependence(), view_numbers(model), names).plot()
plt.show()

# %%
# The table, cut into views; the rows of each are sorted by its own groups.

ViewsDisplay.from_estimator(model)
plt.show()
