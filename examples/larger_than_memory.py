"""Cluster a file that is never in memory as a whole.

Run ``python examples/larger_than_memory.py [ROWS]``. Rows are written to a .npy file piece by
piece, and clustered from there; the answer is that of the same rows in memory, to the last bit.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from countless import DPMeans

N_ROWS = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 60_000
PIECE = 20_000

rng = np.random.default_rng(0)
centers = rng.uniform(-10, 10, size=(3, 8))

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "rows.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (N_ROWS, 8))
    for start in range(0, N_ROWS, PIECE):
        part = rows[start : start + PIECE]
        part[:] = centers[rng.integers(3, size=len(part))] + rng.normal(size=part.shape)
    del rows

    model = DPMeans(random_state=0).fit(path)
    print(f"{N_ROWS:,} rows on disk: {model.n_clusters_} clusters of", end=" ")
    print(", ".join(f"{weight:,.0f}" for weight in model.cluster_weights_), "rows")
    print("new rows belong to", model.predict(centers).tolist())
