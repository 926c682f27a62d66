"""Clusters of a stream: born when the data asks for them, with ids that never change meaning.

Run ``python examples/stream.py``. Rows come from two places, later from a third; no batch is kept.
"""

import numpy as np

from countless import DPMeans

PLACES = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])

rng = np.random.default_rng(0)
model = DPMeans(random_state=0)
for batch in range(8):
    n_places = 2 if batch < 4 else 3
    place = rng.integers(n_places, size=500)
    model.partial_fit(PLACES[place] + rng.normal(scale=0.5, size=(500, 2)))
    found = ", ".join(
        f"{cluster_id} at ({x:.1f}, {y:.1f})"
        for cluster_id, (x, y) in zip(model.cluster_ids_, model.cluster_centers_, strict=True)
    )
    print(f"batch {batch}: {model.n_clusters_} clusters: {found}")

print("new rows belong to", model.predict(PLACES).tolist())
