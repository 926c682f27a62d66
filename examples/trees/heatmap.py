"""
A heat map in the order of a tree
=================================

Learn how to see which columns set clusters apart: sort the rows of a table by a tree, and colour
its cells.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from countless import BayesianHierarchicalClustering
from countless.plot import HeatmapDisplay

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
tree = BayesianHierarchicalClustering().fit(X)
print(f"{tree.n_clusters_} clusters of wines with full covariances")
names = [name.split("/")[0].replace("_", " ") for name in wine.feature_names]
figure = plt.figure(figsize=(7.2, 4.2), layout="constrained")
HeatmapDisplay.from_estimator(tree, X, columns=names, center=0.0, figure=figure)
plt.show()
