"""
Compare the candidates
======================

Learn how to look at what `AutoClustering` did not choose: every candidate is kept, with the number
of its clusters and its share of the evidence.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from countless import AutoClustering
from countless.plot import CandidatesDisplay

X, _ = make_moons(400, noise=0.06, random_state=0)
model = AutoClustering().fit(X)
for candidate in model.candidates_:
    print(f"{candidate.method:12s} {candidate.n_clusters:3d} clusters, {candidate.evidence:.2f}")
CandidatesDisplay.from_estimator(model, X)
plt.show()
