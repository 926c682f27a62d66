"""What a prior over partitions looks like: figures 25.3 and 25.5 of Murphy's book, drawn anew.

Run ``python examples/priors.py``; where matplotlib is installed it also draws priors-rows.png and
priors-sticks.png.
"""

from importlib.util import find_spec

import numpy as np
from scipy.stats import invwishart

from countless.priors import DirichletProcess

COLORS = ("#c8553d", "#2d7d9a", "#7a9e3f", "#8f6fb0", "#d59a2c", "#4a6b8a", "#b56576", "#5c8d7b")


def draw_gaussians(n_rows, random):
    """Draw rows of a Dirichlet process mixture of Gaussians in the plane, alpha = 1."""
    labels = DirichletProcess(alpha=1.0).sample(n_rows, random)
    n_clusters = labels.max() + 1
    # A normal-inverse-Wishart base: means spread ten times as wide as the rows around them.
    shapes = invwishart(df=6, scale=3 * np.eye(2)).rvs(n_clusters, random_state=random)
    roots = np.linalg.cholesky(shapes)
    means = 10 * np.einsum("kij,kj->ki", roots, random.standard_normal((n_clusters, 2)))
    noise = np.einsum("nij,nj->ni", roots[labels], random.standard_normal((n_rows, 2)))
    return labels, means, roots, means[labels] + noise


def plot_rows(figure, runs, numbers):
    """Draw the first so many rows of each run, and the clusters that have appeared by then."""
    circle = np.linspace(0, 2 * np.pi, 60)
    circle = 2 * np.stack([np.cos(circle), np.sin(circle)])
    axes = figure.subplots(len(runs), len(numbers), sharex="row", sharey="row")
    for across, (labels, means, roots, X) in zip(axes, runs, strict=True):
        for ax, n_rows in zip(across, numbers, strict=True):
            seen = labels[:n_rows]
            colors = [COLORS[label % len(COLORS)] for label in seen]
            ax.scatter(*X[:n_rows].T, s=3, c=colors, linewidths=0)
            for label, size in enumerate(np.bincount(seen)):
                ring = means[label][:, None] + roots[label] @ circle
                width = 0.5 + 2.5 * size / n_rows
                ax.plot(*ring, color="#333333", linewidth=width)
            title = f"{n_rows} rows, {seen.max() + 1} clusters"
            ax.set_title(title, loc="left", fontsize="small")
            ax.set_xticks([])
            ax.set_yticks([])


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


def new_runs():
    """Draw the two runs of the figure."""
    return [draw_gaussians(1_000, np.random.default_rng(seed)) for seed in (1, 24)]


if __name__ == "__main__":
    numbers = (50, 500, 1_000)
    runs = new_runs()
    for labels, *_ in runs:
        told = [f"{labels[:n_rows].max() + 1} clusters of {n_rows} rows" for n_rows in numbers]
        print(", ".join(told))
    for n_rows in numbers:
        expected = DirichletProcess(alpha=1.0).expected_n_clusters(n_rows)
        print(f"expected of {n_rows} rows: {expected:.1f}")
    if find_spec("matplotlib") is not None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        rows = Figure((6, 3.2), layout="constrained")
        sticks = Figure((6, 2.6), layout="constrained")
        plot_rows(rows, runs, numbers)
        plot_sticks(sticks)
        for figure, name in ((rows, "priors-rows.png"), (sticks, "priors-sticks.png")):
            FigureCanvasAgg(figure)
            figure.savefig(name, dpi=110)
        print("wrote priors-rows.png and priors-sticks.png")
