"""Drawings of segments: their outlines on the image, and the image in their mean colours."""

import numpy as np

OUTLINE = (1.0, 0.85, 0.0)
SHADOW = (0.0, 0.0, 0.0)


def draw_outlines(image: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return an image with the outlines of its segments, yellow in black.

    Examples
    --------
    >>> labels = np.repeat([0, 1], 8)[None].repeat(12, axis=0)
    >>> drawn = draw_outlines(np.full((12, 16, 3), 0.5), labels)
    >>> drawn[6, [0, 6, 7]].tolist()
    [[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 0.85, 0.0]]
    """
    from scipy.ndimage import binary_dilation
    from skimage.segmentation import find_boundaries

    line = find_boundaries(labels, mode="thick")
    width = min(labels.shape) // 400  # one pixel wider for every so many
    if width:
        line = binary_dilation(line, iterations=width)
    shadow = binary_dilation(line, iterations=width + 1)
    drawn = image.copy()
    drawn[shadow] = SHADOW
    drawn[line] = OUTLINE
    return drawn


def mean_colors(image: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the mean colour of each segment.

    Examples
    --------
    >>> mean_colors(np.array([[[0.0] * 3, [1.0] * 3]]), np.array([[0, 0]])).tolist()
    [[0.5, 0.5, 0.5]]
    """
    where = labels.ravel()
    size = np.bincount(where)
    sums = [np.bincount(where, image[..., channel].ravel()) for channel in range(3)]
    return np.stack(sums, axis=1) / size[:, None]
