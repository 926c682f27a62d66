"""Sections of a report that depend on what the model has: path, candidates, posterior, views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from countless._mcmc.crosscat.posterior import CrossCatPosterior
from countless._mcmc.posterior import Posterior
from countless._path.penalty import ItemMerges, PenaltyPath
from countless._tree.gap import TreeCut
from countless.edited_clustering import EditedClustering


@dataclass(frozen=True)
class SectionLimits:
    """How much the sections of the page show."""

    clusters: int = 150  # the largest number that the slider offers
    similar_rows: int = 120  # of a similarity matrix
    dependent_columns: int = 60  # of a dependence matrix
    draws: int = 12  # to choose from
    drawn_labels: int = 200_000  # of all draws


SECTIONS = SectionLimits()
NOT_LABELLED = -2


def path_section(path: Any, model: Any) -> dict[str, Any] | None:
    """Return the penalties that give each number of clusters, and the marked numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from countless import DPMeans
    >>> model = DPMeans(random_state=0).fit(load_iris().data)
    >>> section = path_section(model.path_, model)
    >>> section["marked"][0]["k"], section["called"]
    (2, 'price of a cluster')
    """
    if not isinstance(path, PenaltyPath):
        return None
    highest = min(SECTIONS.clusters, len(path.merges().children) + 1)
    found = {k: ends for k in range(1, highest + 1) if (ends := path.interval(k)) is not None}
    marked = [
        {"k": one.n_clusters, "score": _finite(one.score), "width": _finite(one.width)}
        for place, one in enumerate(path.plateaus)
        if (place == 0 or one.score > 0) and one.n_clusters in found
    ]
    return {
        "k": list(found),
        "low": [_digits(low) for low, _ in found.values()],
        "high": [_digits(high) for _, high in found.values()],
        "marked": marked[:6],
        "called": "height of the cut" if isinstance(path, TreeCut) else "price of a cluster",
    }


def tree_section(model: Any, path: Any, merges: ItemMerges | None) -> dict[str, Any] | None:
    """Return the merges of micro-clusters."""
    if merges is None or isinstance(model, EditedClustering):
        return None
    return {
        "children": merges.children.tolist(),
        "height": [_digits(height) for height in merges.height],
        "refined": {str(k): labels.tolist() for k, labels in sorted(merges.refined.items())},
        "scale": "height" if isinstance(path, TreeCut) else "cost of the merge",
        "predicts": merges.centers is not None,
    }


def labelings(model: Any, labels: np.ndarray, shown: np.ndarray) -> list[dict[str, Any]]:
    """Return other clusterings of the rows: of candidates, posterior draws, or views.

    Examples
    --------
    >>> from countless import DPMeans
    >>> labelings(DPMeans(), np.zeros(3, dtype=int), np.arange(3))
    []
    """
    found = []
    for one in getattr(model, "candidates_", []):
        own = getattr(model, "candidate_labels_", {}).get(one.method)
        if own is not None and one.method != model.best_method_:
            whole = np.full(len(labels), NOT_LABELLED)
            whole[model.compared_rows_] = own
            found.append(_labeling("candidate", one.method, one.note, whole, labels, shown))
    posterior = getattr(model, "posterior_", None)
    if isinstance(posterior, Posterior) and posterior.labels.shape[2] == len(labels):
        draws = posterior.labels.reshape(-1, len(labels))
        n_draws = min(SECTIONS.draws, len(draws), max(1, SECTIONS.drawn_labels // len(shown)))
        if len(draws) > 1:
            for at in np.linspace(0, len(draws) - 1, n_draws).astype(int):
                name = f"draw {at + 1} of {len(draws)}"
                found.append(_labeling("draw", name, "", draws[at], labels, shown))
    for number, view in enumerate(getattr(model, "views_", [])[: SECTIONS.draws], start=1):
        columns = ", ".join(map(str, view.columns[:8]))
        more = len(view.columns) - 8
        note = columns + (f" and {more} more" if more > 0 else "")
        found.append(_labeling("view", f"view {number}", note, view.labels, labels, shown))
    return found


def _labeling(
    kind: str, name: str, note: str, own: np.ndarray, labels: np.ndarray, shown: np.ndarray
) -> dict[str, Any]:
    matched = match_labels(np.asarray(own).astype(np.int64), labels)
    known = matched != NOT_LABELLED
    return {
        "kind": kind,
        "name": name,
        "note": note,
        "labels": matched[shown].tolist(),
        "n_clusters": len(np.unique(matched[matched >= 0])),
        "differs": float((matched[known] != labels[known]).mean()) if known.any() else 0.0,
    }


def match_labels(own: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rename clusters after those of another clustering that they share most rows with.

    Negative labels stay. A cluster without a counterpart gets a number beyond the others.

    Examples
    --------
    >>> match_labels(np.array([0, 0, 1, 2]), np.array([1, 1, 0, 0])).tolist()
    [1, 1, 0, 2]
    """
    both = (own >= 0) & (labels >= 0)
    clusters = np.unique(own[own >= 0])
    others = np.unique(labels[labels >= 0])
    table = np.zeros((len(clusters), len(others)))
    places = np.searchsorted(clusters, own[both]), np.searchsorted(others, labels[both])
    np.add.at(table, places, 1)
    here, there = linear_sum_assignment(-table)
    name = {int(clusters[a]): int(others[b]) for a, b in zip(here, there, strict=True)}
    unused = int(labels.max(initial=-1)) + 1
    for cluster in clusters.tolist():
        if cluster not in name:
            name[cluster] = unused
            unused += 1
    renamed = np.array([name[int(cluster)] for cluster in clusters], dtype=np.int64)
    result = own.copy()
    result[own >= 0] = renamed[np.searchsorted(clusters, own[own >= 0])]
    return result


def candidates_section(model: Any) -> list[dict[str, Any]] | None:
    """Return the candidates of `AutoClustering` as a table."""
    candidates = getattr(model, "candidates_", None)
    if candidates is None:
        return None
    chosen = getattr(model, "best_method_", None)
    return [
        {
            "method": one.method,
            "n_clusters": one.n_clusters,
            "evidence": _finite(one.evidence),
            "agreement": _finite(one.agreement),
            "seconds": round(one.seconds, 2),
            "note": one.note,
            "chosen": one.method == chosen,
        }
        for one in candidates
    ]


def posterior_section(model: Any, labels: np.ndarray) -> dict[str, Any] | None:
    """Return the posterior of the number of clusters, and the similarity of some rows."""
    posterior = getattr(model, "posterior_", None)
    if not isinstance(posterior, Posterior) or posterior.n_clusters.size == 1:
        return None
    share = posterior.n_clusters_distribution()
    r_hat, size = posterior.diagnostics()["n_clusters"]
    n_chains, n_draws, n_rows = posterior.labels.shape
    section = {
        "k": np.flatnonzero(share).tolist(),
        "probability": [round(float(one), 4) for one in share[share > 0]],
        "interval": list(map(int, posterior.n_clusters_interval())),
        "n_chains": n_chains,
        "n_draws": n_draws,
        "r_hat": _finite(r_hat),
        "effective_size": _finite(size),
        "similarity": None,
    }
    if n_rows == len(labels):
        chosen = np.random.default_rng(0).permutation(n_rows)[: SECTIONS.similar_rows]
        chosen = chosen[np.lexsort((chosen, labels[chosen]))]
        together = np.rint(100 * posterior.similarity(chosen, chosen)).astype(int)
        section["similarity"] = {
            "labels": labels[chosen].tolist(),
            "rows": (chosen + 1).tolist(),
            "percent": together.tolist(),
        }
    return section


def dependence_section(model: Any) -> dict[str, Any] | None:
    """Return the dependence of columns and their views, for CrossCat."""
    posterior = getattr(model, "posterior_", None)
    if not isinstance(posterior, CrossCatPosterior):
        return None
    names = list(model.column_names_)
    place = {name: at for at, name in enumerate(names)}
    view_of = [(number, place[c]) for number, view in enumerate(model.views_) for c in view.columns]
    order = [at for _, at in sorted(view_of)][: SECTIONS.dependent_columns]
    dependence = np.rint(100 * posterior.dependence()[np.ix_(order, order)]).astype(int)
    return {
        "columns": [str(names[at]) for at in order],
        "n_columns": len(names),
        "percent": dependence.tolist(),
        "views": [
            {"columns": [str(c) for c in view.columns], "n_clusters": int(view.n_clusters)}
            for view in model.views_
        ],
    }


def stability_section(stability: Any, labels: np.ndarray) -> dict[str, Any] | None:
    """Return how well each cluster of the model is recovered in bootstrap resamples."""
    if stability is None:
        return None
    # Its clusters are numbered by first appearance.
    first = {int(own): int(label) for own, label in zip(stability.labels, labels, strict=True)}
    counts = np.bincount(stability.n_clusters)
    return {
        "n_draws": len(stability.draws),
        "agreement": round(float(stability.agreement.mean()), 4),
        "clusters": [
            {"cluster": first[own], "jaccard": round(float(value), 4)}
            for own, value in enumerate(stability.stability)
        ],
        "k": np.flatnonzero(counts).tolist(),
        "share": [round(float(one), 4) for one in (counts / counts.sum())[counts > 0]],
    }


def groups_section(model: Any) -> list[dict[str, Any]] | None:
    """Return the number of clusters of each data set, where several share clusters."""
    if not hasattr(model, "n_local_clusters_"):
        return None
    pairs = zip(model.groups_, model.n_local_clusters_, strict=True)
    return [{"name": str(name), "n_clusters": int(n)} for name, n in pairs]


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), 4)


def _digits(value: float) -> float | None:
    """Return a number with six significant digits; None if it is infinite."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
