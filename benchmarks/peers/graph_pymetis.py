"""METIS through pymetis, told the number of parts; it keeps them of equal size."""

import numpy as np
import pymetis
from graph_links import matrix
from worker import Outcome, serve


def fit(X, threads, n_nodes, method, k):
    links = matrix(X, n_nodes)
    _, labels = pymetis.part_graph(k, xadj=links.indptr, adjncy=links.indices)
    return Outcome(np.array(labels), 1)


if __name__ == "__main__":
    serve(fit)
