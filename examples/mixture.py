"""How sure is k? Ask the posterior of a mixture, with few rows and with more.

Run ``python examples/mixture.py``; where matplotlib is installed it also draws posterior.png.
"""

import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from countless import DPMixture

lengths = load_iris().data[:, [0, 2]]  # of sepals and petals
order = np.random.default_rng(0).permutation(len(lengths))

for n_rows in (20, 150):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat is printed instead
        mixture = DPMixture(n_chains=2, random_state=0).fit(lengths[order[:n_rows]])
    posterior = mixture.posterior_
    low, high = posterior.n_clusters_interval()
    r_hat = posterior.diagnostics()["n_clusters"].r_hat
    print(f"{n_rows} flowers: {mixture.n_clusters_} clusters")
    print(f"  {low} to {high} with a probability of 0.95; R-hat {r_hat:.2f}, 1 if chains agree")
    for k, share in enumerate(posterior.n_clusters_distribution()):
        if share > 0:
            print(f"  {k:2d} {share:5.2f} {'#' * round(40 * share)}")

# The flowers that are least often with the rest of their cluster.
together = posterior.similarity()
own = mixture.labels_[:, None] == mixture.labels_
sure = np.array([row[same].mean() for row, same in zip(together, own, strict=True)])
print("least sure:", ", ".join(f"flower {order[i]} ({sure[i]:.2f})" for i in sure.argsort()[:4]))

if find_spec("matplotlib") is not None:
    import matplotlib

    matplotlib.use("agg")
    from countless.plot import SimilarityDisplay

    SimilarityDisplay.from_estimator(mixture).figure_.savefig("posterior.png", dpi=120)
    print("wrote posterior.png")
