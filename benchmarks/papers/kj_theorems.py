"""Kulis and Jordan, theorems 3.1, 4.1, 5.2 and 5.3, as numbers."""

from pathlib import Path

import numpy as np
from sklearn.metrics import pairwise_distances

from countless import DPMeans, GraphDPMeans, HDPMeans, farthest_first_penalty, hdp_penalties
from data import load
from kj_hdp import N_GLOBAL, N_LOCAL, draw
from section import COLORS, Form, Section, new_figure, run


def rises(history: np.ndarray) -> float:
    """Return the largest rise between passes, as a share of the first objective."""
    return float(max(np.diff(history).max(initial=0.0), 0.0) / history[0])


def relaxation(X: np.ndarray, penalty: float, random: np.random.RandomState) -> dict[str, float]:
    """Compare all eigenvectors above the penalty with other orthonormal matrices (theorem 5.2)."""
    K = X @ X.T
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]

    def relaxed(Y: np.ndarray) -> float:
        return float(np.trace(Y.T @ K @ Y) - penalty * Y.shape[1])

    k = int((values > penalty).sum())
    others = [np.linalg.qr(random.standard_normal((len(X), m)))[0] for m in range(1, 2 * k + 2)]
    return {
        "eigenvalues above the penalty": k,
        "relaxed objective": relaxed(vectors[:, :k]),
        "one eigenvector less": relaxed(vectors[:, : k - 1]),
        "one more": relaxed(vectors[:, : k + 1]),
        "best of random orthonormal matrices": max(relaxed(Y) for Y in others),
        "lower bound of the DP-means objective": float(np.trace(K)) - relaxed(vectors[:, :k]),
        "objective of the refined fit": float(DPMeans(penalty).fit(X).objective_),
    }


def kernel_and_cut(A: np.ndarray, labels: np.ndarray, sigma: float) -> tuple[float, float, float]:
    """Return the weighted kernel k-means objective, its formula by theorem 5.3, and the cut."""
    degree = A.sum(axis=1)
    scaled = A / np.outer(degree, degree)
    K = sigma * np.diag(1 / degree) + scaled
    objective, cut = float(degree @ np.diag(K)), 0.0
    k = int(labels.max()) + 1
    for cluster in range(k):
        of = labels == cluster
        w = degree[of]
        objective -= float(w @ K[np.ix_(of, of)] @ w / w.sum())
        cut += float(A[of][:, ~of].sum() / w.sum())
    trace = float((np.diag(A) / degree).sum())
    return objective, sigma * len(A) + trace - (sigma + 1) * k + cut, cut


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Theorems 3.1, 4.1, 5.2 and 5.3",
        """Algorithms 1 and 2 never raise their objectives; all eigenvectors above the penalty
        maximise the relaxed objective; weighted kernel k-means is a normalised cut.""",
    )
    random = np.random.RandomState(0)
    figure = new_figure(7.5, 2.7)
    left, right = figure.subplots(1, 2)
    lines, tables = [], form.pick(("wine",), ("wine", "iris", "digits"), ("wine", "iris", "digits"))
    for color, name in zip(COLORS, tables, strict=False):
        X = load(name).numbers()
        model = DPMeans(farthest_first_penalty(X, 6), refine=False).fit(X)
        history = np.asarray(model.objective_history_)
        left.plot(
            np.arange(1, len(history) + 1),
            history / history[0],
            marker=".",
            color=color,
            label=name,
        )
        line = {"theorem": "3.1, Algorithm 1", "rows": name, "passes": model.n_iter_}
        lines.append(line | {"largest rise of the objective": rises(history)})
    for seed in range(form.pick(1, 3, 10)):
        drawn = draw(seed)
        local, everywhere = hdp_penalties(drawn.X, drawn.sets, n_local=N_LOCAL, n_global=N_GLOBAL)
        model = HDPMeans(local, everywhere, refine=False).fit(drawn.X, groups=drawn.sets)
        history = np.asarray(model.objective_history_)
        right.plot(
            np.arange(1, len(history) + 1), history / history[0], marker=".", color=COLORS[seed % 8]
        )
        line = {"theorem": "4.1, Algorithm 2", "rows": f"draw {seed} of section 6.3"}
        line |= {"passes": model.n_iter_, "largest rise of the objective": rises(history)}
        lines.append(line)
    left.legend(frameon=False, fontsize="x-small")
    for ax, title in ((left, "Algorithm 1"), (right, "Algorithm 2")):
        ax.set(xlabel="pass")
        ax.set_title(f"objective, {title}", loc="left", fontsize="small")
    section.picture(figure, folder, "kj-theorems", "Objectives fall with every pass.")
    rise = "largest rise of the objective"
    section.values["rises"] = [line[rise] for line in lines]
    section.table([line | {rise: f"{line[rise]:.2g}"} for line in lines])
    X = load("wine").numbers()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = relaxation(X, 150.0, random)
    section.values["relaxation"] = found
    section.text("A rise between two passes is a share of the first objective.")
    section.text("Theorem 5.2, on the wines, standardised, at penalty 150:")
    section.table(
        [{"tr Y'(K - penalty I)Y": name, "value": value} for name, value in found.items()]
    )
    A = np.exp(-np.square(pairwise_distances(X)))
    np.fill_diagonal(A, 0.0)
    A += 1e-3 * (1 - np.eye(len(A)))
    worst = 0.0
    for k in range(1, form.pick(4, 30, 100)):
        labels = np.unique(random.randint(k, size=len(A)), return_inverse=True)[1]
        objective, formula, _ = kernel_and_cut(A, labels, sigma=3.0)
        worst = max(worst, abs(objective - formula) / objective)
    graph = GraphDPMeans(-0.5).fit(A)
    cut = kernel_and_cut(A, graph.labels_, 3.0)[2]
    section.values |= {"theorem 5.3": worst, "cut": [float(graph.cut_), cut]}
    section.text(
        f"""Theorem 5.3, on a kernel graph of the same wines: over random partitions into 1 to {k}
        clusters, with sigma 3, the largest relative difference between the weighted kernel k-means
        objective and its formula is {worst:.1e}. The cut that `GraphDPMeans` reports at penalty
        -0.5 is {graph.cut_:.6f} with {graph.n_clusters_} clusters, and {cut:.6f} by the definition.
        As one cluster has cut 0, useful penalties of the cut are between -1 and 0."""
    )
    return section


if __name__ == "__main__":
    run(make)
