"""
A tree whose merges are tests
=============================

Learn how Bayesian hierarchical clustering builds a tree and knows where to cut it: every merge has
the log odds of being one cluster, and the tree is cut where they fall below zero.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from countless import BayesianHierarchicalClustering
from countless.metrics import dendrogram_purity
from countless.plot import DendrogramDisplay

digits, digit = load_digits(n_class=5, return_X_y=True)
X, digit = digits[:200] >= 8, digit[:200]  # black or white
tree = BayesianHierarchicalClustering("bernoulli").fit(X)
print(f"{tree.n_clusters_} clusters; log evidence {tree.log_evidence_:.0f}")
print("log odds of the topmost merges:", np.round(tree.log_merge_odds_[-4:], 1).tolist())
print(f"dendrogram purity {dendrogram_purity(tree.linkage_matrix_, digit):.2f}")

# %%
# Clusters in colours, rejected merges in grey, and the digits below. People write a digit in
# several ways, and each way is a cluster.

figure, ax = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
DendrogramDisplay.from_estimator(tree, classes=digit, ax=ax)
plt.show()
