"""Murphy, figure 25.18: biclusters of animals and features."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from countless import DPBiclustering
from countless.plot import BiclusterDisplay
from data import Absent, load
from published import MURPHY_FIGURE_25_18 as THEIRS
from section import Form, Section, new_figure, run


def names_by_cluster(names: list[str], labels: np.ndarray, most: int) -> list[dict]:
    """List the members of the largest clusters."""
    order = np.argsort(-np.bincount(labels), kind="stable")[:most]
    return [
        {"cluster": int(c), "members": ", ".join(np.asarray(names)[labels == c])} for c in order
    ]


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figure 25.18: animals and their features",
        f"""{THEIRS["animals"]} animals by {THEIRS["features"]} binary features:
        {THEIRS["animal clusters"]} clusters of animals and {THEIRS["feature clusters"]} of
        features.""",
    )
    try:
        table = load("animals")
    except Absent as reason:
        section.left_out(reason)
        return section
    X = table.numbers().astype(int)
    n_chains, n_sweeps = form.pick((1, 10), (2, 100), (4, 200))
    model = DPBiclustering("bernoulli", n_chains=n_chains, n_sweeps=n_sweeps, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    names = [str(name).replace("+", " ") for name in table.X.index]
    if form.name != "tiny":
        figure = new_figure(8.5, 6.0)
        BiclusterDisplay.from_estimator(model, X, row_names=names, ax=figure.add_subplot())
        words = "Animals by features, sorted into blocks that are nearly all 1 or all 0."
        section.picture(figure, folder, "murphy-25-18", words, 70)
    of_animals = model.posterior_.n_clusters_interval()
    of_features = model.column_posterior_.n_clusters_interval()
    section.values = {"animals": model.n_clusters_, "features": model.n_column_clusters_}
    section.table(
        [
            {
                "clusters of": "animals",
                "theirs": THEIRS["animal clusters"],
                "ours": model.n_clusters_,
                "95 % interval": "{} to {}".format(*of_animals),
            },
            {
                "clusters of": "features",
                "theirs": THEIRS["feature clusters"],
                "ours": model.n_column_clusters_,
                "95 % interval": "{} to {}".format(*of_features),
            },
        ]
    )
    section.table(names_by_cluster(names, model.row_labels_, 12))
    section.table(names_by_cluster(list(table.X.columns), model.column_labels_, 6))
    section.text(
        f"""The table is that of the paper ({table.source}); the text does not say how it chose the
        partition that it shows. Ours is the one of least expected variation of information under
        the posterior, with concentrations and the beta prior's parameters sampled, from {n_chains}
        chains of {n_sweeps} sweeps; single draws have {of_animals[0]} to {of_animals[1]} clusters
        of animals and {of_features[0]} to {of_features[1]} of features, so that numbers near to the
        text's are all that can be expected."""
    )
    return section


if __name__ == "__main__":
    run(make)
