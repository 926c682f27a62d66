"""Bayesian hierarchical clustering: a tree whose merges are hypothesis tests, which cut it.

Every merge tests whether the rows below it are one cluster, against all finer partitions that are
consistent with the tree, under a Dirichlet process mixture; so the tree determines its own cut.

Heller and Ghahramani, *Bayesian hierarchical clustering*, ICML 2005.
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countless._compat import CallbackSupportMixin, OnPass, report_passes, with_callbacks
from countless._labels import number_by_appearance
from countless._mcmc.sampled import check_table, tag_table
from countless._parameters import check_counts, check_flags, is_number
from countless._threads import count_threads, one_library_thread
from countless._tree.bhc_learn import Fit, fit_tree
from countless._tree.bhc_leaves import (
    WAYS,
    leaves_of,
    leaves_of_micro_clusters,
    leaves_of_sample,
    why_not_micro,
)
from countless._tree.bhc_predict import NodeMixture, log_densities, node_mixture, probabilities
from countless._tree.bhc_tree import SHARES, cut, heights
from countless._tree.dendrogram import linkage_matrix, merge_order
from countless.models.protocol import BoundModel, Model
from countless.models.registry import as_model
from countless.models.saved import pack_model


class BayesianHierarchicalClustering(
    CallbackSupportMixin, DensityMixin, ClusterMixin, BaseEstimator
):
    """A tree of clusters, cut where its merges become improbable.

    Starting from single rows, the two clusters are merged whose rows are most probably one cluster
    of a Dirichlet process mixture, compared with all partitions of them that are consistent with
    the tree so far.

    Parameters
    ----------
    model : str or Model, default='gaussian'
        The component distribution: 'gaussian', 'diagonal', 'fixed', 'bernoulli', 'categorical',
        'poisson', 'multinomial', 'columns', or one of `countless.models`. Time grows with the
        square of the number of columns for 'gaussian', and the cube where clusters have several
        rows; linearly for the others. A full covariance has many parameters: where rows are few
        for the number of columns, 'diagonal' finds more.
    alpha : float, default=1.0
        The concentration of the Dirichlet process: the larger, the more clusters.
    learn : bool, default=True
        Whether alpha, and hyperparameters that the model does not fix, are learned by maximizing
        the evidence of the tree, alternating with growing it again. ``alpha`` is then the starting
        value, and the center of a prior: a learned alpha is usually within a factor of about 7 of
        it, unless the data strongly disagree.
    refine : bool, default=True
        Whether to grow several trees, the others with less preference for merging large clusters,
        and keep the one with the highest evidence. False is exactly the algorithm of Heller and
        Ghahramani.
    n_leaves : int or None, default=2000
        With more rows than this, rows are first grouped into ``n_leaves`` leaves, and rows of one
        leaf are never separated: memory and time grow with the square of the leaves. None: every
        row is a leaf.
    leaves : {'auto', 'sample', 'micro'}, default='auto'
        How rows are grouped. 'micro' takes the micro-clusters that ``penalty='auto'`` of `DPMeans`
        starts from, for numeric rows without missing values. 'sample' grows a tree of a random
        sample of ``n_leaves`` rows, passes all others down this tree, and grows the final tree
        from the groups. 'auto' is 'micro' where possible.
    max_iter : int, default=20
        Maximum number of rounds of growing and learning.
    random_state : int, RandomState instance or None, default=None
        Selects the sample of tables with more rows than leaves; nothing else is random.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
    children_ : ndarray of shape (n_leaves - 1, 2)
        The two nodes of each merge: i below n_leaves is leaf i, n_leaves + i the node of merge i.
        In ascending order of height.
    log_merge_odds_ : ndarray of shape (n_leaves - 1,)
        The log odds that the rows below each merge are one cluster.
    linkage_matrix_ : ndarray of shape (n_leaves - 1, 4)
        The same tree for `scipy.cluster.hierarchy`. Heights are minus the log probability of
        merges, raised to those of their children; within a cluster they are at most log 2, so that
        ``fcluster(linkage_matrix_, np.log(2), 'distance')`` gives the clusters.
    leaf_labels_ : ndarray of shape (n_samples,)
        The leaf of each row: 0, 1, ... unless rows were grouped.
    log_evidence_ : float
        A lower bound on the log evidence of the Dirichlet process mixture: the sum over the
        partitions of the tree.
    alpha_ : float
        The concentration used.
    model_ : BoundModel
        The model with the hyperparameters used: ``model_.hyper``.
    node_statistics_, node_weights_, node_shares_ : ndarray
        The mixture that predicts new rows: the statistics and the weight of each node with a
        non-negligible weight, and the share of each cluster in it. The first is a new cluster.
    model_table_, model_levels_, model_hyper_ : ndarray, list and ndarray
        ``model_`` as plain arrays, as saved in a model file.
    objective_history_ : ndarray
        Minus the log evidence and log prior of what is learned, after each round; nonincreasing.
    n_iter_ : int
        Number of rounds of growing and learning.
    converged_ : bool
        Whether the last round gained less than the tolerance.
    n_features_in_ : int

    See Also
    --------
    countless.plot.DendrogramDisplay : The tree as a picture.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import BayesianHierarchicalClustering
    >>> X, _ = make_blobs(90, centers=3, cluster_std=0.5, random_state=3)
    >>> model = BayesianHierarchicalClustering().fit(X)
    >>> model.n_clusters_
    3
    >>> model.predict_proba(X[:1]).round(3).tolist()
    [[1.0, 0.0, 0.0]]
    """

    model_: BoundModel
    model_table_: np.ndarray | None
    model_levels_: list | None
    model_hyper_: np.ndarray | None

    def __init__(
        self,
        model="gaussian",
        *,
        alpha=1.0,
        learn=True,
        refine=True,
        n_leaves=2000,
        leaves="auto",
        max_iter=20,
        random_state=None,
        n_jobs=None,
    ):
        self.model = model
        self.alpha = alpha
        self.learn = learn
        self.refine = refine
        self.n_leaves = n_leaves
        self.leaves = leaves
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None):
        """Grow the tree of the rows of X and cut it.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            What the model accepts: numbers for 'gaussian', any columns for 'columns'. Models with
            independent columns accept missing values (NaN).
        y : ignored

        Returns
        -------
        self
        """
        model = self._check_parameters()
        table = check_table(self, X, model, reset=True)
        model.check_shape(len(table), self.n_features_in_)
        bound = model.bind(table)
        with one_library_thread(), report_passes(self, X) as on_pass:
            leaf_labels, fit = self._grow(bound, bound.rows(table), on_pass)
        self._store(leaf_labels, fit)
        return self

    def predict(self, X):
        """Return the most probable cluster of each row of X."""
        return self.predict_proba(X).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X):
        """Return the probability of each cluster for each row of X, (n_samples, n_clusters).

        Each node that a row may belong to counts for clusters in proportion to its fitted rows.
        The probability of a new cluster is left out; see `score_samples`.
        """
        rows = self._rows(X)
        return probabilities(self.model_, self._mixture(), rows)

    def score_samples(self, X):
        """Return the log density of each row of X, averaged over the partitions of the tree."""
        rows = self._rows(X)
        return log_densities(self.model_, self._mixture(), rows)

    def score(self, X, y=None):
        """Return the mean log density of the rows of X."""
        return float(self.score_samples(X).mean())

    def _check_parameters(self) -> Model:
        check_flags(self, "learn", "refine")
        check_counts(self, "max_iter")
        if self.n_leaves is not None and (
            not isinstance(self.n_leaves, Integral) or self.n_leaves < 2
        ):
            raise ValueError(
                f"n_leaves must be None or an integer of at least 2; got {self.n_leaves!r}"
            )
        if not is_number(self.alpha) or not self.alpha > 0:
            raise ValueError(f"alpha must be a positive number; got {self.alpha!r}")
        if self.leaves not in WAYS:
            raise ValueError(f"leaves must be 'auto', 'sample' or 'micro'; got {self.leaves!r}")
        return as_model(self.model)

    def _grow(self, bound: BoundModel, rows: np.ndarray, on_pass: OnPass) -> tuple[np.ndarray, Fit]:
        """Return the leaf of each row, and the tree of the leaves."""
        n_threads = count_threads(self.n_jobs)

        def fit(leaves) -> Fit:
            return fit_tree(
                bound,
                float(self.alpha),
                leaves,
                learn=bool(self.learn),
                shares=SHARES if self.refine else (1.0,),
                max_iter=self.max_iter,
                n_threads=n_threads,
                on_pass=on_pass,
            )

        random = check_random_state(self.random_state)
        if self.n_leaves is None or len(rows) <= self.n_leaves:
            labels = np.arange(len(rows))
        elif self.leaves == "sample" or (self.leaves == "auto" and why_not_micro(bound, rows)):
            labels = leaves_of_sample(bound, rows, self.n_leaves, random, fit, n_threads)
        else:
            seed = int(random.randint(2**31 - 1))
            labels = leaves_of_micro_clusters(bound, rows, self.n_leaves, seed, self.n_jobs)
        return labels, fit(leaves_of(bound, rows, labels))

    def _store(self, leaf_labels: np.ndarray, fit: Fit) -> None:
        """Store the tree, merges in ascending order, and what is derived from it."""
        tree, log_odds = fit.best.tree, fit.best.evaluation.log_odds
        height = heights(tree.children, log_odds)
        order, self.children_ = merge_order(tree.children, height)
        self.log_merge_odds_ = log_odds[order]
        self.linkage_matrix_ = linkage_matrix(self.children_, height[order])
        tops = cut(tree.children, log_odds)[: tree.n_leaves]
        _, self.labels_ = number_by_appearance(tops[leaf_labels])
        self.leaf_labels_ = leaf_labels
        self.n_clusters_ = int(self.labels_.max()) + 1
        self.log_evidence_ = fit.best.evaluation.log_evidence
        self.alpha_ = fit.best.alpha
        self.model_ = fit.best.model
        packed = pack_model(fit.best.model)
        self.model_table_, self.model_levels_, self.model_hyper_ = packed or (None, None, None)
        of_leaf = np.empty(tree.n_leaves, dtype=np.int64)
        of_leaf[leaf_labels] = self.labels_
        mixture = node_mixture(tree, log_odds, self.alpha_, of_leaf)
        self.node_statistics_, self.node_weights_, self.node_shares_ = mixture
        self.objective_history_ = np.array(fit.history)
        self.n_iter_ = len(fit.history)
        self.converged_ = fit.converged
        if not fit.converged:
            warnings.warn(
                f"BayesianHierarchicalClustering stopped at max_iter={self.max_iter} rounds while "
                "the evidence was still growing; raise max_iter",
                ConvergenceWarning,
                stacklevel=4,  # store, fit, scikit-learn's wrapper: the caller
            )

    def _mixture(self) -> NodeMixture:
        return NodeMixture(self.node_statistics_, self.node_weights_, self.node_shares_)

    def _rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "node_statistics_")
        return self.model_.rows(check_table(self, X, as_model(self.model), reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tag_table(tags, self.model)
        return tags
