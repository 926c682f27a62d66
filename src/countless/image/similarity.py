"""Similarities of image patches: their colours, and the edges between them.

Section 6.2 of Tarlow, Zemel and Frey, *Flexible priors for exemplar-based clustering*, UAI 2008:
``s(i, j) = -color_weight |R_i - R_j|^2 - edge_weight path(i, j)``. ``R`` is the mean colour of a
patch, and ``path`` the shortest path length over adjacent patches, in units of edge strength.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from .superpixels import Superpixels

# Balances both terms in photographs.
COLOR_WEIGHT, EDGE_WEIGHT = 10.0, 4.0


def edge_map(image: np.ndarray) -> np.ndarray:
    """Return the probability of an edge at each pixel, from 0 to 1.

    Parameters
    ----------
    image : ndarray of shape (height, width, 3)
        Red, green and blue from 0 to 1.

    Examples
    --------
    >>> image = np.zeros((9, 20, 3))
    >>> image[:, 10:] = 0.5
    >>> edge_map(image)[4, [2, 8, 9, 10, 11]].round(1).tolist()
    [0.0, 0.5, 0.8, 0.8, 0.5]
    """
    from skimage.color import rgb2lab
    from skimage.filters import gaussian, scharr

    width = 1.5  # standard deviation in pixels of the smoothing before edge detection
    contrast = 14.0  # the gradient, in units of CIELAB per pixel, of probability 1 - 1/e
    smooth = gaussian(rgb2lab(image), width, channel_axis=-1)
    slope = sum(scharr(smooth[..., channel]) ** 2 for channel in range(3))
    return -np.expm1(-slope / contrast**2)


def similarity(
    patches: Superpixels, *, color_weight: float = COLOR_WEIGHT, edge_weight: float = EDGE_WEIGHT
) -> np.ndarray:
    """Return the similarity of every pair of patches: 0 on the diagonal, otherwise negative.

    Examples
    --------
    >>> from countless.image.superpixels import Superpixels
    >>> colors = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.2, 0.0, 0.0]])
    >>> pairs = np.array([[0, 1], [1, 2]])
    >>> row = Superpixels(np.array([[0, 1, 2]]), colors, pairs, np.array([0.0, 0.5]))
    >>> -similarity(row, color_weight=10.0, edge_weight=1.0).round(2)
    array([[0. , 0.1, 0.9],
           [0.1, 0. , 0.6],
           [0.9, 0.6, 0. ]])
    """
    return -(color_weight * color_distances(patches) + edge_weight * edge_distances(patches))


def color_distances(patches: Superpixels) -> np.ndarray:
    """Return the squared distances of mean colours."""
    differences = patches.colors[:, None] - patches.colors
    return np.einsum("ijc,ijc->ij", differences, differences)


def edge_distances(patches: Superpixels) -> np.ndarray:
    """Return the shortest path lengths between patches, in units of edge strength."""
    # A sparse matrix cannot store an edge of length 0.
    steps = np.maximum(patches.edge, np.finfo(float).tiny)
    one, other = patches.pairs.T
    graph = sp.csr_array((steps, (one, other)), shape=(patches.n, patches.n))
    return shortest_path(graph, method="D", directed=False)


def links(similarities: np.ndarray) -> sp.csr_array:
    """Return similarities as edge weights of a graph, ``exp(s)``; the smallest are left out.

    Examples
    --------
    >>> links(np.array([[0.0, -1.0], [-1.0, 0.0]])).toarray().round(2).tolist()
    [[0.0, 0.37], [0.37, 0.0]]
    """
    weights = np.exp(similarities)
    np.fill_diagonal(weights, 0.0)
    weights[weights < 1e-3] = 0.0
    return sp.csr_array(weights)
