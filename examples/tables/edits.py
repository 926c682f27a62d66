"""
Correct a clustering by hand
============================

Learn how to rename, merge and split clusters, and keep a model that predicts. The report page saves
such edits as a file; here they are written in Python.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from countless import DPMeans, apply_edits

iris = load_iris()
model = DPMeans(random_state=0).fit(iris.data)
steps = [
    {"action": "choose", "n_clusters": 3},
    {"action": "rename", "cluster": 0, "name": "short petals"},
    {"action": "rename", "cluster": 1, "name": "middle"},
    {"action": "rename", "cluster": 2, "name": "long petals"},
]
edited = apply_edits(model, {"format": "countless edits", "version": 1, "edits": steps})
print(f"{model.n_clusters_} clusters before, {edited.n_clusters_} after: {edited.cluster_names_}")
print("a new flower belongs to:", edited.cluster_names_[edited.predict([[6.0, 3.0, 4.5, 1.5]])[0]])

figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True, layout="constrained")
for ax, name, labels in zip(
    axes, ("as fitted", "as edited"), (model.labels_, edited.labels_), strict=True
):
    ax.scatter(iris.data[:, 2], iris.data[:, 3], c=labels, cmap="tab10", vmax=9, s=16)
    ax.set(title=name, xlabel=iris.feature_names[2])
axes[0].set_ylabel(iris.feature_names[3])
plt.show()
