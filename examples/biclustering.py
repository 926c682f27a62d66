"""Handwritten digits and their pixels clustered at once: which images, and which ink goes together.

Run ``python examples/biclustering.py``; where matplotlib is installed it also draws
biclustering.png.
"""

import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from countless import DPBiclustering


def ink(n_images=120):
    """Return images of 0, 1 and 2 as rows of 0 and 1, and what they show."""
    pictures, digit = load_digits(n_class=3, return_X_y=True)
    return (pictures[:n_images] >= 8).astype(float), digit[:n_images]


def fit(table):
    """Return clusters of both sides; two short chains will do here, whether or not they agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DPBiclustering(n_chains=2, n_sweeps=60, random_state=0).fit(table)


def main():
    table, digit = ink()
    model = fit(table)
    print(f"{model.n_clusters_} clusters of images and {model.n_column_clusters_} of pixels")
    for cluster in range(model.n_clusters_):
        counts = np.bincount(digit[model.row_labels_ == cluster], minlength=3)
        shown = ", ".join(f"{n} times {d}" for d, n in enumerate(counts) if n)
        print(f"  images {cluster}: {shown}")
    print("pixels, by their cluster:")
    for line in model.column_labels_.reshape(8, 8):
        print("  " + " ".join(f"{cluster:2d}" for cluster in line))
    if find_spec("matplotlib"):
        import matplotlib

        matplotlib.use("Agg")
        from countless.plot import BiclusterDisplay

        display = BiclusterDisplay.from_estimator(model, table)
        display.figure_.savefig("biclustering.png")


if __name__ == "__main__":
    main()
