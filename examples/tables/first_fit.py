"""
A first clustering
==================

Learn how to cluster a table without choosing the number of clusters, and where the answer is kept.

The table has 178 wines and 13 measurements. They come from three growers, which the fit is not
told.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from countless import AutoClustering
from countless.metrics import adjusted_rand_score

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
model = AutoClustering().fit(X)

print(f"{model.n_clusters_} clusters, confidence {model.confidence_:.2f}")
print(model.reason_)
print(
    f"adjusted Rand index with the growers: {adjusted_rand_score(wine.target, model.labels_):.2f}"
)

# %%
# The first two principal components show most of what the method saw.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.scatter(*PCA(2).fit_transform(X).T, c=model.labels_, cmap="tab10", vmax=9, s=22)
ax.set(xlabel="first component", ylabel="second component", title="178 wines, three clusters")
plt.show()
