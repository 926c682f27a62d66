"""What is exported: the steps of a preparation, and a score of each center; the least one wins."""

from typing import NamedTuple

import numpy as np

from .. import __version__
from .._errors import InputError
from ..divergences import get_divergence
from ..preprocess.prepare import Preparation
from ..serialize.serializer import NearestCenters


class Rule(NamedTuple):
    """The label of a row: that of the least score, or -1 where it exceeds the price.

    The score of a center is the squared distance from it; if ``linear``, for a divergence that is
    no function of differences, it is ``offset - <row, slope>``. Both differ from the divergence by
    a term of the row at most, which decides nothing. Ties go to the first center.
    """

    title: str
    preparation: Preparation
    labels: list[int]  # of the centers
    linear: bool
    vectors: np.ndarray  # (n_centers, n_features): centers, or slopes
    offsets: np.ndarray  # (n_centers,): 0 unless linear
    price: float  # of background: infinite where there is none


def rule_of(name: str, preparation: Preparation, found: NearestCenters) -> Rule:
    """Return the rule of a fitted model of this class name."""
    divergence = get_divergence(found.divergence)
    title = f"The cluster of each row by {name} of countless"
    labels = [int(label) for label in found.labels]
    centers = found.centers.astype(np.float64)
    if divergence.is_shift_invariant:
        offsets = np.zeros(len(centers))
        return Rule(title, preparation, labels, False, centers, offsets, found.price)
    if np.isfinite(found.price):
        raise InputError(f"background of divergence={found.divergence!r} is not exported")
    slopes, offsets = divergence.slope_offset(centers)
    return Rule(title, preparation, labels, True, slopes, offsets, np.inf)


def written_by() -> str:
    """Return a line that says what wrote the file."""
    return f"Written by countless {__version__}."
