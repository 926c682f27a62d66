"""
What the clusters are about
===========================

Learn what `describe` says of each cluster: a name, what sets it apart from the other rows, and
typical rows to look at.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from countless import DPMeans, describe

wine = load_wine(as_frame=True)
X = (wine.data - wine.data.mean()) / wine.data.std()
model = DPMeans(random_state=0).fit(X)
table = describe(model, wine.data, classes=wine.target)
for row in table.itertuples():
    print(f"{row.cluster}: {row.name} ({row.size} wines, such as {row.typical})")
    for sentence in row.sets_apart[:3]:
        print(f"     {sentence}")

# %%
# The same as a picture: the mean of each column in each cluster, in standard deviations.

means = np.array([X[model.labels_ == cluster].mean() for cluster in range(model.n_clusters_)])
figure, ax = plt.subplots(figsize=(7.2, 2.6), layout="constrained")
image = ax.imshow(means, cmap="RdBu_r", vmin=-1.5, vmax=1.5, aspect="auto")
names = [name.split("/")[0].replace("_", " ") for name in X.columns]
ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
ax.set_yticks(range(len(means)), [f"cluster {cluster}" for cluster in range(len(means))])
figure.colorbar(image, label="sd from the mean")
plt.show()
