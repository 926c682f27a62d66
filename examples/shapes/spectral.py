"""
Moons: spectral clustering without k
====================================

Learn how the spectrum of a neighbour graph tells the number of connected clusters: eigenvalues near
1 are clusters, and a wide gap ends them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from countless import SpectralDPMeans

X, _ = make_moons(600, noise=0.06, random_state=3)
model = SpectralDPMeans(random_state=0).fit(X)
print(f"{model.n_clusters_} clusters at penalty {model.penalty_:.4f}")
gaps = 1 - SpectralDPMeans(0.9, random_state=0).fit(X).eigenvalues_[:10]
print("1 - eigenvalue:", np.array2string(gaps[:5], precision=5, suppress_small=True))

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
left.scatter(*X.T, c=model.labels_, cmap="tab10", vmax=9, s=6)
left.set(title=f"{model.n_clusters_} clusters", xticks=[], yticks=[])
best = model.path_.plateaus[0]
right.axhspan(1 - best.high, 1 - best.low, color="tab:orange", alpha=0.2, linewidth=0)
right.semilogy(np.arange(2, 11), gaps[1:], "o")
right.set(title="1 - eigenvalue, and the plateau", xlabel="eigenvector")
plt.show()
