"""Image segmentation without a given number of segments: superpixels, similarities, clusters.

The steps are those of section 6.2 of Tarlow, Zemel and Frey, *Flexible priors for exemplar-based
clustering*, UAI 2008; `GraphDPMeans` and scikit-image's normalized cuts take the same similarities
as the edge weights of a graph, ``exp(scale * s)``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._labels import number_by_appearance
from ..affinity_propagation import AffinityPropagation
from ..graph_dp_means import GraphDPMeans
from ..priors import DirichletProcess, PartitionPrior, PitmanYor
from .ncut import NormalizedCut
from .picture import at_size, check_picture, need_scikit_image, working_copy
from .similarity import COLOR_WEIGHT, EDGE_WEIGHT, edge_map, links, similarity
from .superpixels import Superpixels, superpixels

N_SUPERPIXELS = 250
METHODS = ("affinity", "graph", "ncut")
PRIORS: Mapping[str, PartitionPrior | None] = {
    "dp": DirichletProcess(alpha=1.0),
    "pitman-yor": PitmanYor(alpha=1.0, discount=0.5),
    "none": None,
}


@dataclass(frozen=True)
class Defaults:
    """Constants of the methods, chosen once, on the eight photographs of the guide."""

    # The scale of similarities, for affinity propagation without a prior another one: it has no
    # effect there, since the cost of an exemplar grows with it.
    affinity_scale: float = 5.0
    plain_scale: float = 1.0
    cut_scale: float = 3.0
    # The similarity per patch that an exemplar costs, with and without a prior.
    price: float = 0.016
    plain_price: float = 0.07
    # In uniform regions patches are equal: with less damping messages oscillate, more is slow.
    damping: float = 0.95
    plain_damping: float = 0.9
    # The penalty of one more cluster, in normalized cuts.
    cut_penalty: float = -0.5


DEFAULTS = Defaults()


class Segmentation(NamedTuple):
    """A segmented image."""

    labels: np.ndarray  # (height, width), int32, numbered by first appearance
    n_segments: int
    patches: Superpixels
    estimator: Any  # the fitted estimator of the patches
    scale: float  # the factor of their similarities


class Method(NamedTuple):
    """An estimator and its input: scaled similarities, or edge weights computed from them."""

    estimator: Any
    scale: float
    takes_links: bool

    def matrix(self, similarities: np.ndarray) -> np.ndarray | sp.csr_array:
        """Return the input of the estimator."""
        scaled = self.scale * similarities
        if self.takes_links:
            return links(scaled)
        # Rounded, so that patches that differ only by rounding errors are equal.
        return np.round(scaled, 6).astype(np.float32)


def segment(
    image: Any,
    *,
    method: str = "affinity",
    prior: str | PartitionPrior | None = "dp",
    n_superpixels: int = N_SUPERPIXELS,
    scale: float | None = None,
    color_weight: float = COLOR_WEIGHT,
    edge_weight: float = EDGE_WEIGHT,
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Segmentation:
    """Segment an image.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        Grey levels, or red, green and blue: integers of 8 or 16 bits, or values from 0 to 1.
    method : {'affinity', 'graph', 'ncut'}, default='affinity'
        Affinity propagation, `GraphDPMeans`, or normalized cuts of scikit-image.
    prior : {'dp', 'pitman-yor', 'none'}, prior of `countless.priors` or None, default='dp'
        The prior over segment sizes, for 'affinity'.
    n_superpixels : int, default=250
        Approximate number of superpixels (patches); at most one for each pixel.
    scale : float, optional
        The factor of the similarities: the higher, the more segments. By default 5 with a prior,
        and 3 for 'graph' and 'ncut'; without a prior it has no effect, since the cost of an
        exemplar is scaled as well.
    color_weight, edge_weight : float, default=10.0, 4.0
        Weights of colours and edges in the similarities.
    settings : mapping, optional
        Other parameters of the estimator.
    random_state : int, default=0
        Breaks ties between equal patches.

    Returns
    -------
    Segmentation

    Examples
    --------
    >>> import numpy as np
    >>> from countless.image import segment
    >>> image = np.full((80, 120, 3), (0.3, 0.5, 0.9))
    >>> image[50:] = (0.2, 0.5, 0.1)
    >>> image[10:30, 20:45] = (1.0, 0.9, 0.2)
    >>> segment(image, n_superpixels=100).n_segments
    3
    """
    patches = cut_patches(image, n_superpixels)
    chosen = make_method(method, prior, patches.n, scale, settings or {}, random_state)
    similarities = similarity(patches, **check_weights(color_weight, edge_weight))
    of_patch = chosen.estimator.fit_predict(chosen.matrix(similarities))
    labels = spread(patches, of_patch, *np.shape(image)[:2])
    return Segmentation(labels, int(labels.max()) + 1, patches, chosen.estimator, chosen.scale)


def cut_patches(image: Any, n_superpixels: int) -> Superpixels:
    """Divide an image into superpixels; a large one is downsampled first."""
    need_scikit_image()
    image = working_copy(check_picture(image))
    whole = isinstance(n_superpixels, int | np.integer) and not isinstance(n_superpixels, bool)
    if not whole or n_superpixels < 1:
        raise ValueError(f"n_superpixels must be an integer from 1; got {n_superpixels!r}")
    return superpixels(image, edge_map(image), min(int(n_superpixels), image[..., 0].size))


def spread(patches: Superpixels, labels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the label map of a whole image, numbered by first appearance."""
    whole = at_size(labels[patches.labels], height, width)
    return number_by_appearance(whole.ravel())[1].reshape(whole.shape)


def check_weights(
    color_weight: Any = COLOR_WEIGHT, edge_weight: Any = EDGE_WEIGHT
) -> dict[str, float]:
    """Return the weights of colours and edges, or raise an error that names the invalid one."""
    weights = {"color_weight": color_weight, "edge_weight": edge_weight}
    for name, weight in weights.items():
        if not _is_number(weight) or weight < 0:
            raise ValueError(f"{name} must be a number from 0; got {weight!r}")
    return {name: float(weight) for name, weight in weights.items()}


def make_method(
    name: str,
    prior: str | PartitionPrior | None,
    n_patches: int,
    scale: float | None,
    settings: Mapping[str, Any],
    seed: int,
) -> Method:
    """Return a method by its name, with defaults for this number of patches.

    Examples
    --------
    >>> make_method("graph", "none", 250, None, {}, seed=0).estimator
    GraphDPMeans(penalty=-0.5, random_state=0)
    """
    if name not in METHODS:
        known = ", ".join(repr(known) for known in METHODS)
        raise ValueError(f"method must be one of {known}; got {name!r}")
    prior = check_prior(prior)
    plain = name == "affinity" and prior is None
    if scale is None:
        affinity_scale = DEFAULTS.plain_scale if plain else DEFAULTS.affinity_scale
        scale = affinity_scale if name == "affinity" else DEFAULTS.cut_scale
    if not _is_number(scale) or scale <= 0:
        raise ValueError(f"scale must be a positive number; got {scale!r}")
    if name == "affinity":
        price = DEFAULTS.plain_price if plain else DEFAULTS.price
        estimator: Any = AffinityPropagation(
            prior,
            preference=-price * n_patches * scale,
            damping=DEFAULTS.plain_damping if plain else DEFAULTS.damping,
            refine=True,
            affinity="precomputed",
        )
    else:
        estimator = GraphDPMeans(DEFAULTS.cut_penalty) if name == "graph" else NormalizedCut()
    estimator.set_params(**{"random_state": seed, **settings})
    return Method(estimator, float(scale), takes_links=name != "affinity")


def check_prior(prior: Any) -> PartitionPrior | None:
    """Return a prior by its name, or unchanged."""
    if prior is None or isinstance(prior, PartitionPrior):
        return prior
    if not isinstance(prior, str) or prior not in PRIORS:
        known = ", ".join(repr(known) for known in PRIORS)
        raise ValueError(f"prior must be one of {known}, or of countless.priors; got {prior!r}")
    return PRIORS[prior]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return isfinite(float(value))
