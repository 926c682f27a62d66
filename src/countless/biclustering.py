"""Biclustering with unknown numbers of row and column clusters.

Every block of a row cluster and a column cluster follows a component model with its own parameters;
both partitions follow a prior (Murphy, Machine Learning: a Probabilistic Perspective, section
25.6.1). Markov chains sample the posterior of both given the cells.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.special import softmax
from sklearn.base import BiclusterMixin, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from countless._compat import report_passes, with_callbacks
from countless._mcmc.bicluster.cells import Cells, CellStatistics, bind, choose_model, read_cells
from countless._mcmc.bicluster.chain import BiclusterChain, BiclusterDraw, Bundle
from countless._mcmc.chains import Schedule, run_chains
from countless._mcmc.sampled import Sampled, as_prior, posterior_of
from countless.models import BoundModel
from countless.models.cells import BoundCells
from countless.priors.hyper import as_generator


class DPBiclustering(BiclusterMixin, ClusterMixin, Sampled):
    """Sample joint partitions of the rows and columns of a table into homogeneous blocks.

    Parameters
    ----------
    model : str or Model, default='auto'
        Component model of the cells of a block: 'bernoulli' (0 or 1), 'categorical', 'poisson'
        (counts), 'diagonal' (numbers of unknown mean and variance) or 'fixed' (of one variance in
        all blocks), or one of `countless.models` for these. With 'auto' it is 'bernoulli' for
        zeros and ones or booleans, 'categorical' for text and 'diagonal' for other numbers.
    row_prior, column_prior : PartitionPrior, default=None
        Priors of the partitions of rows and of columns, from `countless.priors`. None is a
        Dirichlet process whose concentration has the prior ``Gamma(1, 1)`` and is sampled, too.
    split_merge : bool, default=True
        Whether split-merge proposals (Metropolis-Hastings) are made after each sweep.
    sample_hyper : bool, default=True
        Whether hyperparameters that the model has set from the data are sampled, too.
    n_chains, n_sweeps, burn_in, thin, loss, random_state, n_jobs
        As in `DPMixture`.

    Attributes
    ----------
    row_labels_, labels_ : ndarray of shape (n_samples,)
        The partition of the rows of least posterior expected loss, numbered by first appearance.
    column_labels_ : ndarray of shape (n_features,)
        The same for the columns.
    n_clusters_, n_column_clusters_ : int
        Number of row clusters and of column clusters.
    rows_, columns_ : ndarray of bool of shape (n_clusters * n_column_clusters, ...)
        The rows and columns of each block, as in scikit-learn's biclustering;
        ``get_indices(i)``, ``get_submatrix(i, X)`` and ``biclusters_`` use them.
    block_means_ : ndarray of shape (n_clusters, n_column_clusters) or None
        The mean of the observed cells of each block, NaN if there are none; None for text.
    posterior_, column_posterior_ : Posterior
        The draws of both partitions.
    model_ : BoundModel
        The model of one cell, with the hyperparameters of the draw of highest joint density.
    n_iter_, converged_
        As in `DPMixture`; R-hat of the number of column clusters is tested, too.
    column_names_ : list
        The names of the columns, or their indices if they have none.
    n_features_in_ : int

    See Also
    --------
    CrossCat : Several clusterings of the rows, each by a different set of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from countless import DPBiclustering
    >>> X = np.kron([[1, 0, 1], [0, 1, 1]], np.ones((8, 6)))
    >>> model = DPBiclustering(n_sweeps=100, random_state=0).fit(X)
    >>> model.n_clusters_, model.n_column_clusters_
    (2, 3)
    >>> model.block_means_
    array([[1., 0., 1.],
           [0., 1., 1.]])
    """

    def __init__(
        self,
        model="auto",
        row_prior=None,
        column_prior=None,
        *,
        split_merge=True,
        sample_hyper=True,
        n_chains=4,
        n_sweeps=200,
        burn_in=None,
        thin=1,
        loss="vi",
        random_state=None,
        n_jobs=None,
    ):
        self.model = model
        self.row_prior = row_prior
        self.column_prior = column_prior
        self.split_merge = split_merge
        self.sample_hyper = sample_hyper
        self.n_chains = n_chains
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.thin = thin
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None):
        """Sample partitions of the rows and columns of X.

        Ctrl-C stops the chains; the draws so far, if there are any, are kept, with a warning.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            NaN, and None in text columns, are missing values, which are ignored. In a sparse matrix
            cells that are not stored are missing, and stored zeros are zeros.
        y : ignored

        Returns
        -------
        self
        """
        schedule = self._check_schedule()
        priors = (
            as_prior("row_prior", self.row_prior),
            as_prior("column_prior", self.column_prior),
        )
        cells = read_cells(self, X, reset=True)
        model = bind(choose_model(self.model, cells), cells)
        bound = cells.bound_to(model)
        random = as_generator(self.random_state)
        chains = [
            BiclusterChain(
                model,
                bound,
                priors,
                generator,
                split_merge=bool(self.split_merge),
                sample_hyper=bool(self.sample_hyper),
            )
            for generator in random.spawn(self.n_chains)
        ]
        with report_passes(self, X) as on_pass:
            draws = run_chains(chains, schedule, n_jobs=self.n_jobs, on_pass=on_pass)
        self._store(model, cells, bound, draws, schedule, random)
        return self

    def predict(self, X):
        """Return the most probable cluster of each row of X, given the column clusters."""
        return self.predict_proba(X).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X):
        """Return the probability of each cluster of ``row_labels_`` for each row of X.

        The probabilities are conditional on a row being in one of them. If all values of a row are
        missing, they follow from the sizes of the clusters alone.
        """
        check_is_fitted(self, "model_")
        cells = read_cells(self, X, reset=False).bound_to(self.model_)
        rows = cells.of_rows(self.column_labels_)
        bundle = Bundle(self.model_, self.n_column_clusters_, self.model_.tables(0))
        log_weights = bundle.log_predictive(rows, self.block_statistics_)
        return softmax(log_weights + self.row_log_weights_, axis=1)

    def _store(
        self,
        model: BoundModel,
        cells: Cells,
        bound: CellStatistics,
        draws: list[list[BiclusterDraw]],
        schedule: Schedule,
        random: np.random.Generator,
    ) -> None:
        """Set the fitted attributes from the draws."""
        self.posterior_, self.column_posterior_ = (
            posterior_of([[draw[side] for draw in chain] for chain in draws], self.thin)
            for side in range(2)
        )
        n_columns = self.column_posterior_.n_clusters
        self.posterior_.parameters["n_column_clusters"] = n_columns.astype(np.float64)
        self.row_labels_ = self.labels_ = self.posterior_.point_estimate(
            self.loss, random, same=bound.equal_rows()
        )
        self.column_labels_ = self.column_posterior_.point_estimate(self.loss, random)
        self.n_clusters_ = int(self.row_labels_.max()) + 1
        self.n_column_clusters_ = int(self.column_labels_.max()) + 1
        self.n_iter_ = schedule.burn_in + len(draws[0]) * schedule.thin
        best = max((draw for chain in draws for draw in chain), key=lambda d: d.rows.log_joint)
        self.model_ = cast(BoundCells, model.with_hyper(best.rows.hyper))
        join = best.rows.prior.tables(len(self.row_labels_) + 1).join
        self.row_log_weights_ = join[np.bincount(self.row_labels_)]
        self.block_statistics_ = bound.of_blocks(self.row_labels_, self.column_labels_)
        self.block_means_ = self._means(cells)
        row, column = np.divmod(
            np.arange(self.n_clusters_ * self.n_column_clusters_), self.n_column_clusters_
        )
        self.rows_ = self.row_labels_ == row[:, None]
        self.columns_ = self.column_labels_ == column[:, None]
        self._judge_chains()

    def _means(self, cells: Cells) -> np.ndarray | None:
        values = cells.values[:, 0]
        if values.dtype == object:
            return None
        block = self.row_labels_[cells.row] * self.n_column_clusters_
        block = block + self.column_labels_[cells.column]
        n_blocks = self.n_clusters_ * self.n_column_clusters_
        count = np.bincount(block, minlength=n_blocks)
        total = np.bincount(block, values, minlength=n_blocks)
        means = np.divide(total, count, out=np.full(n_blocks, np.nan), where=count > 0)
        return means.reshape(self.n_clusters_, self.n_column_clusters_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags
