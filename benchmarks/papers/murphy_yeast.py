"""Murphy, figures 25.13 and 25.15: linkage of yeast gene expression."""

from pathlib import Path

import numpy as np

from countless import LinkageClustering
from countless.plot import DendrogramDisplay, HeatmapDisplay
from data import Absent, load
from published import MURPHY_FIGURE_25_13 as THEIRS
from section import COLORS, Form, Section, bare, new_figure, run

LINKAGES = ("single", "complete", "average")


def profiles(X: np.ndarray, labels: np.ndarray):
    """Draw the genes of each cluster over time."""
    figure = new_figure(7.5, 4.6)
    order = np.argsort(-np.bincount(labels), kind="stable")
    for ax, label in zip(figure.subplots(4, 4, sharey=True).ravel(), order, strict=False):
        ax.plot(X[labels == label].T, color=COLORS[1], linewidth=0.4, alpha=0.7)
        ax.plot(X[labels == label].mean(axis=0), color=COLORS[0], linewidth=1.4)
        bare(ax, f"{(labels == label).sum()} genes")
    return figure


def make(form: Form, folder: Path) -> Section:
    k = THEIRS["clusters"]
    section = Section(
        "Figures 25.13 and 25.15: yeast gene expression",
        f"""Figure 25.13: a heat map of the genes in the order of average linkage, and the {k}
        clusters of a cut. Figure 25.15: dendrograms of single, complete and average linkage: long
        chains, compact clusters, a compromise.""",
    )
    try:
        table = load("yeast")
    except Absent as reason:
        section.left_out(reason)
        return section
    X = table.numbers()
    models = {
        way: LinkageClustering(way, metric="correlation", n_clusters=k).fit(X) for way in LINKAGES
    }
    average = models["average"]
    figure = new_figure(6.0, 4.6)
    HeatmapDisplay.from_estimator(
        average, X, columns=list(table.X.columns), center=0.0, figure=figure
    )
    section.picture(
        figure, folder, "murphy-25-13a", "Expression of 310 genes, sorted by the tree.", 60
    )
    words = f"Profiles of the genes of {k} clusters over seven times."
    section.picture(profiles(X, average.labels_), folder, "murphy-25-13b", words, 60)
    figure = new_figure(8.5, 2.6)
    lines = []
    for ax, (way, model) in zip(figure.subplots(1, 3), models.items(), strict=True):
        DendrogramDisplay.from_estimator(model, ax=ax)
        ax.set_title(way, loc="left", fontsize="small")
        ax.set_xticks([])
        sizes = np.sort(np.bincount(model.labels_))[::-1]
        line = {"linkage": way, f"largest of {k} clusters": int(sizes[0])}
        line["clusters of one gene"] = int((sizes == 1).sum())
        line["median size"] = float(np.median(sizes))
        line["chosen k"] = LinkageClustering(way, metric="correlation").fit(X).n_clusters_
        lines.append(line)
    section.picture(figure, folder, "murphy-25-15", "Three dendrograms.", 70)
    section.values = {line["linkage"]: line for line in lines}
    section.table(lines, 1)
    section.text(
        f"""The data is Murphy's file of {len(X)} genes at {X.shape[1]} times ({table.source}), the
        dissimilarity 1 minus the correlation, as in the demonstration that made his figures. Single
        linkage has one large cluster and many of one gene, complete linkage compact ones. *Chosen
        k* is where the library cuts if it is told nothing."""
    )
    return section


if __name__ == "__main__":
    run(make)
