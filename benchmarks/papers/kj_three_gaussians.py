"""Kulis and Jordan, section 6.2 and figures 2a to 2c: three Gaussians."""

from pathlib import Path

import numpy as np

from countless import DPMeans, DPMixture, farthest_first_penalty, penalty_path
from countless.metrics import normalized_mutual_info_score as nmi
from countless.models import FixedGaussian, InverseGamma
from countless.priors import DirichletProcess, Gamma
from published import KJ_THREE_GAUSSIANS as THEIRS
from section import COLORS, Form, Section, bare, new_figure, run

CENTERS, SPREAD = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 8.7]]), 2.05
PRIOR_VARIANCE = 100.0  # the paper's rho


def three_gaussians(seed: int, n_each: int = 100) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    y = np.repeat(np.arange(3), n_each)
    return CENTERS[y] + SPREAD * random.standard_normal((len(y), 2)), y


def hundred_runs(X: np.ndarray, y: np.ndarray, n_runs: int) -> dict[str, float]:
    """Run Algorithm 1 on the rows in random orders, at the penalty of the farthest-first rule."""
    penalty = farthest_first_penalty(X, 3)
    found, passes, k = [], [], []
    for seed in range(n_runs):
        order = np.random.RandomState(seed).permutation(len(X))
        model = DPMeans(penalty, refine=False).fit(X[order])
        found.append(nmi(y[order], model.labels_))
        passes.append(model.n_iter_)
        k.append(model.n_clusters_)
    return {
        "runs": n_runs,
        "NMI, mean": float(np.mean(found)),
        "passes, most": int(max(passes)),
        "runs with 3 clusters, %": 100 * float(np.mean(np.array(k) == 3)),
    }


def gibbs(X: np.ndarray, prior: DirichletProcess, n_sweeps: int) -> np.ndarray:
    """Return the labels of all sweeps from one cluster, without burn-in."""
    mixture = DPMixture(
        FixedGaussian(InverseGamma(2.0, 1.0), PRIOR_VARIANCE, mean=0.0),
        prior,
        sampler="uncollapsed",
        split_merge=False,
        n_chains=1,
        n_sweeps=n_sweeps,
        burn_in=0,
        random_state=0,
    )
    return mixture.fit(X).posterior_.labels[0]


def validated_alpha(n_sweeps: int) -> float:
    """Choose alpha on another draw, by the score of the second half of its sweeps."""
    X, y = three_gaussians(1)

    def score(alpha: float) -> float:
        draws = gibbs(X, DirichletProcess(alpha), n_sweeps)[n_sweeps // 2 :]
        return float(np.mean([nmi(y, draw) for draw in draws]))

    return max((1e-3, 1e-2, 0.1, 1.0, 10.0), key=score)


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figures 2a to 2c and section 6.2: three Gaussians",
        f"""DP-means ends within {THEIRS["passes"]} passes in each of 100 runs, always with
        {THEIRS["k"]} clusters and with a mean NMI of {THEIRS["nmi"]}. Two Gibbs samplers from one
        cluster need thousands of sweeps: with alpha chosen by validation some
        {THEIRS["gibbs_sweeps_to_3"]:,} until there are three clusters; with alpha learned they are
        good near sweep {THEIRS["gibbs_k_grows_after"]:,}, and then more clusters appear. A wide
        interval of penalties gives three clusters.""",
    )
    X, y = three_gaussians(0)
    runs = hundred_runs(X, y, form.pick(5, 100, 100))
    section.values["runs"] = runs
    names = {"NMI, mean": THEIRS["nmi"], "passes, most": THEIRS["passes"]}
    names["runs with 3 clusters, %"] = 100.0
    section.table([{"of Algorithm 1": n, "theirs": t, "ours": runs[n]} for n, t in names.items()])
    n_sweeps = form.pick(30, 1000, 5000)
    alpha = validated_alpha(form.pick(10, 100, 1000))
    chains = {
        "learned alpha": gibbs(X, DirichletProcess(alpha=Gamma(1.0, 1.0)), n_sweeps),
        f"alpha {alpha:g}, by validation": gibbs(X, DirichletProcess(alpha), n_sweeps),
    }
    figure = new_figure(9.0, 2.9)
    left, middle, right = figure.subplots(1, 3)
    for kind in range(3):
        left.scatter(*X[y == kind].T, s=6, color=COLORS[kind])
    bare(left, "a. the rows")
    lines = []
    for color, (name, draws) in zip(COLORS, chains.items(), strict=False):
        scores = np.array([nmi(y, draw) for draw in draws])
        k = draws.max(axis=1) + 1
        middle.plot(np.arange(1, len(scores) + 1), scores, label=name, color=color, linewidth=0.7)
        reached = np.flatnonzero(scores > 0.8)
        lines.append(
            {
                "Gibbs sampling": name,
                "first sweep with NMI above .8": int(reached[0]) + 1 if len(reached) else "none",
                "NMI, second half": float(scores[len(scores) // 2 :].mean()),
                "k, second half": float(k[len(k) // 2 :].mean()),
            }
        )
    middle.set(xscale="log", xlabel="sweep", ylim=(0, 1))
    middle.axhline(runs["NMI, mean"], color="#222222", linestyle=":", linewidth=1, label="DP-means")
    middle.legend(frameon=False, fontsize="x-small", loc="lower right")
    middle.set_title("b. NMI by sweep", loc="left", fontsize="small")
    penalties = np.geomspace(5.0, 20_000.0, form.pick(12, 60, 200))
    plateau = {}
    for color, (name, refine) in zip(
        COLORS, {"Algorithm 1": False, "refined": True}.items(), strict=False
    ):
        k = np.array([DPMeans(at, refine=refine).fit(X).n_clusters_ for at in penalties])
        right.step(penalties, k, color=color, where="mid", label=name)
        plateau[name] = [float(at) for at in penalties[k == 3]]
    right.axhline(3, color="#aaaaaa", linewidth=0.7)
    right.set(xscale="log", yscale="log", xlabel="penalty")
    right.legend(frameon=False, fontsize="x-small")
    right.set_title("c. number of clusters", loc="left", fontsize="small")
    chosen = penalty_path(X, random_state=0).n_clusters
    section.values |= {"plateau": plateau, "path": chosen, "gibbs": lines}
    ends = {
        name: f"{min(at):.3g} to {max(at):.3g}" if at else "none" for name, at in plateau.items()
    }
    words = "Three clouds of points; NMI of two Gibbs samplers over sweeps; k against the penalty."
    section.picture(figure, folder, "kj-figure-2abc", words)
    section.table(lines)
    section.text(
        f"""The paper does not give its Gaussians: ours have means at the corners of a triangle of
        side 10 and standard deviation {SPREAD}, at which Algorithm 1 is about as right as theirs.
        The sampler is Neal's algorithm 2, with the paper's priors: variance inverse-gamma, prior
        variance {PRIOR_VARIANCE:g}. How many sweeps a chain needs depends on the prior of the
        variance, which the paper does not give; ours has shape 2 and scale 1. Algorithm 1 gives
        three clusters at penalties from {ends["Algorithm 1"]}, the refined search from
        {ends["refined"]}: it merges clusters that Algorithm 1 opened too early, and its penalties
        are sums over the rows of a cluster. `penalty_path`, which is told nothing, chooses
        {chosen}."""
    )
    return section


if __name__ == "__main__":
    run(make)
