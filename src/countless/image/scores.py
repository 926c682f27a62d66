"""Agreement of a segmentation with human segmentations."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..metrics import adjusted_rand_score, rand_score, variation_of_information


class Scores(NamedTuple):
    """Agreement with each human segmentation of the same image, and the mean over people."""

    n_segments: list[int]  # of each person
    rand: list[float]
    adjusted_rand: list[float]
    variation_of_information: list[float]  # in nats; less is better
    probabilistic_rand: float
    mean_adjusted_rand: float
    mean_variation_of_information: float


def compare(labels: np.ndarray, truths: Sequence[np.ndarray]) -> Scores:
    """Compare a label map with one or more human segmentations.

    The probabilistic Rand index is the share of pairs of pixels on which the segmentation agrees
    with a person drawn at random, so it is the mean of the Rand indices.

    Parameters
    ----------
    labels : ndarray of shape (height, width)
        The segment of each pixel.
    truths : sequence of ndarray of shape (height, width)
        The label map of each person.

    Examples
    --------
    >>> drawn = [np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 1]])]
    >>> scores = compare(np.array([[5, 5], [7, 7]]), drawn)
    >>> scores.rand, scores.probabilistic_rand
    ([1.0, 0.5], 0.75)
    """
    if not len(truths):
        raise ValueError("there is no segmentation to compare with")
    labels, truths = np.asarray(labels), [np.asarray(truth) for truth in truths]
    found = np.ravel(labels)
    for truth in truths:
        if truth.shape != labels.shape:
            raise ValueError(
                f"a label map of shape {truth.shape} cannot be compared with one of {labels.shape}"
            )
    drawn = [np.ravel(truth) for truth in truths]
    rand = [float(rand_score(truth, found)) for truth in drawn]
    adjusted = [float(adjusted_rand_score(truth, found)) for truth in drawn]
    apart = [variation_of_information(truth, found) for truth in drawn]
    return Scores(
        [len(np.unique(truth)) for truth in drawn],
        rand,
        adjusted,
        apart,
        float(np.mean(rand)),
        float(np.mean(adjusted)),
        float(np.mean(apart)),
    )
