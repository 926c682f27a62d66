"""The time of a dozen fits from commit to commit.

Run by ``cd benchmarks/asv && asv continuous main HEAD``. Each is fitted once before it is timed, so
that compilation does not count.
"""

import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.neighbors import kneighbors_graph

import countless

BLOBS, _ = make_blobs(2000, n_features=8, centers=10, random_state=0)
MANY, _ = make_blobs(200_000, n_features=16, centers=30, random_state=0)
MOONS, _ = make_moons(2000, noise=0.05, random_state=0)
GROUPS = np.arange(len(BLOBS)) % 10
GRAPH = kneighbors_graph(BLOBS, 15)
BINARY = (BLOBS[:200] > np.median(BLOBS, axis=0)).astype(float)

SHORT = {"n_chains": 2, "n_sweeps": 20, "random_state": 0}
FITS = {
    "AutoClustering": (lambda: countless.AutoClustering(), MOONS),
    "DPMeans": (lambda: countless.DPMeans(), BLOBS),
    "DPMeans, 200,000 rows": (lambda: countless.DPMeans(), MANY),
    "HDPMeans": (lambda: countless.HDPMeans(), BLOBS),
    "KernelDPMeans": (lambda: countless.KernelDPMeans(), BLOBS),
    "SpectralDPMeans": (lambda: countless.SpectralDPMeans(), MOONS),
    "GraphDPMeans": (lambda: countless.GraphDPMeans(), GRAPH),
    "AffinityPropagation": (lambda: countless.AffinityPropagation(), BLOBS),
    "DPMixture": (lambda: countless.DPMixture(**SHORT), BLOBS),
    "DPMixture, MAP": (lambda: countless.DPMixture(inference="map"), BLOBS),
    "BayesianHierarchicalClustering": (
        lambda: countless.BayesianHierarchicalClustering(),
        BLOBS[:500],
    ),
    "DivisiveClustering": (lambda: countless.DivisiveClustering(), BLOBS[:1000]),
    "DPBiclustering": (lambda: countless.DPBiclustering(model="bernoulli", **SHORT), BINARY),
    "CrossCat": (lambda: countless.CrossCat(**SHORT), BLOBS[:500]),
}


class Fit:
    """Seconds and peak memory of one fit."""

    params = tuple(FITS)
    param_names = ("estimator",)
    timeout = 300

    def setup(self, name):
        make, self.X = FITS[name]
        self.estimator = make()
        self._fit(name)

    def _fit(self, name):
        if name == "HDPMeans":
            self.estimator.fit(self.X, groups=GROUPS)
        else:
            self.estimator.fit(self.X)

    def time_fit(self, name):
        self._fit(name)

    def peakmem_fit(self, name):
        self._fit(name)
