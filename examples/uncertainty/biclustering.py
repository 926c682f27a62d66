"""
Rows and columns at once
========================

Learn how `DPBiclustering` clusters both sides of a table, so that it falls into homogeneous blocks.
Rows are images of the digits 0, 1 and 2, columns are their pixels.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from countless import DPBiclustering
from countless.plot import BiclusterDisplay

images, digit = load_digits(n_class=3, return_X_y=True)
table, digit = (images[:120] >= 8).astype(float), digit[:120]  # ink or no ink
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # two short chains do here
    model = DPBiclustering(n_chains=2, n_sweeps=60, random_state=0).fit(table)
print(f"{model.n_clusters_} clusters of images and {model.n_column_clusters_} of pixels")
for cluster in range(model.n_clusters_):
    counts = np.bincount(digit[model.row_labels_ == cluster], minlength=3)
    shown = ", ".join(f"{n} times {d}" for d, n in enumerate(counts) if n)
    print(f"  images {cluster}: {shown}")

# %%
# Left: the table with rows and columns sorted by cluster. Right: the clusters of the pixels, where
# they are in an image.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(7.6, 3.6), width_ratios=(1.7, 1), layout="constrained"
)
BiclusterDisplay.from_estimator(model, table, ax=left)
right.imshow(model.column_labels_.reshape(8, 8), cmap="tab20")
right.set(title="clusters of pixels", xticks=[], yticks=[])
plt.show()
