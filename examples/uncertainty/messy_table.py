"""
A messy table: types, gaps, and a mistake
=========================================

Learn how to use `CrossCat` on a table as people have it: numbers, categories and yes or no, with
missing cells and an entry that cannot be right. No preparation is needed.

The table is generated: customers of two kinds, and a region that has nothing to do with them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from countless import CrossCat
from countless.plot import DependenceDisplay

random = np.random.default_rng(0)
n = 200
shop = random.random(n) < 0.4
north = random.random(n) < 0.5
table = pd.DataFrame(
    {
        "orders": random.poisson(np.where(shop, 40, 5)),
        "basket": np.where(shop, 320, 60) * random.lognormal(0, 0.25, n),
        "channel": np.where(shop ^ (random.random(n) < 0.05), "invoice", "card"),
        "region": np.where(north, "north", "south"),
        "delivery days": np.where(north, 2, 5) + random.poisson(1, n),
    }
).astype({"orders": float, "delivery days": float})
table.loc[7, "basket"] = 3200.0  # a decimal point in the wrong place
table = table.mask(random.random(table.shape) < 0.08)
print(table.head(4).round(1).to_string())

# %%
# Columns that depend on each other share a view, and each view has groups of rows of its own.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # two short chains do here
    model = CrossCat(n_chains=2, n_sweeps=60, random_state=0).fit(table)
for view in model.views_:
    print(f"{view.n_clusters} groups of rows by {', '.join(view.columns)}")
for cell in model.unusual_cells(2):
    print(f"unusual: row {cell.row}, {cell.column} = {cell.value}")
filled, uncertainty = model.impute()
print(f"{int(table.isna().sum().sum())} missing cells were imputed")

DependenceDisplay.from_estimator(model)
plt.show()
