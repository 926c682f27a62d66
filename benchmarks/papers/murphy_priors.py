"""Murphy, figures 25.3 and 25.5: samples of a Dirichlet process."""

from pathlib import Path

import numpy as np
from matplotlib.patches import Ellipse
from scipy.stats import invwishart

from countless.priors import DirichletProcess
from section import COLORS, Form, Section, bare, new_figure, run

SIZES = (50, 500, 1000)


def sample_mixture(ax, labels: np.ndarray, random: np.random.Generator) -> None:
    """Draw rows of normal clusters whose parameters are from a vague normal-inverse-Wishart."""
    for label in range(labels.max() + 1):
        count = int((labels == label).sum())
        covariance = np.atleast_2d(invwishart.rvs(6, 3.0 * np.eye(2), random_state=random))
        mean = 5.0 * random.standard_normal(2)
        rows = random.multivariate_normal(mean, covariance, size=count)
        ax.scatter(*rows.T, s=2, color=COLORS[label % 8])
        values, vectors = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        width, height = 4 * np.sqrt(values[::-1])
        thick = 0.5 + 3.0 * count / len(labels)
        ax.add_patch(
            Ellipse(mean, width, height, angle=angle, fill=False, linewidth=thick, alpha=0.7)
        )


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figures 25.3 and 25.5: samples of the prior",
        """Figure 25.3: rows of a Dirichlet process mixture of normals in the plane, alpha 1, with
        50, 500 and 1,000 rows: more rows, more clusters. Figure 25.5: weights by stick breaking,
        for alpha 2 and 5.""",
    )
    figure = new_figure(7.5, 4.6)
    prior = DirichletProcess(1.0)
    for row, axes in enumerate(figure.subplots(2, 3)):
        labels = prior.sample(SIZES[-1], row)
        for size, ax in zip(SIZES, axes, strict=True):
            sample_mixture(ax, labels[:size], np.random.default_rng(row))
            bare(ax, f"N = {size}: {labels[:size].max() + 1} clusters")
    section.picture(figure, folder, "murphy-25-3", "Two runs of 50, 500 and 1,000 rows.", 70)
    n_draws = form.pick(50, 1000, 10_000)
    lines = []
    for size in SIZES:
        k = [prior.sample(size, seed).max() + 1 for seed in range(n_draws)]
        line = {"rows": size, "mean k of draws": float(np.mean(k))}
        line |= {"expected k": float(prior.expected_n_clusters(size)), "log N": float(np.log(size))}
        lines.append(line)
    section.values["k"] = lines
    section.table(lines)
    section.text(f"The text says that k approaches alpha log N; {n_draws:,} draws each.")
    figure = new_figure(7.5, 3.0)
    n_sticks = 20
    for alpha, axes in zip((2.0, 5.0), figure.subplots(2, 3, sharey=True), strict=True):
        for seed, ax in enumerate(axes):
            weights = DirichletProcess(alpha).weights(n_sticks, seed)
            ax.bar(np.arange(1, n_sticks + 1), weights, color=COLORS[1])
            ax.set_title(f"alpha = {alpha:g}", loc="left", fontsize="small")
    section.picture(figure, folder, "murphy-25-5", "Weights of sticks, falling faster for alpha 2.")
    means = []
    for alpha in (2.0, 5.0):
        draws = [DirichletProcess(alpha).weights(n_sticks, seed) for seed in range(n_draws)]
        mean = np.mean(draws, axis=0)
        expected = (alpha / (1 + alpha)) ** np.arange(n_sticks) / (1 + alpha)
        means.append({"alpha": f"{alpha:g}", "mean of stick 1": mean[0], "expected": expected[0]})
        means[-1] |= {"mean of stick 5": mean[4], "expected ": expected[4]}
    section.values["sticks"] = means
    section.table(means, 3)
    section.text("Neither figure has numbers; the expected ones follow from Beta(1, alpha) breaks.")
    return section


if __name__ == "__main__":
    run(make)
