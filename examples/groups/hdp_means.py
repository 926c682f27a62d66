"""
Three data sets, five clusters
==============================

Learn how `HDPMeans` clusters several data sets together: clusters are shared, and each data set
uses some of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from countless import HDPMeans

centers = np.array([[0, 0], [6, 1], [3, 5], [9, 5], [6, 9]])
uses = {"north": [0, 1, 2], "south": [1, 2, 3], "west": [3, 4]}
random = np.random.RandomState(0)
truth = np.concatenate([random.choice(some, 60) for some in uses.values()])
groups = np.repeat(list(uses), 60)
X = centers[truth] + random.standard_normal((180, 2))

model = HDPMeans(random_state=0).fit(X, groups=groups)
print(f"{model.n_clusters_} clusters in all")
for name, n_local in zip(model.groups_, model.n_local_clusters_, strict=True):
    print(f"  {name} uses {n_local}")

figure, axes = plt.subplots(
    1, 3, figsize=(7.6, 2.9), sharex=True, sharey=True, layout="constrained"
)
for ax, name in zip(axes, uses, strict=True):
    here = groups == name
    ax.scatter(*X[~here].T, c="0.85", s=6)
    ax.scatter(*X[here].T, c=model.labels_[here], cmap="tab10", vmin=0, vmax=9, s=16)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
