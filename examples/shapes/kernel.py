"""
Rings: DP-means with a kernel
=============================

Learn what a kernel changes. DP-means cuts a ring into arcs; in the feature space of a heat kernel,
in which rows are close when many short steps connect them, each ring is one cluster.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm
from scipy.sparse.csgraph import laplacian
from sklearn.datasets import make_circles
from sklearn.neighbors import kneighbors_graph

from countless import DPMeans, KernelDPMeans

X, _ = make_circles(400, noise=0.05, factor=0.4, random_state=0)
graph = kneighbors_graph(X, n_neighbors=10).toarray()
heat = expm(-1000 * laplacian(np.maximum(graph, graph.T), normed=True))
models = {
    "DPMeans": DPMeans(random_state=0).fit(X),
    "KernelDPMeans": KernelDPMeans(kernel="precomputed", random_state=0).fit((heat + heat.T) / 2),
}

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    print(f"{name}: {model.n_clusters_} clusters")
    ax.scatter(*X.T, c=model.labels_, cmap="tab20", s=8)
    ax.set(title=f"{name}: {model.n_clusters_} clusters", xticks=[], yticks=[], aspect="equal")
plt.show()
