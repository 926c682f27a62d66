"""Penalties that probability models imply: the Dirichlet process mixture's, and Akaike's.

In a Dirichlet process mixture of spherical normal clusters of variance ``s`` in ``d`` columns,
whose means are normal of variance ``r`` about ``m``, the conditional of a row ``x`` compares
``n_c N(x | mu_c, s)`` for a cluster of ``n_c`` rows with ``alpha N(x | m, s + r)`` for a new one.
Kulis and Jordan, *Revisiting k-means: new algorithms via Bayesian nonparametrics*, ICML 2012,
section 3, set ``alpha = (1 + r / s)^(d / 2) exp(-penalty / (2 s))``: then the factors in ``s``
cancel, a row of distance ``sqrt(penalty)`` from the mean of a cluster of one row is as probable
there as a row at ``m`` is in a new cluster; as ``s`` tends to 0 Gibbs sampling becomes DP-means.
"""

from __future__ import annotations

from math import exp, log, log1p

import numpy as np

from countless._parameters import check_count, is_number
from countless.priors.hyper import check_positive


def penalty_from_alpha(
    alpha: float, *, variance: float, prior_variance: float, n_features: int
) -> float:
    """Return the penalty of DP-means that corresponds to the concentration of a mixture.

    It is ``variance * (n_features * log(1 + prior_variance / variance) - 2 * log(alpha))``, the
    relation of Kulis and Jordan (section 3).

    Parameters
    ----------
    alpha : float
        The concentration of `countless.priors.DirichletProcess`.
    variance : float
        The variance of each column within a cluster, as in `countless.models.FixedGaussian`.
    prior_variance : float
        The variance of each column between the means of clusters.
    n_features : int
        The number of columns.

    Returns
    -------
    float
        At least 0. There is none for a concentration above
        ``(1 + prior_variance / variance) ** (n_features / 2)``.

    See Also
    --------
    alpha_from_penalty : The inverse.
    aic_penalty : The penalty of Akaike's criterion.

    Examples
    --------
    >>> from countless import alpha_from_penalty, penalty_from_alpha
    >>> setting = {"variance": 0.5, "prior_variance": 10.0, "n_features": 2}
    >>> penalty = penalty_from_alpha(1.0, **setting)
    >>> round(penalty, 3), round(alpha_from_penalty(penalty, **setting), 3)
    (3.045, 1.0)
    """
    check_positive("alpha", alpha)
    largest = _log_largest_alpha(variance, prior_variance, n_features)
    if log(alpha) > largest:
        raise ValueError(
            f"alpha={alpha} has no penalty of at least 0: with this variance, prior_variance and "
            f"n_features log(alpha) must be at most {largest:.6g}, and is {log(alpha):.6g}"
        )
    return 2.0 * variance * (largest - log(alpha))


def alpha_from_penalty(
    penalty: float, *, variance: float, prior_variance: float, n_features: int
) -> float:
    """Return the concentration of a mixture that corresponds to a penalty of DP-means.

    It is ``(1 + prior_variance / variance) ** (n_features / 2) * exp(-penalty / (2 * variance))``
    (Kulis and Jordan, section 3).

    Parameters
    ----------
    penalty : float
        The penalty of `countless.DPMeans`, such as its ``penalty_``.
    variance, prior_variance : float
        The variances of each column within clusters and between the means of clusters, as in
        `countless.models.FixedGaussian`.
    n_features : int
        The number of columns.

    Returns
    -------
    float
        The concentration of `countless.priors.DirichletProcess`.

    See Also
    --------
    penalty_from_alpha : The inverse.

    Examples
    --------
    >>> from countless import alpha_from_penalty
    >>> round(alpha_from_penalty(30.0, variance=2.0, prior_variance=100.0, n_features=2), 4)
    0.0282
    """
    if not is_number(penalty):
        raise ValueError(f"penalty must be a finite number of at least 0; got {penalty!r}")
    log_alpha = _log_largest_alpha(variance, prior_variance, n_features) - penalty / (2 * variance)
    limits = np.finfo(np.float64)
    if not log(limits.tiny) < log_alpha < log(limits.max):
        raise ValueError(
            f"the concentration is exp({log_alpha:.6g}), which is not a float64: penalty={penalty} "
            f"and variance={variance} are on different scales"
        )
    return exp(log_alpha)


def aic_penalty(*, variance: float, n_features: int) -> float:
    """Return the penalty at which DP-means minimises Akaike's information criterion.

    For spherical normal clusters of known variance, minus twice the log likelihood of a clustering
    is the sum of squared distances over the variance, up to a constant, and each cluster adds
    ``n_features`` parameters. So the objective of DP-means at the penalty ``2 * variance *
    n_features`` is the criterion times the variance.

    Parameters
    ----------
    variance : float
        The variance of each column within a cluster.
    n_features : int
        The number of columns.

    Returns
    -------
    float

    See Also
    --------
    penalty_path : A penalty that needs no variance.

    Notes
    -----
    The sum of squares falls by more than chance suggests when the best of many splits is made, so
    the criterion finds too many clusters where the variance is that of the true clusters; the
    plateaus of `penalty_path` compare with a null reference for that reason.

    Examples
    --------
    >>> from countless import aic_penalty
    >>> aic_penalty(variance=0.25, n_features=8)
    4.0
    """
    check_positive("variance", variance)
    check_count("n_features", n_features)
    return 2.0 * variance * n_features


def _log_largest_alpha(variance: float, prior_variance: float, n_features: int) -> float:
    """Return the logarithm of the concentration whose penalty is 0."""
    check_positive("variance", variance)
    check_positive("prior_variance", prior_variance)
    check_count("n_features", n_features)
    return 0.5 * n_features * log1p(prior_variance / variance)
