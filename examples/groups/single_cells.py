"""
Cells in batches
================

Learn how to cluster cells of several batches without choosing the number of cell types: normalise
counts, reduce them to principal components, and let batches share clusters.

Counts are simulated: six types of cells, 80 genes of which each type raises some, three batches
with a shift of their own, and not every type in every batch.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from countless import HDPMeans

random = np.random.default_rng(0)
n_types, n_genes = 6, 80
profile = random.gamma(2.0, 2.0, size=n_genes) * np.exp(
    1.2 * random.normal(size=(n_types, n_genes))
)
in_batch = {"A": [0, 1, 2, 3], "B": [1, 2, 3, 4], "C": [0, 3, 4, 5]}

batch = np.repeat(list(in_batch), 200)
kind = np.concatenate([random.choice(types, 200) for types in in_batch.values()])
shift = {name: np.exp(0.1 * random.normal(size=n_genes)) for name in in_batch}
depth = random.lognormal(0.0, 0.3, size=(600, 1))
rate = profile[kind] * np.array([shift[name] for name in batch]) * depth
counts = random.poisson(random.gamma(4.0, rate / 4.0))  # overdispersed, as counts of cells are

# %%
# The usual preparation: equal depth, logarithm, principal components.

scaled = np.log1p(1e3 * counts / counts.sum(axis=1, keepdims=True))
components = PCA(10, random_state=0).fit_transform(scaled)
model = HDPMeans(random_state=0).fit(components, groups=batch)
print(f"{model.n_clusters_} clusters; 6 types were simulated")
print(f"adjusted Rand index with the types: {adjusted_rand_score(kind, model.labels_):.2f}")
for name, n_local in zip(model.groups_, model.n_local_clusters_, strict=True):
    print(f"  batch {name} has {n_local} of them; {len(in_batch[name])} were simulated")

figure, axes = plt.subplots(
    1, 3, figsize=(7.8, 2.8), sharex=True, sharey=True, layout="constrained"
)
for ax, name in zip(axes, in_batch, strict=True):
    here = batch == name
    ax.scatter(*components[~here, :2].T, c="0.88", s=5)
    ax.scatter(*components[here, :2].T, c=model.labels_[here], cmap="tab10", vmin=0, vmax=9, s=10)
    ax.set(title=f"batch {name}", xlabel="first component")
axes[0].set_ylabel("second component")
plt.show()
