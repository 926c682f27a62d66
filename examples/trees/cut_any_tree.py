"""
Cut a tree of SciPy
===================

Learn where to cut a tree that another library built. `cut_gap` compares its gaps with those of data
without clusters that the same linkage was applied to.
"""

import matplotlib.pyplot as plt
from scipy.cluster.hierarchy import linkage
from sklearn.datasets import make_blobs

from countless import cut_gap
from countless.plot import DendrogramDisplay

X, _ = make_blobs(120, centers=5, n_features=4, cluster_std=1.5, random_state=4)
for method in ("average", "complete", "ward"):
    cut = cut_gap(linkage(X, method), X, method=method, random_state=0)
    print(f"{method:9s} {cut.n_clusters} clusters, confidence {cut.confidence:.2f}")

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
tree = linkage(X, "ward")
DendrogramDisplay.from_linkage(tree, labels=cut.labels, ax=ax)
ax.axhline(cut.height, color="0.5", linestyle=":")
plt.show()
