"""
Shared clusters, with their uncertainty
=======================================

Learn what `HDPMixture` adds to `HDPMeans`: draws from the posterior, so that the number of shared
clusters comes with a probability and every row with a degree of certainty.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from countless import HDPMixture

centers = np.array([[0, 0], [7, 1], [3, 6], [10, 6], [7, 11]])
uses = {"north": [0, 1, 2], "south": [1, 2, 3], "west": [3, 4]}
random = np.random.RandomState(1)
truth = np.concatenate([random.choice(some, 40) for some in uses.values()])
groups = np.repeat(list(uses), 40)
X = centers[truth] + random.standard_normal((120, 2))

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # two short chains do here
    mixture = HDPMixture(n_chains=2, n_sweeps=250, random_state=0).fit(X, groups=groups)
share = mixture.posterior_.n_clusters_distribution()
for k in np.flatnonzero(share > 0.005):
    print(f"{k} clusters with probability {share[k]:.2f}")

# %%
# Faint rows are uncertain: they are often drawn apart from the rest of their cluster.

with_own = mixture.labels_[:, None] == mixture.labels_
certain = np.average(mixture.posterior_.similarity(), axis=1, weights=with_own)
figure, axes = plt.subplots(
    1, 3, figsize=(7.6, 2.9), sharex=True, sharey=True, layout="constrained"
)
for ax, name in zip(axes, uses, strict=True):
    here = groups == name
    colors = [f"C{label}" for label in mixture.labels_[here]]
    ax.scatter(*X[~here].T, c="0.9", s=5)
    ax.scatter(*X[here].T, c=colors, alpha=certain[here] ** 3, s=18)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
