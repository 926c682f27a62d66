"""The clustering methods of scikit-learn that countless is compared with: one registry.

Nothing is wrapped. An entry says which class a name stands for, the parameters it starts from and
the one parameter its user has to know; :meth:`Method.make` returns the scikit-learn estimator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Method:
    """A clustering method under the name by which a user asks for it.

    Examples
    --------
    >>> from countless.baselines import BASELINES
    >>> BASELINES["k-means"].make(n_clusters=3)
    KMeans(n_clusters=3, n_init=10)
    """

    name: str
    module: str
    class_name: str
    summary: str
    key_parameter: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    takes: str = "rows"  # or "edges", of a graph; or "table", as it is
    # Parameters with which it takes dissimilarities of rows, or similarities made of them, and how.
    pairs: Mapping[str, Any] | None = None
    similarity: str | None = None

    def load(self) -> type:
        """Import the class."""
        return getattr(import_module(self.module), self.class_name)

    def make(self, **parameters: Any) -> Any:
        """Return an estimator with the method's defaults, changed by ``parameters``."""
        return self.load()(**{**self.defaults, **parameters})

    def parameters(self) -> list[str]:
        """Return the names of the parameters that can be set."""
        return sorted(self.load()().get_params(deep=False))


# scikit-learn's defaults for the number of clusters range from 1 to 8; here they are all 8.
_K = 8

BASELINES: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "k-means",
                "sklearn.cluster",
                "KMeans",
                "k centers, each row with the nearest; you choose k",
                "n_clusters",
                {"n_clusters": _K, "n_init": 10},
            ),
            Method(
                "bisecting-k-means",
                "sklearn.cluster",
                "BisectingKMeans",
                "k-means by splitting one cluster in two, again and again; you choose k",
                "n_clusters",
                {"n_clusters": _K},
            ),
            Method(
                "gaussian-mixture",
                "sklearn.mixture",
                "GaussianMixture",
                "k Gaussians of any shape, fitted by expectation maximisation; you choose k",
                "n_components",
                {"n_components": _K},
            ),
            Method(
                "agglomerative",
                "sklearn.cluster",
                "AgglomerativeClustering",
                "merges the closest clusters until k are left; you choose k",
                "n_clusters",
                {"n_clusters": _K},
                pairs={"metric": "precomputed", "linkage": "average"},
            ),
            Method(
                "spectral",
                "sklearn.cluster",
                "SpectralClustering",
                "k-means on the eigenvectors of a similarity graph; you choose k",
                "n_clusters",
                {"n_clusters": _K},
                pairs={"affinity": "precomputed"},
                similarity="exponential",
            ),
            Method(
                "hdbscan",
                "sklearn.cluster",
                "HDBSCAN",
                "dense regions of any shape, the rest is noise; you choose the smallest size",
                "min_cluster_size",
                # The default of scikit-learn 1.10; earlier ones warn unless it is said.
                {"copy": True},
                pairs={"metric": "precomputed"},
            ),
        )
    }
)
