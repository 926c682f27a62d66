"""Murphy, figure 25.10: messages of affinity propagation, iteration by iteration."""

from itertools import permutations
from pathlib import Path

import numpy as np
from sklearn.cluster import AffinityPropagation as ScikitLearn
from sklearn.metrics import pairwise_distances

from countless import AffinityPropagation
from countless.metrics import adjusted_rand_score
from published import MURPHY_FIGURE_25_10 as THEIRS
from section import COLORS, Form, Section, bare, new_figure, run

SHOWN = (1, 3, 5, 10, 20, 40)
DAMPING = 0.5


def rows() -> np.ndarray:
    """Draw 25 points around three centers."""
    random = np.random.RandomState(2)
    centers = np.array([[-0.6, 0.5], [0.6, 0.5], [0.1, -0.6]])
    return centers[np.arange(25) % 3] + 0.2 * random.standard_normal((25, 2))


def draw_iteration(ax, X: np.ndarray, messages, preference: float) -> None:
    """Draw who wants to be an exemplar, and whom every row would choose."""
    wish = preference + messages.availability.sum(axis=0)
    shade = (wish - wish.min()) / max(np.ptp(wish), 1e-12)
    choice = messages.responsibility + messages.availability
    np.fill_diagonal(choice, -np.inf)
    # From the preference of a row over all others to how surely it has it.
    strength = np.exp(np.minimum(choice - choice.max(), 0.0) / np.abs(preference))
    for i, j in permutations(range(len(X)), 2):
        alpha = float(strength[i, j]) if choice[i, j] > -abs(preference) / 2 else 0.0
        if alpha > 0.05:
            arrow = {"arrowstyle": "->", "alpha": alpha, "color": COLORS[5], "linewidth": 0.8}
            ax.annotate("", X[j], X[i], arrowprops=arrow)
    ax.scatter(*X.T, c=shade, cmap="RdYlGn_r", s=28, edgecolors="#444444", linewidths=0.4)


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figure 25.10: affinity propagation",
        f"""Points in the plane, coloured by how much each wants to be an exemplar (the sum of the
        availabilities that it receives and its preference), with arrows as dark as a point wants to
        belong to another. Similarity is the negative Euclidean distance, preferences are its
        median; the result is {THEIRS["clusters"]} clusters.""",
    )
    X = rows()
    S = -pairwise_distances(X)
    preference = float(np.median(S[~np.eye(len(S), dtype=bool)]))
    settings = {"affinity": "precomputed", "preference": preference, "damping": DAMPING}
    model = AffinityPropagation(random_state=0, **settings)
    history = list(model.iterate_messages(S, n_iter=SHOWN[-1]))
    model.fit(S)
    theirs = ScikitLearn(random_state=0, **settings).fit(S)
    figure = new_figure(8.0, 4.6)
    for ax, iteration in zip(figure.subplots(2, 3).ravel(), SHOWN, strict=True):
        messages = history[iteration - 1]
        draw_iteration(ax, X, messages, preference)
        bare(ax, f"iteration {iteration}: {int((messages.evidence > 0).sum())} exemplars")
    words = "Points in six iterations: red ones become exemplars, and arrows gather at them."
    section.picture(figure, folder, "murphy-25-10", words)
    exemplars = np.flatnonzero(history[-1].evidence > 0)
    choice = np.where(np.isin(np.arange(len(X)), exemplars), np.arange(len(X)), -1)
    choice[choice < 0] = exemplars[S[choice < 0][:, exemplars].argmax(axis=1)]
    same = adjusted_rand_score(choice, model.labels_) == 1.0
    agreement = adjusted_rand_score(theirs.labels_, model.labels_)
    section.values = {"clusters": model.n_clusters_, "same clusters": same, "sklearn": agreement}
    section.table(
        [
            {"": "clusters", "theirs": THEIRS["clusters"], "ours": model.n_clusters_},
            {"": "iterations", "theirs": None, "ours": model.n_iter_},
            {"": "clusters are those of the last messages shown", "theirs": None, "ours": same},
            {"": "adjusted Rand index with scikit-learn's", "theirs": None, "ours": agreement},
        ]
    )
    section.text(
        """The points of the figure are not published; ours are 25 around three centers. The
        messages are those of `AffinityPropagation.iterate_messages`. After convergence the best row
        of each cluster becomes its exemplar, as in scikit-learn."""
    )
    return section


if __name__ == "__main__":
    run(make)
