"""
Round, elliptical or connected?
===============================

Learn how `AutoClustering` chooses a family of clusters: it fits all of them and compares the
evidence. Noise comes back as one cluster.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons

from countless import AutoClustering

tilt = np.array([[0.6, -0.64], [-0.4, 0.85]])
sets = {
    "long blobs": make_blobs(500, centers=3, random_state=170)[0] @ tilt,
    "moons": make_moons(500, noise=0.07, random_state=0)[0],
    "rings": make_circles(600, factor=0.45, noise=0.06, random_state=0)[0],
    "noise": np.random.default_rng(0).uniform(size=(500, 2)),
}

figure, axes = plt.subplots(1, 4, figsize=(8, 2.4), layout="constrained")
for ax, (name, X) in zip(axes, sets.items(), strict=True):
    model = AutoClustering().fit(X)
    print(f"{name}: k = {model.n_clusters_}, confidence {model.confidence_:.2f}. {model.reason_}")
    ax.scatter(*X.T, c=model.labels_, cmap="tab10", vmax=9, s=5)
    ax.set(
        xticks=[], yticks=[], title=name, xlabel=f"{model.best_method_}, k = {model.n_clusters_}"
    )
plt.show()
