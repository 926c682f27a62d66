"""
Do the chains agree?
====================

Learn how to check a sampler: chains that start apart must end in the same distribution. Here two
chains with split-merge moves agree within some sweeps.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from countless import DPMixture
from countless.plot import TraceDisplay

X, _ = make_blobs(600, 4, centers=8, center_box=(-10, 10), random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # burn-in is kept, to look at it
    mixture = DPMixture(n_chains=2, n_sweeps=60, burn_in=0, random_state=0).fit(X)
for name, diagnostic in mixture.posterior_.diagnostics().items():
    print(f"{name:10s}  R-hat {diagnostic.r_hat:5.2f}")
print(f"{mixture.n_clusters_} clusters; 8 were simulated")
TraceDisplay.from_estimator(mixture)
plt.show()
