"""Superpixels: some hundreds of uniform patches in place of pixels, and their adjacency.

Patches come from SLIC of scikit-image. Two patches are adjacent where a pixel of one lies next to
or above a pixel of the other; the strength of the edge between them is measured at these pixels.
"""

from typing import NamedTuple

import numpy as np

from .._labels import number_by_appearance
from .draw import mean_colors


class Superpixels(NamedTuple):
    """An image as patches, and the borders between them."""

    labels: np.ndarray  # (height, width), int32, the patch of each pixel
    colors: np.ndarray  # (n, 3), the mean colour of each patch
    pairs: np.ndarray  # (n_pairs, 2), adjacent patches, the lower number first
    edge: np.ndarray  # (n_pairs,), the mean of the edge map along their border

    @property
    def n(self) -> int:
        """Return the number of patches."""
        return len(self.colors)


def superpixels(image: np.ndarray, edges: np.ndarray, n_superpixels: int) -> Superpixels:
    """Divide an image into about ``n_superpixels`` patches.

    Parameters
    ----------
    image : ndarray of shape (height, width, 3)
        Red, green and blue from 0 to 1.
    edges : ndarray of shape (height, width)
        Edge strength at each pixel.
    n_superpixels : int
        Requested number of patches; SLIC gives about as many.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((40, 40, 3))
    >>> image[:, 20:] = 1.0
    >>> patches = superpixels(image, np.zeros((40, 40)), 4)
    >>> patches.n, patches.colors[:, 0].tolist()
    (4, [0.0, 1.0, 0.0, 1.0])
    """
    from skimage.segmentation import slic

    labels = slic(
        image,
        n_segments=n_superpixels,
        compactness=10.0,  # the lower, the closer patches follow edges; the higher, the rounder
        sigma=1.0,
        start_label=0,
        channel_axis=-1,
    )
    labels = number_by_appearance(labels.ravel())[1].reshape(labels.shape)
    return Superpixels(labels, mean_colors(image, labels), *_borders(labels, edges))


def _borders(labels: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find adjacent patches, and the strength of the edge between them."""
    beside = ((slice(None), slice(None, -1)), (slice(None), slice(1, None)))
    above = ((slice(None, -1), slice(None)), (slice(1, None), slice(None)))
    ends, values = [], []
    for one, other in (beside, above):
        differ = labels[one] != labels[other]
        ends.append(np.stack([labels[one][differ], labels[other][differ]], axis=1))
        values.append((edges[one][differ] + edges[other][differ]) / 2)
    touching = np.sort(np.concatenate(ends), axis=1)
    pairs, which = np.unique(touching, axis=0, return_inverse=True)
    which = which.ravel()
    total = np.bincount(which, np.concatenate(values), minlength=len(pairs))
    return pairs, total / np.bincount(which, minlength=len(pairs))
