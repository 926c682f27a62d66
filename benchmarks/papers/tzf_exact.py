"""Tarlow, Zemel and Frey, figure 3: the model as a grid of binary variables, and its optimum."""

import warnings
from itertools import combinations, product
from pathlib import Path

import numpy as np
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from section import COLORS, Form, Section, bare, new_figure, run
from tzf_synthetic import contestants, problem


def valid_choices(n: int) -> np.ndarray:
    """Return every valid choice of exemplars: those chosen choose themselves."""
    found = []
    for k in range(1, n + 1):
        for exemplars in combinations(range(n), k):
            options = [(i,) if i in exemplars else exemplars for i in range(n)]
            found.append(np.array(list(product(*options)), dtype=np.int8))
    return np.concatenate(found)


def log_joints(S: np.ndarray, choices: np.ndarray) -> np.ndarray:
    """Return the log joint density of each choice, for alpha 1 (section 3 of the paper)."""
    n = len(S)
    sizes = (choices[:, :, None] == np.arange(n)).sum(axis=1)
    of_size = np.concatenate([[0.0], gammaln(np.arange(1, n + 1)) - np.log(np.arange(1, n + 1))])
    similarity = S[np.arange(n), choices].sum(axis=1)
    return similarity + of_size[sizes].sum(axis=1) - gammaln(n + 1)


def draw():
    """Draw the factor graph for three rows."""
    figure = new_figure(3.6, 3.2)
    ax = figure.add_subplot()
    for i, j in product(range(3), repeat=2):
        ax.plot([j, 3.0], [2 - i, 2 - i], color="#bbbbbb", zorder=0, linewidth=0.8)
        ax.plot([j, j], [2 - i, -0.9], color="#bbbbbb", zorder=0, linewidth=0.8)
        ax.plot([j, j + 0.3], [2 - i, 2 - i + 0.35], color="#bbbbbb", zorder=0, linewidth=0.8)
        ax.scatter(j + 0.3, 2 - i + 0.35, marker="s", s=60, color=COLORS[4])
        ax.scatter(j, 2 - i, s=430, color="white", edgecolors="#222222")
        ax.text(j, 2 - i, f"h{i + 1}{j + 1}", ha="center", va="center", fontsize=8)
        ax.text(j + 0.38, 2 - i + 0.42, f"s{i + 1}{j + 1}", fontsize=7)
    for i in range(3):
        ax.scatter(3.0, 2 - i, marker="s", s=90, color=COLORS[1])
        ax.text(3.12, 2 - i, f"φ{i + 1}", va="center", fontsize=9)
        ax.scatter(i, -0.9, marker="s", s=90, color=COLORS[0])
        ax.text(i + 0.12, -0.95, f"μ{i + 1}", va="center", fontsize=9)
    ax.set(xlim=(-0.4, 3.5), ylim=(-1.3, 2.7))
    bare(ax)
    ax.spines[:].set_visible(False)
    return figure


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figures 1 to 3: the factor graph",
        """A grid of variables: h_ij is 1 if row j is the exemplar of row i. A factor of each row
        says that it has one exemplar, and one of each column what a cluster of that size is
        worth.""",
    )
    n, n_sets = form.pick(4, 7, 7), form.pick(5, 60, 500)
    choices = valid_choices(n)
    best = {name: 0 for name in contestants(np.zeros(n)) if not name.startswith("AP(")}
    for seed in range(n_sets):
        _, S = problem(seed, n_rows=n, n_columns=2)
        optimum = log_joints(S, choices).max()
        everybody = contestants(S.diagonal().copy())
        for name in best:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = everybody[name].fit(S).log_joint_
            if found > optimum + 1e-6:
                raise AssertionError(f"{name} reports {found}, above the optimum {optimum}")
            best[name] += found > optimum - 1e-6
    words = "A grid of circles h11 to h33 with a square for each row, each column and each circle."
    section.picture(draw(), folder, "tzf-figure-3", words)
    share = {name: 100 * count / n_sets for name, count in best.items()}
    section.values = share
    section.table([{"method": name, "optimum found, %": value} for name, value in share.items()], 1)
    section.text(
        f"""The figure has no numbers; ours test the messages that it stands for. On {n_sets} sets
        of {n} rows drawn from the model, all {len(choices):,} valid clusterings are compared: the
        share of sets on which each method finds the most probable one. No method reports more than
        the optimum. DPAP is messages, then moves and merges; see below for larger sets."""
    )
    return section


if __name__ == "__main__":
    run(make)
