"""
A photograph in segments
========================

Learn how to cut a picture into segments without saying how many. Superpixels are clustered by their
similarity; a Dirichlet process prior lets one segment be large and another small.
"""

import matplotlib.pyplot as plt
from skimage.data import coffee

from countless.image import segment
from countless.image.draw import mean_colors
from countless.image.picture import at_size

METHODS = {
    "Dirichlet process": {"prior": "dp"},
    "no prior": {"prior": "none"},
    "graph DP-means": {"method": "graph"},
}

picture = coffee() / 255.0
found = {title: segment(picture, **options) for title, options in METHODS.items()}

# %%
# The picture in the mean colours of its superpixels, and of the segments of each method.

patches = found["no prior"].patches
labels = at_size(patches.labels, *picture.shape[:2])
panels = {f"{patches.n} superpixels": mean_colors(picture, labels)[labels]}
for title, segments in found.items():
    print(f"{title}: {segments.n_segments} segments")
    colors = mean_colors(picture, segments.labels)[segments.labels]
    panels[f"{title}: {segments.n_segments} segments"] = colors


def plot_panels(figure, panels):
    """Draw four pictures with their titles."""
    for ax, (title, panel) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        # Without blending: patches of one colour make a small file.
        ax.imshow(panel, interpolation="nearest")
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set_axis_off()


plot_panels(plt.figure(figsize=(6.4, 4.8), layout="constrained"), panels)
plt.show()
