"""
What a prior over partitions looks like
=======================================

Learn what a Dirichlet process expects before it sees data: the number of clusters grows with the
logarithm of the rows. The pictures are figures 25.3 and 25.5 of Murphy's book, redrawn.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import invwishart

from countless.priors import DirichletProcess

COLORS = ("#c8553d", "#2d7d9a", "#7a9e3f", "#8f6fb0", "#d59a2c", "#4a6b8a", "#b56576", "#5c8d7b")
NUMBERS = (50, 500, 1_000)
prior = DirichletProcess(alpha=1.0)
for n_rows in NUMBERS:
    print(f"expected of {n_rows} rows: {prior.expected_n_clusters(n_rows):.1f} clusters")


# %%
# Rows of a Dirichlet process mixture of Gaussians in the plane: two runs, each at three numbers of
# rows. The width of an ellipse is the share of its cluster.


def draw_gaussians(n_rows, random):
    """Draw labels, means, roots of the covariances, and rows."""
    labels = prior.sample(n_rows, random)
    n_clusters = labels.max() + 1
    # A normal-inverse-Wishart base: means spread ten times as wide as the rows around them.
    shapes = invwishart(df=6, scale=3 * np.eye(2)).rvs(n_clusters, random_state=random)
    roots = np.linalg.cholesky(shapes)
    means = 10 * np.einsum("kij,kj->ki", roots, random.standard_normal((n_clusters, 2)))
    noise = np.einsum("nij,nj->ni", roots[labels], random.standard_normal((n_rows, 2)))
    return labels, means, roots, means[labels] + noise


def plot_rows(figure, runs):
    """Draw the first rows of each run, and the clusters that have appeared by then."""
    circle = np.linspace(0, 2 * np.pi, 60)
    circle = 2 * np.stack([np.cos(circle), np.sin(circle)])
    axes = figure.subplots(len(runs), len(NUMBERS), sharex="row", sharey="row")
    for across, (labels, means, roots, X) in zip(axes, runs, strict=True):
        for ax, n_rows in zip(across, NUMBERS, strict=True):
            seen = labels[:n_rows]
            ax.scatter(*X[:n_rows].T, s=3, c=[COLORS[label % 8] for label in seen], linewidths=0)
            for label, size in enumerate(np.bincount(seen)):
                ring = means[label][:, None] + roots[label] @ circle
                ax.plot(*ring, color="#333333", linewidth=0.5 + 2.5 * size / n_rows)
            title = f"{n_rows} rows, {seen.max() + 1} clusters"
            ax.set_title(title, loc="left", fontsize="small")
            ax.set(xticks=[], yticks=[])


runs = [draw_gaussians(1_000, np.random.default_rng(seed)) for seed in (1, 24)]
plot_rows(plt.figure(figsize=(6.4, 3.4), layout="constrained"), runs)
plt.show()


# %%
# The weights of the first twenty clusters, four draws each: the larger alpha is, the more even.


def plot_sticks(figure, alphas=(2.0, 5.0), n_draws=4, n_weights=20):
    """Draw the first weights of some mixtures at each alpha."""
    random = np.random.default_rng(0)
    axes = figure.subplots(len(alphas), n_draws, sharex=True, sharey=True)
    for across, alpha, color in zip(axes, alphas, COLORS, strict=False):
        for ax in across:
            weights = DirichletProcess(alpha).weights(n_weights, random)
            ax.bar(np.arange(1, n_weights + 1), weights, color=color)
            ax.set_xticks([1, 10, 20])
            ax.spines[["top", "right"]].set_visible(False)
        across[0].set_title(f"alpha = {alpha:g}", loc="left", fontsize="medium")


plot_sticks(plt.figure(figsize=(6.4, 2.8), layout="constrained"))
plt.show()
