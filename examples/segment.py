"""Cut a photograph into segments without saying how many, by three methods.

Run ``python examples/segment.py``. The photograph, a cup of coffee, comes with scikit-image. It
writes outlines.png, and sides.png with the methods side by side; ``countless segment`` does the
like for your own pictures.
"""

from pathlib import Path

import numpy as np
from skimage.data import coffee

from countless.image import segment
from countless.image.draw import draw_outlines, mean_colors
from countless.image.picture import at_size, png_bytes

WAYS = {
    "Dirichlet process": {"prior": "dp"},
    "no prior": {"prior": "none"},
    "graph DP-means": {"method": "graph"},
}


def side_by_side(image):
    """Return the picture in the mean colours of its superpixels and of each method's segments."""
    found = {title: segment(image, **way) for title, way in WAYS.items()}
    patches = found["no prior"].patches
    labels = at_size(patches.labels, *image.shape[:2])
    panels = {f"{patches.n} superpixels": mean_colors(image, labels)[labels]}
    for title, segments in found.items():
        colors = mean_colors(image, segments.labels)[segments.labels]
        panels[f"{title}: {segments.n_segments} segments"] = colors
    return panels, found["Dirichlet process"]


if __name__ == "__main__":
    picture = coffee() / 255.0
    panels, found = side_by_side(picture)
    print("\n".join(panels))
    Path("outlines.png").write_bytes(png_bytes(draw_outlines(picture, found.labels)))
    Path("sides.png").write_bytes(png_bytes(np.concatenate(list(panels.values()), axis=1)))
    print("wrote outlines.png and sides.png")
