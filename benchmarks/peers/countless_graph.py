"""This library's GraphDPMeans; it finds the penalty itself."""

from graph_links import matrix
from worker import Outcome, serve

from countless import GraphDPMeans


def fit(X, threads, n_nodes, method):
    model = GraphDPMeans(random_state=0).fit(matrix(X, n_nodes))
    return Outcome(model.labels_, model.n_iter_, penalty=float(model.penalty_))


if __name__ == "__main__":
    serve(fit)
