"""The verdict of a report in plain words: how many clusters, how sure, and what to try."""

from __future__ import annotations

from typing import Any

from countless._mcmc.posterior import Posterior
from countless._path.penalty import PenaltyPath
from countless._report.plain import WEAK, counted_clusters, percent
from countless.edited_clustering import EditedClustering

CLEAR, LIKELY = 0.8, 0.5


def verdict(model: Any, path: Any, n_clusters: int) -> dict[str, Any]:
    """Return the headline, the confidence, and what they mean.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import DPMeans
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    >>> model = DPMeans(random_state=0).fit(X)
    >>> found = verdict(model, model.path_, 4)
    >>> found["headline"], found["confidence"] > 0.8
    ('4 clusters', True)
    >>> found["lines"][0]
    'The data clearly speaks for this number of clusters.'
    """
    headline = counted_clusters(n_clusters)
    if isinstance(model, EditedClustering):
        line = "The clusters were edited by hand; the model had found "
        line += f"{counted_clusters(model.estimator_.n_clusters_)}."
        return _verdict(headline, None, [line], [])
    posterior = getattr(model, "posterior_", None)
    if isinstance(posterior, Posterior) and posterior.n_clusters.size > 1:
        return _of_posterior(headline, posterior, n_clusters)
    confidence = getattr(model, "confidence_", None)
    if confidence is None and path is not None:
        confidence = path.confidence
    if confidence is None:
        line = "This method does not say how sure its number of clusters is."
        return _verdict(headline, None, [line], [])
    lines = []
    if (supported := _supported(model, path)) is not None and supported != n_clusters:
        lines.append(
            f"This number of clusters is your choice. The data supports "
            f"{counted_clusters(supported)}, with confidence {confidence:.2f}."
        )
    else:
        lines.append(in_words(n_clusters, confidence))
    if reason := getattr(model, "reason_", None):
        lines.append(reason)
    if (rival := _rival(path, n_clusters)) is not None:
        lines.append(f"The next best number is {rival}.")
    return _verdict(headline, float(confidence), lines, advice(n_clusters, confidence))


def in_words(n_clusters: int, confidence: float) -> str:
    """Return what a confidence means.

    Examples
    --------
    >>> in_words(1, 0.1)
    'No clusters stand out, and even that is uncertain.'
    """
    if n_clusters == 1:
        if confidence >= LIKELY:
            return "No clusters stand out: the rows are one cluster."
        return "No clusters stand out, and even that is uncertain."
    if confidence >= CLEAR:
        return "The data clearly speaks for this number of clusters."
    if confidence >= LIKELY:
        return "This number of clusters is more likely right than wrong."
    if confidence >= WEAK:
        return "This number of clusters is the best guess, but others are possible."
    return "This is a weak answer: the data does not settle the number of clusters."


def advice(n_clusters: int, confidence: float, *, sampled: bool = False) -> list[str]:
    """Return what to try where an answer is weak, or one cluster.

    Examples
    --------
    >>> advice(3, 0.9)
    []
    """
    if n_clusters > 1 and confidence >= WEAK:
        return []
    tried = [
        "Look at the other marked numbers of clusters, or at the candidates, and see which "
        "clusters you can name.",
        "Leave out columns that have nothing to do with the question (--exclude NAME).",
        "Ask for the stability of each cluster (--bootstrap 50).",
    ]
    if not sampled:
        tried.append("--method dp-mixture says how probable each number of clusters is.")
    return tried


def _verdict(
    headline: str, confidence: float | None, lines: list[str], tried: list[str]
) -> dict[str, Any]:
    return {
        "headline": headline,
        "confidence": confidence,
        "confidence_of": "the probability that this number of clusters is right",
        "lines": lines,
        "advice": tried,
    }


def _of_posterior(headline: str, posterior: Posterior, n_clusters: int) -> dict[str, Any]:
    share = posterior.n_clusters_distribution()
    low, high = posterior.n_clusters_interval()
    likeliest = int(share.argmax())
    own = float(share[n_clusters]) if n_clusters < len(share) else 0.0
    span = f"{low} to {high} clusters" if low < high else counted_clusters(low)
    lines = [
        f"There are {span} with 95 % probability; the most probable number is {likeliest} "
        f"({percent(float(share[likeliest]))}).",
        "The clusters shown are the partition of least expected loss over all draws.",
    ]
    found = _verdict(headline, own, lines, advice(n_clusters, own, sampled=True))
    return found | {"confidence_of": "the posterior probability of this number of clusters"}


def _supported(model: Any, path: Any) -> int | None:
    """Return the number of clusters that the data supports, if the user chose another."""
    chosen = getattr(model, "n_clusters", None)
    return path.n_clusters if chosen is not None and path is not None else None


def _rival(path: Any, n_clusters: int) -> int | None:
    if not isinstance(path, PenaltyPath):
        return None
    others = [one.n_clusters for one in path.plateaus if one.score > 0]
    return next((k for k in others if k != n_clusters), None)
