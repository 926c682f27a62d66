"""
A report to send
================

Learn how one call writes a page with the clusters, the reasons and a slider over the number of
clusters. It is one HTML file that needs no network.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from countless import DPMeans, report

iris = load_iris()
model = DPMeans(random_state=0).fit(iris.data)
with tempfile.TemporaryDirectory() as folder:
    page = report(model, iris.data, Path(folder) / "iris.html", columns=iris.feature_names)
    print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB, {model.n_clusters_} clusters")

# %%
# The slider of the page moves along the penalty path. Three of its positions:

figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.8), sharey=True, layout="constrained")
for ax, k in zip(axes, (2, 3, 4), strict=True):
    labels = model.path_.labels_at(model.path_.penalty_for(k))
    ax.scatter(iris.data[:, 0], iris.data[:, 2], c=labels, cmap="tab10", vmax=9, s=10)
    ax.set(title=f"{k} clusters", xlabel=iris.feature_names[0])
axes[0].set_ylabel(iris.feature_names[2])
plt.show()
