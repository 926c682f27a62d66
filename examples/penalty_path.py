"""How many clusters? Ask for every price of a cluster at once, and look at the answers.

Run ``python examples/penalty_path.py``; where matplotlib is installed it also draws path.png.
"""

from importlib.util import find_spec

from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from countless import penalty_path
from countless.metrics import adjusted_rand_score

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
path = penalty_path(X, random_state=0)

print(f"{path.n_clusters} clusters, confidence {path.confidence:.2f}\n")
print("clusters   penalty from       to   score   agreement with the growers")
for plateau in path.plateaus[:5]:
    labels = path.labels_at(path.penalty_for(plateau.n_clusters))
    agreement = adjusted_rand_score(wine.target, labels)
    print(
        f"{plateau.n_clusters:8d}   {plateau.low:12.1f} {plateau.high:8.1f}   "
        f"{plateau.score:5.2f}   {agreement:.2f}"
    )

if find_spec("matplotlib") is not None:
    import matplotlib

    matplotlib.use("agg")
    from countless.plot import PenaltyPathDisplay

    PenaltyPathDisplay.from_path(path).figure_.savefig("path.png", dpi=120)
    print("\nwrote path.png")
