"""Choosing the preference: the number of clusters at every preference, and its widest plateau.

With D(i, j) the highest similarity less that of i and j, and p the highest less the preference, the
net similarity is a constant less ``sum_i D(i, exemplar of i) + p * n_clusters``. Where D is a
squared distance that is the objective of DP-means with exemplars in place of means, which are close
to each other in clusters of more than a few rows. So the path over penalties of
`countless.hard.kernel`, which needs nothing but inner products, is one over preferences.
"""

from __future__ import annotations

import numpy as np

from countless._threads import Each
from countless.dissimilarity import to_similarity
from countless.hard.kernel.clusters import KernelTable
from countless.hard.kernel.path import kernel_penalty_path
from countless.hard.penalty import PenaltyPath


def preference_path(similarity: np.ndarray, seed: int, each: Each) -> tuple[PenaltyPath, float]:
    """Return the path over penalties, and the preference that stands for the chosen one.

    Parameters
    ----------
    similarity : ndarray of shape (n, n)
        What is on the diagonal does not matter.
    seed : int
        Draws the structureless data that plateaus are judged by.
    """
    n = len(similarity)
    between = similarity + similarity.T
    between /= 2
    np.fill_diagonal(between, -np.inf)
    highest = float(between.max()) if n > 1 else 0.0
    np.fill_diagonal(between, highest)
    products = to_similarity(highest - between, "inner")
    table = KernelTable(products, np.ones(n), np.zeros(n, dtype=np.int64), each)
    path = kernel_penalty_path(table, seed)
    return path, highest - path.penalty
