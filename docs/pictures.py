"""Draw the pictures of the guide into docs/images: ``python docs/pictures.py [DIRECTORY]``."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from countless import DPMeans
from countless.plot import PenaltyPathDisplay

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


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("images")
    out.mkdir(exist_ok=True)
    wine = StandardScaler().fit_transform(load_wine().data)
    fitted = DPMeans(random_state=0).fit(wine)
    pictures = {
        "wine-path.png": draw_path(fitted),
        "wine-plane.png": draw_plane(fitted, wine, "178 wines, 13 measurements, k not given"),
    }
    for name, picture in pictures.items():
        # Without the version of matplotlib, so that the same picture is the same file.
        picture.savefig(out / name, dpi=110, metadata={"Software": None})
