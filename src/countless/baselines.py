"""The clustering methods that countless is compared with: scikit-learn's, and k-medoids.

Nothing is wrapped: a method makes the estimator from the parameters listed here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from countless._registry import Estimator, Method

# scikit-learn's defaults for the number of clusters range from 1 to 8; here they are all 8.
_K = 8

BASELINES: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "k-means",
                Estimator("KMeans", "sklearn.cluster"),
                "k centers, each row with the nearest; you choose k",
                "n_clusters",
                {"n_clusters": _K, "n_init": 10},
            ),
            Method(
                "k-medoids",
                Estimator("KMedoids", "countless.k_medoids"),
                "k rows as centers, each row with the nearest; you choose k",
                "n_clusters",
                {"n_clusters": _K},
                pairs={"metric": "precomputed"},
            ),
            Method(
                "bisecting-k-means",
                Estimator("BisectingKMeans", "sklearn.cluster", is_saved=False),
                "k-means by splitting one cluster in two, again and again; you choose k",
                "n_clusters",
                {"n_clusters": _K},
            ),
            Method(
                "gaussian-mixture",
                Estimator("GaussianMixture", "sklearn.mixture"),
                "k Gaussians of any shape, fitted by expectation maximisation; you choose k",
                "n_components",
                {"n_components": _K},
            ),
            Method(
                "agglomerative",
                Estimator("AgglomerativeClustering", "sklearn.cluster", is_saved=False),
                "merges the closest clusters until k are left; you choose k",
                "n_clusters",
                {"n_clusters": _K},
                pairs={"metric": "precomputed", "linkage": "average"},
            ),
            Method(
                "spectral",
                Estimator("SpectralClustering", "sklearn.cluster", is_saved=False),
                "k-means on the eigenvectors of a similarity graph; you choose k",
                "n_clusters",
                {"n_clusters": _K},
                pairs={"affinity": "precomputed"},
                similarity="exponential",
            ),
            Method(
                "hdbscan",
                Estimator("HDBSCAN", "sklearn.cluster", is_saved=False),
                "dense regions of any shape, the rest is noise; you choose the smallest size",
                "min_cluster_size",
                # The default of scikit-learn 1.10; earlier ones warn unless it is said.
                {"copy": True},
                pairs={"metric": "precomputed"},
            ),
        )
    }
)
