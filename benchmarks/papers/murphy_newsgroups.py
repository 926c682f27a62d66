"""Murphy, figures 25.16 and 25.17: trees of 800 documents, and the words of their top nodes."""

from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import linkage

from countless import BayesianHierarchicalClustering
from countless.metrics import dendrogram_purity
from countless.plot import DendrogramDisplay
from data import Absent, load
from section import Form, Section, new_figure, run

N_TOP = 6  # nodes of each tree that are shown


def leaves_of(children: np.ndarray) -> list[np.ndarray]:
    """Return the documents below every node."""
    n = len(children) + 1
    below = [np.array([leaf]) for leaf in range(n)]
    for left, right in children.astype(int):
        below.append(np.concatenate([below[left], below[right]]))
    return below


def top_nodes(Z: np.ndarray, X, y, words: list[str]) -> list[dict]:
    """Describe the nodes below the last merges: size, probable words, the largest class."""
    below, n = leaves_of(Z[:, :2]), len(Z) + 1
    lines = []
    nodes = [2 * n - 2]
    while len(lines) < N_TOP and nodes:
        node = nodes.pop(0)
        of = below[node]
        share = X[of].mean(axis=0)
        names, counts = np.unique(y[of], return_counts=True)
        largest, part = names[counts.argmax()], 100 * counts.max() / len(of)
        lines.append(
            {
                "documents": len(of),
                "three most probable words": ", ".join(words[i] for i in np.argsort(-share)[:3]),
                "most frequent group": f"{largest} ({part:.0f} %)",
            }
        )
        children = [int(child) for child in Z[node - n, :2]] if node >= n else []
        # The larger child first; the next level after this one.
        nodes += sorted(children, key=lambda child: -len(below[child]))
    return lines


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figures 25.16 and 25.17: four newsgroups",
        """Figure 25.16: trees of 800 documents by average linkage and by BHC, their leaves coloured
        by newsgroup: BHC's is clearly more consistent with them. Figure 25.17: the three most
        probable words of the top nodes: BHC separates sports from cars and space, average linkage
        keeps sports and cars together.""",
    )
    try:
        table = load("newsgroups")
    except Absent as reason:
        section.left_out(reason)
        return section
    X, y = table.numbers(), np.asarray(table.y).astype(str)
    words = list(table.X.columns)
    if form.name == "tiny":
        rows = np.random.RandomState(0).permutation(len(X))[:120]
        X, y = X[rows], y[rows]
    trees = {
        "Bayesian": BayesianHierarchicalClustering("bernoulli").fit(X).linkage_matrix_,
        "average linkage": linkage(X, "average"),
    }
    figure = new_figure(8.5, 5.0)
    for ax, (name, Z) in zip(figure.subplots(2, 1), trees.items(), strict=True):
        DendrogramDisplay.from_linkage(Z, classes=y, ax=ax)
        ax.set_title(name, loc="left", fontsize="small")
        ax.set_xticks([])
    shown = "Two dendrograms of documents above strips of colours that stand for newsgroups."
    section.picture(figure, folder, "murphy-25-16", shown, 70)
    for name, Z in trees.items():
        purity = dendrogram_purity(Z, y)
        section.values[name] = purity
        section.text(f"*{name}*, dendrogram purity {purity:.3f}; its top nodes:")
        section.table(top_nodes(Z, X, y, words))
    section.text(
        f"""The published draw of documents is not available: this is another one from the same four
        groups, with {len(words)} words chosen by information gain ({table.source}). Nodes are
        listed from the root down, level by level. Average linkage joins rows by Euclidean distance
        of zeros and ones, so documents with few words are near to all others and its tree is a
        chain."""
    )
    return section


if __name__ == "__main__":
    run(make)
