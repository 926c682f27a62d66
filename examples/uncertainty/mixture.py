"""
How sure is k? A posterior
==========================

Learn how to read the posterior of a mixture. With few rows several numbers of clusters are
plausible; with more rows fewer are.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from countless import DPMixture
from countless.plot import ClusterCountDisplay, ComponentsDisplay, SimilarityDisplay

lengths = load_iris().data[:, [0, 2]]  # of sepals and petals
order = np.random.default_rng(0).permutation(len(lengths))

for n_rows in (20, 150):
    X = lengths[order[:n_rows]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat is printed instead
        mixture = DPMixture(n_chains=2, random_state=0).fit(X)
    posterior = mixture.posterior_
    low, high = posterior.n_clusters_interval()
    r_hat = posterior.diagnostics()["n_clusters"].r_hat
    print(f"{n_rows} flowers: {mixture.n_clusters_} clusters")
    print(f"  {low} to {high} with a probability of 0.95; R-hat {r_hat:.2f}, 1 if chains agree")

# %%
# The probability of each number of clusters, the components, and which rows are drawn together.

figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
ClusterCountDisplay.from_estimator(mixture, ax=axes[0])
ComponentsDisplay.from_estimator(mixture, X, ax=axes[1])
SimilarityDisplay.from_estimator(mixture, ax=axes[2])
plt.show()
