"""Murphy, section 25.1: figure 25.1 and the numbers that are worked out with it."""

from pathlib import Path

import numpy as np
from sklearn.metrics.cluster import pair_confusion_matrix

from countless import metrics
from published import MURPHY_WORKED
from section import COLORS, Form, Section, bare, new_figure, run

CLUSTERS = ("AAAAAB", "ABBBBC", "AACCC")  # the objects of figure 25.1


def draw(labels: np.ndarray, classes: np.ndarray):
    """Draw three groups of letters, as the figure does."""
    figure = new_figure(6.0, 1.9)
    random = np.random.default_rng(0)
    for cluster, ax in enumerate(figure.subplots(1, 3)):
        letters = classes[labels == cluster]
        angle = 2 * np.pi * np.arange(len(letters)) / len(letters)
        at = np.column_stack([np.cos(angle), np.sin(angle)])
        for (x, y), letter in zip(random.permutation(at), letters, strict=True):
            color = COLORS["ABC".index(letter)]
            ax.text(x, y, letter, color=color, ha="center", va="center", weight="bold", size=13)
        ax.set(xlim=(-1.6, 1.6), ylim=(-1.4, 1.4))
        bare(ax, f"cluster {cluster + 1}", square=True)
    return figure


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figure 25.1 and section 25.1.2: how well clusters agree with classes",
        "Three clusters of 17 objects of classes A, B and C, and the measures worked out on them.",
    )
    classes = np.array(list("".join(CLUSTERS)))
    labels = np.repeat(np.arange(3), [len(letters) for letters in CLUSTERS])
    ordered = pair_confusion_matrix(classes, labels) // 2  # each pair counts twice there
    (tn, fp), (fn, tp) = ordered.tolist()
    ours = {
        "purity": metrics.purity(classes, labels),
        "pairs in one cluster": tp + fp,
        "true positives": tp,
        "false positives": fp,
        "false negatives": fn,
        "true negatives": tn,
        "Rand index": metrics.rand_score(classes, labels),
    }
    beyond = {
        "adjusted Rand index": metrics.adjusted_rand_score(classes, labels),
        "mutual information": metrics.mutual_info_score(classes, labels),
        "normalised mutual information": metrics.normalized_mutual_info_score(classes, labels),
        "adjusted mutual information": metrics.adjusted_mutual_info_score(classes, labels),
        "variation of information": metrics.variation_of_information(classes, labels),
    }
    section.picture(draw(labels, classes), folder, "murphy-25-1", "Three clusters of letters.")
    lines = [
        {"measure": name, "theirs": MURPHY_WORKED.get(name), "ours": value}
        for name, value in (ours | beyond).items()
    ]
    section.table(lines)
    section.values = ours
    section.text("Equal. The last five are defined there without an example; natural logarithms.")
    return section


if __name__ == "__main__":
    run(make)
