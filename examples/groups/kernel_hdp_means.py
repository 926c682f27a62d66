"""
Shared clusters in a kernel's space
===================================

Learn how `KernelHDPMeans` joins the two ideas: several data sets, and a kernel in place of squared
distances. Sites share types of curves; rows are compared by a Gaussian kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

from countless import KernelHDPMeans

random = np.random.default_rng(1)
time = np.linspace(0, 1, 40)
shapes = np.array([np.sin(2 * np.pi * time), np.cos(2 * np.pi * time), 2 * time - 1, 0 * time])
uses = {"site 1": [0, 1], "site 2": [1, 2], "site 3": [0, 2, 3]}
truth = np.concatenate([random.choice(some, 50) for some in uses.values()])
site = np.repeat(list(uses), 50)
curves = shapes[truth] + 0.3 * random.normal(size=(150, 40))

model = KernelHDPMeans(kernel="rbf", random_state=0).fit(curves, groups=site)
print(f"{model.n_clusters_} types of curves")
for name, n_local in zip(model.groups_, model.n_local_clusters_, strict=True):
    print(f"  {name} has {n_local}")

figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.6), sharey=True, layout="constrained")
for ax, name in zip(axes, uses, strict=True):
    for label in range(model.n_clusters_):
        rows = curves[(site == name) & (model.labels_ == label)]
        ax.plot(time, rows.T, color=f"C{label}", alpha=0.12, linewidth=0.7)
        if len(rows):
            ax.plot(time, rows.mean(axis=0), color=f"C{label}", linewidth=2)
    ax.set(title=name, xlabel="time")
plt.show()
