"""
How many clusters? The penalty path
===================================

Learn how the number of clusters is chosen: `penalty_path` computes it at every penalty at once, and
a wide plateau is a number that the data supports.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from countless import penalty_path
from countless.metrics import adjusted_rand_score
from countless.plot import PenaltyPathDisplay

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
path = penalty_path(X, random_state=0)
print(f"{path.n_clusters} clusters, confidence {path.confidence:.2f}")

# %%
# Other numbers are there to look at. The last column compares each clustering with the growers.

print("clusters   penalty from       to   score   adjusted Rand")
for plateau in path.plateaus[:5]:
    labels = path.labels_at(path.penalty_for(plateau.n_clusters))
    agreement = adjusted_rand_score(wine.target, labels)
    print(
        f"{plateau.n_clusters:8d}   {plateau.low:12.1f} {plateau.high:8.1f}   "
        f"{plateau.score:5.2f}   {agreement:.2f}"
    )

# %%
# The shaded interval is the chosen plateau.

PenaltyPathDisplay.from_path(path)
plt.show()
