"""
A file that is never in memory as a whole
=========================================

Learn how to cluster a file larger than memory: give its path to `fit`. The answer is that of the
same rows in memory, to the last bit.

``python examples/large/larger_than_memory.py ROWS`` does it with as many rows as you like.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from countless import DPMeans

N_ROWS = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 60_000
PIECE = 20_000

random = np.random.default_rng(0)
centers = random.uniform(-10, 10, size=(5, 8))

# %%
# Rows are written piece by piece, and clustered from the file, block by block.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "rows.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (N_ROWS, 8))
    for start in range(0, N_ROWS, PIECE):
        part = rows[start : start + PIECE]
        part[:] = centers[random.integers(5, size=len(part))] + random.normal(size=part.shape)
    sample = np.array(rows[:: N_ROWS // 2_000])
    del rows

    model = DPMeans(random_state=0).fit(path)
    print(f"{N_ROWS:,} rows on disk, {model.n_clusters_} clusters of", end=" ")
    print(", ".join(f"{weight:,.0f}" for weight in model.cluster_weights_), "rows")

# %%
# A sample of the rows, labelled by `predict`.

figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
ax.scatter(*sample[:, :2].T, c=model.predict(sample), cmap="tab10", vmax=9, s=5)
ax.scatter(*model.cluster_centers_[:, :2].T, c="black", marker="x")
ax.set(xlabel="column 0", ylabel="column 1")
plt.show()
