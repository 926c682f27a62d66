"""
Are the clusters found again?
=============================

Learn how `bootstrap` measures whether clusters are an accident of the sample: it clusters resampled
rows with the same estimator and compares.

There are three blobs. DP-means finds them in every resample; k-means that is told five always
returns five, but not the same ones.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from countless import DPMeans, bootstrap
from countless.plot import StabilityDisplay

X, _ = make_blobs([80, 80, 160], centers=[[0, 0], [0, 7], [9, 3]], random_state=0)
for name, estimator in {"DPMeans()": DPMeans(), "KMeans(5)": KMeans(5, n_init=1)}.items():
    found = bootstrap(estimator, X, n_draws=30, random_state=0)
    means = ", ".join(f"{value:.2f}" for value in found.stability)
    print(f"{name}: mean Jaccard index of each cluster: {means}")

# %%
# Left: the index of each of the five clusters in every resample. Right: which rows stay together.

StabilityDisplay.from_stability(found)
plt.show()
