"""networkit's parallel Leiden and Louvain, both for modularity."""

import networkit
import numpy as np
from graph_links import once
from worker import Outcome, serve


@once
def graph(X, n_nodes):
    made = networkit.Graph(n_nodes, weighted=bool((X[:, 2] != 1).any()))
    for a, b, weight in X.tolist():
        made.addEdge(int(a), int(b), weight)
    return made


def fit(X, threads, n_nodes, method):
    networkit.setNumberOfThreads(threads)
    networkit.setSeed(0, False)
    kinds = {
        "networkit Leiden": networkit.community.ParallelLeiden,
        "networkit PLM": networkit.community.PLM,
    }
    run = kinds[method](graph(X, n_nodes))
    run.run()
    return Outcome(np.array(run.getPartition().getVector()), 1)


if __name__ == "__main__":
    serve(fit)
