"""
A tree from the top
===================

Learn how `DivisiveClustering` splits all rows step by step, and how the cut is chosen: where the
gap of the tree is wider than that of data without clusters.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from countless import DivisiveClustering
from countless.plot import DendrogramDisplay

iris = load_iris()
species = iris.target_names[iris.target]
model = DivisiveClustering("diana", random_state=0).fit(iris.data)
print(f"{model.n_clusters_} clusters by the gap")
three = DivisiveClustering("diana", n_clusters=3).fit(iris.data)
print(
    f"three: adjusted Rand index with the species {adjusted_rand_score(species, three.labels_):.2f}"
)

figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
DendrogramDisplay.from_estimator(three, classes=species, ax=ax).ax_.set_ylabel("diameter (cm)")
plt.show()
