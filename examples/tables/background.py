"""
Rows that belong to no cluster
==============================

Learn how `background="auto"` leaves stray rows without a cluster (label -1), and decides from the
data how many there are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from countless import DPMeans

rows, _ = make_blobs(540, centers=[[0, 0], [0, 30], [30, 0], [30, 30]], random_state=0)
stray = np.random.default_rng(0).uniform(-10, 40, size=(120, 2))
X = np.vstack([rows, stray])

model = DPMeans(background="auto").fit(X)
away = model.labels_ == -1
print(f"{model.n_clusters_} clusters; {away.sum()} rows are background, {len(stray)} were planted")
print(f"a row farther than {model.background_price_**0.5:.2f} from every center is background")

figure, ax = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
ax.scatter(*X[away].T, c="0.6", s=10, marker="x", label="background")
ax.scatter(*X[~away].T, c=model.labels_[~away], cmap="tab10", vmax=9, s=10)
ax.set_aspect("equal")
ax.legend(loc="center")
plt.show()
