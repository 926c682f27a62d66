"""Murphy, figure 25.12: single linkage of five points by city block distance."""

from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import fcluster

from countless import DivisiveClustering, LinkageClustering
from countless.plot import DendrogramDisplay
from published import MURPHY_FIGURE_25_12 as THEIRS
from section import COLORS, Form, Section, bare, new_figure, run

POINTS = np.array([[1.0, 1.0], [2.0, 5.0], [1.0, 2.0], [3.0, 2.0], [3.0, 1.0]])


def members(Z: np.ndarray, node: int) -> list[int]:
    """Return the points below a node, from 1."""
    n = len(Z) + 1
    if node < n:
        return [node + 1]
    return sorted(members(Z, int(Z[node - n, 0])) + members(Z, int(Z[node - n, 1])))


def make(form: Form, folder: Path) -> Section:
    first, second = THEIRS["city block merges"]
    section = Section(
        "Figure 25.12: single linkage",
        f"""Five points; the pairs {first} and {second} are both at city block distance 1 and merge
        first; a cut at height 2 has 4, 5, 1 and 3 in one cluster and 2 alone.""",
    )
    model = LinkageClustering("single", metric="cityblock", n_clusters=2).fit(POINTS)
    Z = model.linkage_matrix_
    figure = new_figure(6.0, 2.6)
    left, right = figure.subplots(1, 2)
    for number, point in enumerate(POINTS, 1):
        left.scatter(*point, color=COLORS[1])
        left.annotate(str(number), point, xytext=(5, 5), textcoords="offset points")
    bare(left, "five points")
    left.margins(0.2)
    DendrogramDisplay.from_linkage(
        Z, labels=model.labels_, names=["1", "2", "3", "4", "5"], ax=right
    )
    section.picture(figure, folder, "murphy-25-12", "Five points, and their dendrogram.")
    lines = [
        {
            "merge": step + 1,
            "points": ", ".join(map(str, members(Z, len(POINTS) + step))),
            "height": float(row[2]),
        }
        for step, row in enumerate(Z)
    ]
    section.table(lines)
    cut = fcluster(Z, 2.0, "distance")
    clusters = [(np.flatnonzero(cut == label) + 1).tolist() for label in np.unique(cut)]
    tree = DivisiveClustering("mst", metric="cityblock").fit(POINTS).linkage_matrix_
    same = np.array_equal(tree[:, 2], Z[:, 2])
    section.values = {
        "first merges": [tuple(members(Z, 5)), tuple(members(Z, 6))],
        "cut": clusters,
        "spanning tree": bool(same),
    }
    section.text(
        f"""The coordinates are not printed; ours are chosen to have these merges. The cut at height
        2 gives {" and ".join(map(str, sorted(clusters)))}. Section 25.5.2 says that breaking the
        largest links of a minimum spanning tree gives the same tree: the heights are
        {"equal" if same else "different"}."""
    )
    return section


if __name__ == "__main__":
    run(make)
