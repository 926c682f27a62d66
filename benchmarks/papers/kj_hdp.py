"""Kulis and Jordan, section 6.3 with figures 1 and 2d: data sets that share clusters."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from countless import DPMeans, HDPMeans, farthest_first_penalty, hdp_penalties
from countless.metrics import normalized_mutual_info_score as nmi
from published import KJ_HDP, KJ_HDP_CLUSTERS
from section import COLORS, Form, Section, bare, new_figure, run

N_SETS, N_EACH, N_GLOBAL, N_LOCAL = 50, 25, 15, 5
NEAR = 0.01  # how near to the paper's k-means a draw is as hard as theirs


class Draw(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    sets: np.ndarray


def draw(seed: int) -> Draw:
    """Draw 50 data sets of 25 rows, each from 5 of 15 Gaussians in the unit square."""
    random = np.random.RandomState(seed)
    centers = random.uniform(size=(N_GLOBAL, 2))
    y = [np.repeat(random.choice(N_GLOBAL, N_LOCAL, replace=False), 5) for _ in range(N_SETS)]
    y = np.concatenate(y)
    X = centers[y] + 0.1 * random.standard_normal((len(y), 2))
    return Draw(X, y, np.repeat(np.arange(N_SETS), N_EACH))


def mean_nmi(drawn: Draw, labels: np.ndarray) -> float:
    rows = drawn.sets == np.arange(N_SETS)[:, None]
    return float(np.mean([nmi(drawn.y[of], labels[of]) for of in rows]))


def k_means(X: np.ndarray, k: int) -> np.ndarray:
    return KMeans(k, n_init=3, random_state=0).fit(X).labels_


def algorithm_1(X: np.ndarray, k: int) -> np.ndarray:
    return DPMeans(farthest_first_penalty(X, k), refine=False).fit(X).labels_


def each(fit: Callable[[np.ndarray, int], np.ndarray], drawn: Draw) -> np.ndarray:
    """Cluster each data set by itself."""
    labels = np.empty(len(drawn.X), dtype=np.int64)
    for j in range(N_SETS):
        labels[drawn.sets == j] = fit(drawn.X[drawn.sets == j], N_LOCAL)
    return labels


def scores(drawn: Draw, form: Form) -> dict[str, tuple[float, float, float]]:
    """Return NMI, global and local clusters (per data set) of everybody."""
    X, sets = drawn.X, drawn.sets
    local, everywhere = hdp_penalties(X, sets, n_local=N_LOCAL, n_global=N_GLOBAL)
    hard = {
        "hard HDP": HDPMeans(local, everywhere, refine=False),
        "hard HDP, a third of the global penalty": HDPMeans(local, everywhere / 3, refine=False),
    }
    if form.name != "tiny":
        hard["hard HDP, refined"] = HDPMeans(local, everywhere, random_state=0)
        hard["hard HDP, 'auto'"] = HDPMeans(random_state=0)
    flat = {
        "k-means, all rows": k_means(X, N_GLOBAL),
        "DP-means, all rows": algorithm_1(X, N_GLOBAL),
        "k-means, each data set": each(k_means, drawn),
        "DP-means, each data set": each(algorithm_1, drawn),
    }
    found = {name: (mean_nmi(drawn, labels), np.nan, np.nan) for name, labels in flat.items()}
    for name, model in hard.items():
        model.fit(X, groups=sets)
        k = float(model.n_clusters_), float(model.n_local_clusters_.mean())
        found[name] = (mean_nmi(drawn, model.labels_), *k)
    return found


def as_hard_as_theirs(count: int) -> list[Draw]:
    """Return the first draws on which k-means on all rows does as in the paper."""
    near = (
        one
        for one in map(draw, itertools.count())
        if abs(mean_nmi(one, k_means(one.X, N_GLOBAL)) - KJ_HDP["k-means, all rows"]) <= NEAR
    )
    return list(itertools.islice(near, count))


def picture(drawn: Draw):
    """Draw three data sets: their local clusters in the colours of the global ones."""
    local, everywhere = hdp_penalties(drawn.X, drawn.sets, n_local=N_LOCAL, n_global=N_GLOBAL)
    model = HDPMeans(local, everywhere / 3, refine=False).fit(drawn.X, groups=drawn.sets)
    figure = new_figure(9.0, 2.6)
    axes = figure.subplots(1, 4, sharex=True, sharey=True)
    for j, ax in enumerate(axes[:3]):
        of = drawn.sets == j
        for label in np.unique(model.labels_[of]):
            color = COLORS[label % len(COLORS)]
            ax.scatter(*drawn.X[of & (model.labels_ == label)].T, s=14, color=color)
            ax.scatter(*model.cluster_centers_[label], s=70, color=color, marker="x")
        bare(ax, f"data set {j + 1}")
    axes[3].scatter(*drawn.X.T, s=2, c=[COLORS[v % len(COLORS)] for v in model.labels_])
    axes[3].scatter(*model.cluster_centers_.T, s=50, color="#222222", marker="x")
    bare(axes[3], "all rows, global means")
    return figure


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figures 1 and 2d and section 6.3: the hard Gaussian HDP",
        f"""50 data sets of 25 rows, each from 5 of 15 Gaussians; one draw. The hard HDP finds
        {KJ_HDP_CLUSTERS["global"]} global clusters and {KJ_HDP_CLUSTERS["local"]} local ones in
        each data set. NMI is averaged over data sets. Figure 1 shows how local clusters of several
        data sets share a global mean, figure 2d one of the data sets.""",
    )
    n_draws = form.pick((1, 1), (3, 2), (20, 10))
    draws = [draw(seed) for seed in range(n_draws[0])]
    alike = as_hard_as_theirs(n_draws[1]) if form.name != "tiny" else []
    runs, runs_alike = [scores(one, form) for one in draws], [scores(one, form) for one in alike]
    lines = []
    for name in runs[0]:
        mean = np.mean([run[name] for run in runs], axis=0)
        line = {"method": name, "theirs": KJ_HDP.get(name), "ours, NMI": mean[0]}
        if runs_alike:
            line["ours, on draws as hard as theirs"] = float(
                np.mean([run[name][0] for run in runs_alike])
            )
        if not np.isnan(mean[1]):
            line |= {"global clusters": round(mean[1], 1), "local clusters": round(mean[2], 1)}
        lines.append(line)
        section.values[name] = {"nmi": mean[0], "global": mean[1], "local": mean[2]}
        section.values[name]["nmi alike"] = line.get("ours, on draws as hard as theirs")
    words = "Three small data sets with local clusters in the colours of shared global means."
    section.picture(picture(alike[0] if alike else draws[0]), folder, "kj-figure-1-2d", words)
    section.table(lines)
    hard, third = (
        section.values[f"hard HDP{end}"]["global"] for end in ("", lines[5]["method"][8:])
    )
    section.text(
        f"""Means of {n_draws[0]} draws, and of the first {n_draws[1]} draws on which k-means on all
        rows does as in the paper (within {NEAR}): draws differ, as the 15 centers do, and theirs is
        an easy one. The paper says of the global penalty only that distances of points are replaced
        with *sums of distances of points in a data set to elements of T*. Read as in
        `hdp_penalties` (each row at the nearest element of T; in each round the farthest data set
        adds its farthest row) it leads to {hard:.1f} global clusters; a third of it leads to
        {third:.1f}, about as many as theirs. Read as one element of T at a time, the scatter within
        data sets dominates and one global cluster remains."""
    )
    return section


if __name__ == "__main__":
    run(make)
