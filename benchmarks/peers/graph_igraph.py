"""igraph's Leiden, for modularity, and its label propagation."""

import random

import igraph
import numpy as np
from graph_links import once
from worker import Outcome, serve


@once
def graph(X, n_nodes):
    made = igraph.Graph(n_nodes, X[:, :2].astype(int).tolist())
    made.es["weight"] = X[:, 2].tolist()
    return made


def fit(X, threads, n_nodes, method):
    random.seed(0)
    links = graph(X, n_nodes)
    if method == "igraph Leiden":
        found = links.community_leiden("modularity", weights="weight", n_iterations=2)
    else:
        found = links.community_label_propagation(weights="weight")
    return Outcome(np.array(found.membership), 1)


if __name__ == "__main__":
    serve(fit)
