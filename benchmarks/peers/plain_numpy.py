"""Algorithm 1 of Kulis and Jordan (2012) in NumPy, a block of rows at a time.

Within a pass the old means stand still, and a row sees the clusters that earlier rows of the same
pass opened: the labels are those of the plain loop over rows, up to the rounding of a product.
"""

import numpy as np
from scipy.sparse import csr_array
from worker import Outcome, serve

BLOCK_ROWS = 8192


def fit(X, threads, penalty, max_iter=1000, tol=1e-4):
    means = X.mean(axis=0, dtype=np.float64)[None]
    # scikit-learn's and PDC's rule: the means stand still, measured in variances of a column.
    still = tol * np.mean([column.var(dtype=np.float64) for column in X.T])
    n_passes, shift = 0, np.inf
    while shift > still and n_passes < max_iter:
        before = means
        labels, n_clusters = assign(X, means, penalty)
        labels, means = cluster_means(X, labels, n_clusters)
        shift = np.square(means - before).sum() if len(means) == len(before) else np.inf
        n_passes += 1
    return Outcome(labels, n_passes)


def blocks(X):
    return (slice(start, start + BLOCK_ROWS) for start in range(0, len(X), BLOCK_ROWS))


def assign(X, means, penalty):
    """Return each row's cluster after one pass, and how many clusters there are, empty ones too."""
    centers = means.astype(X.dtype)
    labels = np.empty(len(X), dtype=np.intp)
    for block in blocks(X):
        rows = X[block]
        scores = np.einsum("cd,cd->c", centers, centers) / 2 - rows @ centers.T
        nearest = scores.argmin(axis=1)
        cost = 2 * scores[np.arange(len(rows)), nearest] + np.einsum("id,id->i", rows, rows)
        # The first row that is far from everything opens a cluster, and the rows after it may join.
        first = 0
        while (far := np.flatnonzero(cost[first:] > penalty)).size:
            first += far[0]
            move_closer(rows[first:], rows[first], len(centers), nearest[first:], cost[first:])
            centers = np.vstack([centers, rows[first]])
        labels[block] = nearest
    return labels, len(centers)


def move_closer(rows, center, label, nearest, cost):
    """Give rows to a cluster where it is strictly closer; nearest and cost are # OUT."""
    difference = rows - center
    distance = np.einsum("id,id->i", difference, difference)
    closer = distance < cost
    nearest[closer] = label
    cost[closer] = distance[closer]


def cluster_means(X, labels, n_clusters):
    """Drop the empty clusters; return the labels that remain and the means."""
    weight = np.bincount(labels, minlength=n_clusters)
    total = np.zeros((n_clusters, X.shape[1]))
    for block in blocks(X):
        n_rows = len(X[block])
        place = (labels[block], np.arange(n_rows))
        total += csr_array((np.ones(n_rows), place), (n_clusters, n_rows)) @ X[block]
    kept = weight > 0
    return (np.cumsum(kept) - 1)[labels], total[kept] / weight[kept, None]


if __name__ == "__main__":
    serve(fit)
