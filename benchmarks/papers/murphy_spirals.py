"""Murphy, figure 25.11: two spirals, by k-means and by spectral clustering."""

from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from countless import AutoClustering, SpectralDPMeans
from countless.metrics import adjusted_rand_score
from section import COLORS, Form, Section, bare, new_figure, run


def spirals(n_each: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    angle = np.sqrt(random.uniform(0.05, 1.0, n_each)) * 3 * np.pi
    arm = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    rows = np.concatenate([arm, -arm]) + noise * random.standard_normal((2 * n_each, 2))
    return rows, np.repeat([0, 1], n_each)


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figure 25.11: two spirals",
        """k-means, told 2, cuts both spirals in half; spectral clustering with a Gaussian kernel
        finds them.""",
    )
    X, y = spirals(500, 0.3, 0)
    models = {
        "k-means, told 2": KMeans(2, n_init=10, random_state=0),
        "SpectralDPMeans": SpectralDPMeans(random_state=0),
    }
    if form.name != "tiny":
        models["AutoClustering"] = AutoClustering(random_state=0)
    figure = new_figure(7.5, 2.6)
    lines = []
    for ax, (name, model) in zip(figure.subplots(1, 3), models.items(), strict=False):
        labels = model.fit_predict(X)
        ax.scatter(*X.T, s=4, c=[COLORS[label % 8] for label in labels])
        bare(ax, name, square=True)
        line = {"method": name, "clusters": len(np.unique(labels))}
        lines.append(line | {"adjusted Rand index": adjusted_rand_score(y, labels)})
    section.values = {line["method"]: line["adjusted Rand index"] for line in lines}
    words = "Spirals in halves by k-means, one colour each by spectral clustering."
    section.picture(figure, folder, "murphy-25-11", words)
    section.table(lines)
    X, y = spirals(300, 0.3, 0)
    few = SpectralDPMeans(random_state=0).fit(X)
    section.text(
        f"""With 300 rows an arm instead of 500, at the same noise, `SpectralDPMeans` finds
        {few.n_clusters_} clusters: it cuts where gaps along an arm are as wide as those that
        separate clusters in random graphs."""
    )
    section.text(
        """As in the text, but for the number of clusters: the text takes two eigenvectors, ours
        takes all above a penalty that it chooses from the spectrum. Its graph is of nearest
        neighbours, with weights by local scales, where the text has a Gaussian kernel of one
        width."""
    )
    return section


if __name__ == "__main__":
    run(make)
