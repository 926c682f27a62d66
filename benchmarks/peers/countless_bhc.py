"""This library's Bayesian hierarchical clustering; every row is a leaf."""

import time

from worker import Outcome, serve

from countless import BayesianHierarchicalClustering


def fit(X, threads, model, learn, refine):
    start = time.process_time()
    tree = BayesianHierarchicalClustering(
        model, learn=learn, refine=refine, n_leaves=None, n_jobs=threads
    ).fit(X)
    return Outcome(
        tree.labels_,
        tree.n_iter_,
        cpu=time.process_time() - start,
        log_evidence=tree.log_evidence_,
        alpha=tree.alpha_,
        children=tree.children_.tolist(),
        hyper=tree.model_.hyper.value.tolist(),
    )


if __name__ == "__main__":
    serve(fit)
