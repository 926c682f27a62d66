"""
Rows that keep coming
=====================

Learn how `partial_fit` follows a stream: clusters are opened when the data asks for them, and each
has an id that never changes its meaning. No batch is kept.

Rows come from two places, and from the fifth batch on from a third.
"""

import matplotlib.pyplot as plt
import numpy as np

from countless import DPMeans

PLACES = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])

random = np.random.default_rng(0)
model = DPMeans(random_state=0)
sizes = []
for batch in range(8):
    place = random.integers(2 if batch < 4 else 3, size=500)
    model.partial_fit(PLACES[place] + random.normal(scale=0.5, size=(500, 2)))
    sizes.append(dict(zip(model.cluster_ids_.tolist(), model.cluster_weights_, strict=True)))
    found = ", ".join(
        f"{cluster_id} at ({x:.1f}, {y:.1f})"
        for cluster_id, (x, y) in zip(model.cluster_ids_, model.cluster_centers_, strict=True)
    )
    print(f"batch {batch}: {model.n_clusters_} clusters: {found}")

# %%
# The number of rows of each cluster after every batch.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for cluster_id in sorted({key for size in sizes for key in size}):
    ax.plot([size.get(cluster_id, 0) for size in sizes], marker="o", label=f"cluster {cluster_id}")
ax.set(xlabel="batch", ylabel="rows so far")
ax.legend()
plt.show()
