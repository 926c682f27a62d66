"""Draw the pictures of the guide into docs/images: ``python docs/pictures.py [DIRECTORY]``."""

import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.linalg import expm
from scipy.sparse.csgraph import laplacian
from sklearn.cluster import KMeans
from sklearn.datasets import (
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

from countless import (
    AffinityPropagation,
    AutoClustering,
    BayesianHierarchicalClustering,
    DivisiveClustering,
    DPMeans,
    DPMixture,
    GraphDPMeans,
    HDPMeans,
    HDPMixture,
    KernelDPMeans,
    SpectralDPMeans,
    bootstrap,
)
from countless.datasets import sample_exemplar_model
from countless.plot import (
    BiclusterDisplay,
    ClusterCountDisplay,
    ComponentsDisplay,
    DendrogramDisplay,
    DependenceDisplay,
    HeatmapDisplay,
    PenaltyPathDisplay,
    SimilarityDisplay,
    StabilityDisplay,
    TraceDisplay,
    ViewsDisplay,
)
from countless.plot.dependence import view_numbers
from countless.priors import DirichletProcess

COLORS = ("#c8553d", "#2d7d9a", "#7a9e3f", "#8f6fb0", "#d59a2c")


def new_figure(width: float, height: float) -> Figure:
    """Return a figure that is drawn without a window."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_path(model: DPMeans) -> Figure:
    """Draw the number of clusters at every penalty."""
    figure = new_figure(6.4, 3.4)
    PenaltyPathDisplay.from_path(model.path_, ax=figure.add_subplot())
    return figure


def draw_plane(model: DPMeans, X: np.ndarray, title: str) -> Figure:
    """Draw rows and centers on the two directions in which the rows spread most."""
    figure = new_figure(6.4, 3.8)
    ax = figure.add_subplot()
    plane = PCA(n_components=2).fit(X)
    at, centers = plane.transform(X), plane.transform(model.cluster_centers_)
    for label in range(model.n_clusters_):
        color, members = COLORS[label % len(COLORS)], at[model.labels_ == label]
        ax.scatter(*members.T, s=18, color=color, alpha=0.75, linewidths=0)
        ax.scatter(*centers[label], s=110, color=color, marker="X", edgecolors="white")
        # The name stands on the outer side of its cluster, where no other is in the way.
        upper = centers[label, 1] > 0
        ax.annotate(
            f"cluster {label}: {len(members)} rows",
            (centers[label, 0], members[:, 1].max() if upper else members[:, 1].min()),
            xytext=(0, 8 if upper else -8),
            textcoords="offset points",
            ha="center",
            va="bottom" if upper else "top",
            fontweight="bold",
            color=color,
        )
    ax.margins(y=0.12)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.set_xlabel("first principal component")
    ax.set_ylabel("second principal component")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def six_data_sets() -> dict[str, np.ndarray]:
    """Return rows in the plane on which families of clusters differ."""
    random = np.random.default_rng(0)
    tilt = np.array([[0.6, -0.64], [-0.4, 0.85]])
    centers, spread = [[0, 0], [5.5, 0], [5.5, 3]], [1.4, 0.35, 0.35]
    return {
        "close blobs": make_blobs(900, centers=9, cluster_std=0.9, random_state=4)[0],
        "long blobs": make_blobs(500, centers=3, random_state=170)[0] @ tilt,
        "large and small": make_blobs(
            [300, 60, 60], centers=centers, cluster_std=spread, random_state=0
        )[0],
        "moons": make_moons(500, noise=0.07, random_state=0)[0],
        "rings": make_circles(600, factor=0.45, noise=0.06, random_state=0)[0],
        "noise": random.uniform(size=(500, 2)),
    }


def draw_families() -> Figure:
    """Draw six data sets as each family clusters them, the choice framed."""
    names = ("round", "elliptical", "connected")
    figure = new_figure(6.4, 3.5)
    panels = figure.subplots(len(names), 6)
    for column, (title, X) in enumerate(six_data_sets().items()):
        model = AutoClustering().fit(X)
        panels[0, column].set_title(title, fontsize="small")
        agree = {one.method: one.agreement for one in model.candidates_}
        best = max(names, key=lambda name: (name == model.best_method_, agree.get(name) or 0.0))
        for row, name in enumerate(names):
            ax, labels = panels[row, column], model.candidate_labels_[name]
            colors = [COLORS[label % len(COLORS)] for label in labels]
            # Without blending: few colours make a small file.
            ax.scatter(*X.T, c=colors, s=1.5, linewidths=0, antialiased=False)
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(f"{labels.max() + 1}", fontsize="small", labelpad=2)
            chosen = name == best or (model.n_clusters_ == 1 and not labels.any())
            for spine in ax.spines.values():
                spine.set(linewidth=2.0 if chosen else 0.4, color="black" if chosen else "#999999")
            if not column:
                ax.set_ylabel(name)
    return figure


def draw_rings() -> Figure:
    """Draw two rings as DP-means sees them, by themselves and through a heat kernel."""
    rings, _ = make_circles(n_samples=400, noise=0.05, factor=0.4, random_state=0)
    graph = kneighbors_graph(rings, n_neighbors=10).toarray()
    heat = expm(-1000 * laplacian(np.maximum(graph, graph.T), normed=True))
    kernel = KernelDPMeans(kernel="precomputed", random_state=0).fit((heat + heat.T) / 2)
    plain = DPMeans(random_state=0).fit(rings)
    figure = new_figure(5.4, 2.8)
    titles = {"DPMeans": plain, "KernelDPMeans": kernel}
    for ax, (title, model) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        color = [COLORS[label % len(COLORS)] for label in model.labels_]
        ax.scatter(*rings.T, s=9, color=color, linewidths=0)
        ax.set_title(f"{title}: {model.n_clusters_} clusters", loc="left", fontsize="medium")
        ax.set_aspect("equal")
        ax.set_axis_off()
    return figure


def draw_data_sets() -> Figure:
    """Draw three data sets that each have some of five clusters, in the colors they share."""
    centers = np.array([[0, 0], [6, 1], [3, 5], [9, 5], [6, 9]])
    uses = {"north": [0, 1, 2], "south": [1, 2, 3], "west": [3, 4]}
    random = np.random.RandomState(0)
    truth = np.concatenate([random.choice(some, 60) for some in uses.values()])
    groups = np.repeat(list(uses), 60)
    X = centers[truth] + random.standard_normal((180, 2))
    model = HDPMeans(random_state=0).fit(X, groups=groups)
    figure = new_figure(6.4, 2.6)
    axes = figure.subplots(1, len(uses), sharex=True, sharey=True)
    for ax, name, n_local in zip(axes, model.groups_, model.n_local_clusters_, strict=True):
        rows = groups == name
        ax.scatter(*X[~rows].T, s=5, color="#dddddd", linewidths=0)
        ax.scatter(*X[rows].T, s=14, color=[COLORS[k] for k in model.labels_[rows]], linewidths=0)
        for k, center in enumerate(model.cluster_centers_):
            used = model.group_clusters_[model.groups_ == name, k][0]
            color = COLORS[k] if used else "#aaaaaa"
            ax.scatter(*center, s=80, color=color, marker="X", edgecolors="white")
        title = f"{name}: {n_local} of {model.n_clusters_} clusters"
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set_aspect("equal")
        ax.set_axis_off()
    return figure


def draw_shared_draws() -> Figure:
    """Draw three data sets in shared colors, faint where unsure, and the number of clusters."""
    centers = np.array([[0, 0], [7, 1], [3, 6], [10, 6], [7, 11]])
    uses = {"north": [0, 1, 2], "south": [1, 2, 3], "west": [3, 4]}
    random = np.random.RandomState(1)
    truth = np.concatenate([random.choice(some, 40) for some in uses.values()])
    groups = np.repeat(list(uses), 40)
    X = centers[truth] + random.standard_normal((120, 2))
    mixture = HDPMixture(n_chains=2, n_sweeps=250, random_state=0).fit(X, groups=groups)
    # How often, in the draws, a row is with those that it shares its cluster with.
    with_own = mixture.labels_[:, None] == mixture.labels_
    sure = np.average(mixture.posterior_.similarity(), axis=1, weights=with_own)
    figure = new_figure(7.6, 2.5)
    *axes, counts = figure.subplots(1, len(uses) + 1)
    for ax, name in zip(axes, mixture.groups_, strict=True):
        rows = groups == name
        color = [COLORS[label] for label in mixture.labels_[rows]]
        ax.scatter(*X[~rows].T, s=4, color="#dddddd", linewidths=0)
        ax.scatter(*X[rows].T, s=16, color=color, alpha=sure[rows] ** 3, linewidths=0)
        ax.set_title(name, loc="left", fontsize="medium")
        ax.set_aspect("equal")
        ax.set_axis_off()
    share = mixture.posterior_.n_clusters_distribution()
    counts.bar(np.arange(3, 9), np.pad(share, (0, 9))[3:9], color="#1f3b57", width=0.7)
    counts.set_title("number of clusters", loc="left", fontsize="medium")
    counts.set_xticks(range(3, 9))
    counts.spines[["top", "right"]].set_visible(False)
    return figure


def draw_moons() -> Figure:
    """Draw two moons in the colors of their clusters, and the plateau of their spectrum."""
    X, _ = make_moons(n_samples=600, noise=0.06, random_state=3)
    model = SpectralDPMeans(random_state=0).fit(X)
    gap = 1 - SpectralDPMeans(0.9, random_state=0).fit(X).eigenvalues_[:10]
    figure = new_figure(6.4, 2.8)
    left, right = figure.subplots(1, 2)
    left.scatter(*X.T, s=7, color=[COLORS[label] for label in model.labels_], linewidths=0)
    left.set_title(f"{model.n_clusters_} clusters", loc="left", fontsize="medium")
    left.set_aspect("equal")
    left.set_axis_off()
    best = model.path_.plateaus[0]
    right.axhspan(1 - best.high, 1 - best.low, color="#e07b39", alpha=0.22, linewidth=0)
    right.plot(np.arange(2, 11), gap[1:], "o", color="#1f3b57", clip_on=False)
    right.set_yscale("log")
    right.set_xticks(range(2, 11))
    right.set_xlabel("eigenvector (the first has no gap)")
    right.set_title("1 - eigenvalue, and the chosen plateau", loc="left", fontsize="medium")
    right.spines[["top", "right"]].set_visible(False)
    return figure


def draw_graph() -> Figure:
    """Draw a graph's links as given and sorted by cluster, and its clusters at every penalty."""
    random = np.random.RandomState(0)
    truth = random.randint(6, size=180)
    likely = np.where(truth[:, None] == truth, 0.3, 0.02)
    links = np.triu(random.random_sample(likely.shape) < likely, 1)
    links = (links | links.T).astype(float)
    model = GraphDPMeans(random_state=0).fit(links)
    order = np.argsort(model.labels_, kind="stable")
    figure = new_figure(7.2, 2.7)
    given, by_cluster, steps = figure.subplots(1, 3)
    titles = {"as given": links, f"{model.n_clusters_} clusters": links[order][:, order]}
    for ax, (title, matrix) in zip((given, by_cluster), titles.items(), strict=True):
        ax.spy(matrix, markersize=0.9, color="#1f3b57")
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set_xticks([])
        ax.set_yticks([])
    best = model.path_.plateaus[0]
    penalty = np.linspace(-0.85, -0.05, 400)
    steps.axvspan(best.low, best.high, color="#e07b39", alpha=0.22, linewidth=0)
    steps.step(penalty, [model.path_.n_clusters_at(value) for value in penalty], color="#1f3b57")
    steps.set_yscale("log")
    steps.set_yticks([1, 6, 30], ["1", "6", "30"])
    steps.minorticks_off()
    steps.set_xlabel("penalty")
    steps.set_title("number of clusters", loc="left", fontsize="medium")
    steps.spines[["top", "right"]].set_visible(False)
    return figure


def draw_exemplars() -> Figure:
    """Draw rows of the exemplar model with their exemplars, found without and with a prior."""
    rows, _, _ = sample_exemplar_model(200, noise_variance=0.03, random_state=8)
    settings = {"affinity": "gaussian", "noise_variance": 0.03, "random_state": 0}
    titles = {
        "no prior": AffinityPropagation(**settings),
        "Dirichlet process": AffinityPropagation(DirichletProcess(1.0), **settings),
    }
    figure = new_figure(6.4, 3.0)
    for ax, (title, model) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        model.fit(rows)
        exemplar = rows[model.cluster_centers_indices_[model.labels_]]
        color = [COLORS[label % len(COLORS)] for label in model.labels_]
        lines = LineCollection(np.stack([rows, exemplar], axis=1), colors=color, linewidths=0.5)
        ax.add_collection(lines)
        ax.scatter(*rows.T, s=6, color=color, linewidths=0)
        ax.scatter(*rows[model.cluster_centers_indices_].T, s=42, color="#222222", marker="*")
        ax.set_title(f"{title}: {model.n_clusters_} clusters", loc="left", fontsize="medium")
        ax.set_aspect("equal")
        ax.set_axis_off()
    return figure


def draw_digits_tree() -> Figure:
    """Draw the Bayesian tree of handwritten digits above what they are."""
    digits, digit = load_digits(n_class=5, return_X_y=True)
    tree = BayesianHierarchicalClustering("bernoulli").fit(digits[:200] >= 8)
    figure = new_figure(7.2, 3.6)
    DendrogramDisplay.from_estimator(tree, classes=digit[:200], ax=figure.add_subplot())
    return figure


def draw_heatmap(X: np.ndarray, names: list[str]) -> Figure:
    """Draw a table in the order of its Bayesian tree."""
    tree = BayesianHierarchicalClustering().fit(X)
    figure = new_figure(7.2, 4.2)
    names = [name.split("/")[0].replace("_", " ") for name in names]
    HeatmapDisplay.from_estimator(tree, X, columns=names, center=0.0, figure=figure)
    return figure


def draw_iris_diana() -> Figure:
    """Draw the tree of irises by dissimilarity analysis, and their species."""
    irises = load_iris()
    model = DivisiveClustering("diana", random_state=0).fit(irises.data)
    figure = new_figure(6.6, 3.2)
    species = irises.target_names[irises.target]
    display = DendrogramDisplay.from_estimator(model, classes=species, ax=figure.add_subplot())
    display.ax_.set_ylabel("diameter (cm)")
    return figure


def draw_stability() -> Figure:
    """Draw what becomes of five clusters where there are three."""
    centers = [[0, 0], [0, 7], [9, 3]]
    X, _ = make_blobs([80, 80, 160], centers=centers, random_state=0)
    figure = new_figure(7.2, 3.0)
    found = bootstrap(KMeans(5, n_init=1), X, n_draws=40, random_state=0)
    StabilityDisplay.from_stability(found, axes=figure.subplots(1, 2))
    return figure


def run_example(name: str) -> dict[str, Any]:
    """Run a program of the gallery, and return its variables."""
    variables = runpy.run_path(str(Path(__file__).parents[1] / "examples" / name))
    plt.close("all")  # its own pictures have the gallery's size
    return variables


def draw_priors() -> dict[str, Figure]:
    """Draw rows and weights of Dirichlet processes, as the example does."""
    example = run_example("uncertainty/priors.py")
    rows, sticks = new_figure(6, 3.2), new_figure(6, 2.6)
    example["plot_rows"](rows, example["runs"])
    example["plot_sticks"](sticks)
    return {"priors-rows.png": rows, "priors-sticks.png": sticks}


def draw_chains() -> Figure:
    """Draw the number of clusters along chains that start from one cluster."""
    X, _ = make_blobs(900, 8, centers=12, center_box=(-10, 10), random_state=0)
    figure = new_figure(6.4, 2.4)
    for ax, split_merge in zip(figure.subplots(1, 2, sharey=True), (False, True), strict=True):
        mixture = DPMixture(split_merge=split_merge, n_sweeps=60, burn_in=0, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # without splits: as it should be
            mixture.fit(X)
        for chain, color in zip(mixture.posterior_.n_clusters, COLORS, strict=False):
            ax.plot(np.arange(1, 61), chain, color=color, linewidth=1.2, alpha=0.8)
        ax.axhline(12, color="0.6", linewidth=0.8, linestyle=":")
        ax.set_xlabel("sweep")
        title = "with splits and merges" if split_merge else "rows alone"
        ax.set_title(title, loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("clusters")
    return figure


def draw_posterior() -> dict[str, Figure]:
    """Draw what the posterior of the irises says of k, and of rows."""
    X = load_iris().data
    lengths = X[:, [0, 2]]
    mixture = DPMixture(n_chains=2, random_state=0).fit(lengths)
    of_k, of_rows, plane = new_figure(7.2, 2.7), new_figure(3.8, 3), new_figure(4.4, 3.4)
    left, right = of_k.subplots(1, 2)
    TraceDisplay.from_estimator(mixture, names=["n_clusters"], ax=left)
    ClusterCountDisplay.from_estimator(mixture, ax=right)
    all_four = DPMixture(n_chains=1, n_sweeps=400, random_state=0).fit(X)
    SimilarityDisplay.from_estimator(all_four, ax=of_rows.add_subplot())
    ax = ComponentsDisplay.from_estimator(mixture, lengths, ax=plane.add_subplot()).ax_
    ax.set_xlabel("length of sepals (cm)")
    ax.set_ylabel("length of petals (cm)")
    return {"posterior-k.png": of_k, "posterior-plane.png": plane, "posterior-rows.png": of_rows}


def draw_segments() -> Figure:
    """Draw a photograph in the mean colours of superpixels and segments, as the example does."""
    figure = new_figure(6.4, 4.8)
    example = run_example("shapes/segment.py")
    example["plot_panels"](figure, example["panels"])
    return figure


def draw_biclusters() -> Figure:
    """Draw digits and their pixels in blocks, as the example does."""
    example = run_example("uncertainty/biclustering.py")
    figure = new_figure(5.4, 4.6)
    display = BiclusterDisplay.from_estimator(
        example["model"], example["table"], ax=figure.add_subplot()
    )
    display.ax_.set_xlabel("64 pixels")
    display.ax_.set_ylabel("120 images")
    return figure


def draw_crosscat() -> dict[str, Figure]:
    """Draw irises and wines that were glued together, as the example does."""
    example = run_example("uncertainty/crosscat.py")
    model, names = example["model"], example["names"]
    dependence, views = new_figure(5.6, 3.4), new_figure(6.4, 4.2)
    display = DependenceDisplay(model.dependence(), view_numbers(model), names)
    display.plot(ax=dependence.add_subplot())
    ViewsDisplay(model.encoded_rows(), model.views_, names).plot(figure=views)
    return {"crosscat-dependence.png": dependence, "crosscat-views.png": views}


if __name__ == "__main__":
    matplotlib.use("agg")  # so that programs of the gallery show nothing
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("images")
    out.mkdir(exist_ok=True)
    wine = StandardScaler().fit_transform(load_wine().data)
    fitted = DPMeans(random_state=0).fit(wine)
    pictures = {
        "bicluster-digits.png": draw_biclusters(),
        **draw_crosscat(),
        "exemplars.png": draw_exemplars(),
        "digits-tree.png": draw_digits_tree(),
        "graph.png": draw_graph(),
        "hdp-mixture.png": draw_shared_draws(),
        "hdp-sets.png": draw_data_sets(),
        "iris-diana.png": draw_iris_diana(),
        "mixture-chains.png": draw_chains(),
        "moons.png": draw_moons(),
        **draw_posterior(),
        **draw_priors(),
        "rings.png": draw_rings(),
        "segments.png": draw_segments(),
        "stability.png": draw_stability(),
        "which-method.png": draw_families(),
        "wine-heatmap.png": draw_heatmap(wine, load_wine().feature_names),
        "wine-path.png": draw_path(fitted),
        "wine-plane.png": draw_plane(fitted, wine, "178 wines, 13 measurements, k not given"),
    }
    for name, picture in pictures.items():
        # Without the version of matplotlib, so that the same picture is the same file.
        picture.savefig(out / name, dpi=110, metadata={"Software": None})
