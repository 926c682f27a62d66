"""
Save a model, label new rows
============================

Learn how to keep a fitted model: `save_model` writes JSON and plain arrays, never a pickle, and the
loaded model gives the same labels.
"""

import tempfile
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from countless import AutoClustering, load_model, save_model

X, _ = make_moons(500, noise=0.06, random_state=0)
model = AutoClustering().fit(X)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "moons.zip"
    save_model(path, model)
    print(f"{path.stat().st_size / 1e3:.0f} kB:", ", ".join(zipfile.ZipFile(path).namelist()))
    again = load_model(path).estimator
print(f"loaded: {type(again).__name__}, {again.n_clusters_} clusters")

# %%
# The label of every point of the plane, by the loaded model.

across, up = np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1, 1.5, 80))
labels = again.predict(np.column_stack([across.ravel(), up.ravel()])).reshape(across.shape)
figure, ax = plt.subplots(figsize=(5.8, 3.6), layout="constrained")
ax.pcolormesh(across, up, labels, cmap="tab10", vmax=9, alpha=0.25, linewidth=0)
ax.scatter(*X.T, c=model.labels_, cmap="tab10", vmax=9, s=8)
plt.show()
