"""
Exemplars: rows that stand for the others
=========================================

Learn how `AffinityPropagation` represents every cluster by one of its own rows. It needs only
similarities of pairs, and finds the number of exemplars itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from countless import AffinityPropagation
from countless.metrics import purity

images, digit = load_digits(n_class=3, return_X_y=True)
images, digit = images[:200], digit[:200]
model = AffinityPropagation(preference="auto", random_state=0).fit(images)
print(f"{model.n_clusters_} clusters of {len(images)} images, each with an exemplar")
print(f"purity: {purity(digit, model.labels_):.2f} of the images show the digit of their cluster")

# %%
# Each line is an exemplar, framed, and images of its cluster.

n_shown, n_lines = 9, min(model.n_clusters_, 8)
figure, axes = plt.subplots(n_lines, n_shown, figsize=(5.4, 0.62 * n_lines), layout="constrained")
for k, across in enumerate(axes):
    exemplar = model.cluster_centers_indices_[k]
    members = np.setdiff1d(np.flatnonzero(model.labels_ == k), exemplar)[: n_shown - 1]
    for ax in across:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    for ax, row in zip(across, [exemplar, *members], strict=False):
        ax.imshow(images[row].reshape(8, 8), cmap="gray_r")
    across[0].spines[:].set(visible=True, color="tab:orange", linewidth=3)
plt.show()
