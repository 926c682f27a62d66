"""
DP-means: one penalty instead of k
==================================

Learn what the penalty does: it is the price of a cluster, so a low one gives many clusters and a
high one few. The middle picture is the penalty that the data suggests.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from countless import DPMeans

X, _ = make_blobs(600, centers=6, cluster_std=0.5, random_state=2)
chosen = DPMeans(random_state=0).fit(X)
print(f"penalty='auto' takes {chosen.penalty_:.1f}: {chosen.n_clusters_} clusters")

figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.9), layout="constrained")
for ax, factor in zip(axes, (0.02, 1, 30), strict=True):
    model = DPMeans(factor * chosen.penalty_, random_state=0).fit(X)
    print(f"penalty {model.penalty_:8.1f}: {model.n_clusters_} clusters")
    ax.scatter(*X.T, c=model.labels_, cmap="tab20", s=6)
    ax.scatter(*model.cluster_centers_.T, c="black", marker="x", s=30)
    ax.set(xticks=[], yticks=[], title=f"penalty {model.penalty_:.3g}: k = {model.n_clusters_}")
plt.show()
