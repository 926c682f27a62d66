"""Murphy, figure 25.20: several partitions of animals, each of some features."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from countless import CrossCat
from countless.plot import ViewsDisplay
from data import Absent, load
from published import MURPHY_FIGURE_25_20 as THEIRS
from section import Form, Section, new_figure, run


def views_table(model: CrossCat, names: list[str]) -> list[dict]:
    """List the views with their features and the animals of their clusters."""
    lines = []
    for view in model.views_:
        clusters = [np.asarray(names)[view.labels == c] for c in range(view.n_clusters)]
        clusters.sort(key=len, reverse=True)
        shown = [f"{', '.join(c[:4])}{', ...' if len(c) > 4 else ''}" for c in clusters]
        lines.append(
            {
                "features": len(view.columns),
                "such as": ", ".join(map(str, view.columns[:8])),
                "clusters": view.n_clusters,
                "animals": "; ".join(shown[:6]),
            }
        )
    return lines


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figure 25.20: CrossCat",
        f"""{THEIRS["animals"]} animals by {THEIRS["features"]} features: {THEIRS["views"]} views.
        The first has taxonomic features and {THEIRS["animals of view 1"]} clusters (birds, reptiles
        and amphibians, mammals, invertebrates), the second features without structure, the third
        ecological features and {THEIRS["animals of view 3"]} clusters (prey, predators of land, sea
        and air).""",
    )
    try:
        table = load("animals")
    except Absent as reason:
        section.left_out(reason)
        return section
    X = table.X.astype(bool)
    names = [str(name).replace("+", " ") for name in table.X.index]
    n_chains, n_sweeps = form.pick((1, 5), (2, 40), (4, 200))
    model = CrossCat(n_chains=n_chains, n_sweeps=n_sweeps, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    lines = views_table(model, names)
    section.values = {"views": len(lines), "largest": lines[0]}
    section.table(lines)
    if form.name != "tiny":
        figure = new_figure(8.5, 5.0)
        ViewsDisplay.from_estimator(model, figure=figure)
        words = "The table of animals, once for each view, with its rows sorted by cluster."
        section.picture(figure, folder, "murphy-25-20", words, 70)
    section.text(
        f"""That table is not public: this is the one of figure 25.18, {len(names)} animals, all of
        them mammals, by {X.shape[1]} features ({table.source}). So there is no partition into
        birds, reptiles, mammals and invertebrates to find; what divides mammals is water against
        land, and diet. Shown are the views of least posterior expected loss, from {n_chains} chains
        of {n_sweeps} sweeps; theirs are of one partition of high probability."""
    )
    return section


if __name__ == "__main__":
    run(make)
