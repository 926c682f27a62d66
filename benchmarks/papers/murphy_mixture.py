"""Murphy, figures 25.7 and 25.8: collapsed Gibbs sampling for a Dirichlet process mixture."""

from pathlib import Path

import numpy as np

from countless import DPMixture
from countless.metrics import adjusted_rand_score
from countless.priors import DirichletProcess, FiniteDirichlet, PartitionPrior
from section import COLORS, Form, Section, bare, new_figure, run

K = 4


def four_gaussians(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(2)
    y = random.randint(K, size=n)
    centers = np.array([[0.0, 0.0], [3.0, 0.5], [0.5, 3.0], [3.0, 3.5]])
    shapes = np.array([[[0.9, 0.3], [0.0, 0.5]], [[0.5, 0.0], [0.3, 0.8]]] * 2)
    rows = np.einsum("nij,nj->ni", shapes[y], random.standard_normal((n, 2)))
    return centers[y] + rows, y


def chain(
    X, prior: PartitionPrior, n_sweeps: int, seed: int, split_merge: bool, start
) -> DPMixture:
    mixture = DPMixture(
        "gaussian",
        prior,
        split_merge=split_merge,
        sample_hyper=False,
        n_chains=1,
        n_sweeps=n_sweeps,
        burn_in=0,
        init=start,
        random_state=seed,
    )
    return mixture.fit(X)


def figure_7(section: Section, folder: Path, n_sweeps: int) -> None:
    """Show draws, and the posterior of k."""
    X, y = four_gaussians(100)
    found = chain(X, DirichletProcess(1.0), n_sweeps, 0, False, "one").posterior_
    figure = new_figure(9.0, 2.5)
    axes = figure.subplots(1, 4)
    for ax, sweep in zip(axes, (n_sweeps // 4, n_sweeps // 2, n_sweeps), strict=False):
        labels = found.labels[0][sweep - 1]
        ax.scatter(*X.T, s=9, c=[COLORS[label % 8] for label in labels])
        bare(ax, f"sweep {sweep}: {labels.max() + 1} clusters")
    k = found.labels[0][n_sweeps // 4 :].max(axis=1) + 1
    values, counts = np.unique(k, return_counts=True)
    axes[3].bar(values, counts / len(k), color=COLORS[1])
    axes[3].set_title("posterior of K", loc="left", fontsize="small")
    words = "Three draws of the partition of 100 points, and the posterior of K."
    section.picture(figure, folder, "murphy-25-7", words)
    agreement = adjusted_rand_score(y, found.labels[0][-1])
    section.values["figure 7"] = {"mode": int(values[counts.argmax()]), "ari": agreement}
    shares = ", ".join(f"{v}: {c / len(k):.2f}" for v, c in zip(values, counts, strict=True))
    section.text(
        f"""Figure 25.7: posterior of K after sweep {n_sweeps // 4}: {shares}; the last draw's
        adjusted Rand index with the four Gaussians of the rows is {agreement:.2f}."""
    )


def figure_8(section: Section, folder: Path, n_starts: int, n_sweeps: int) -> None:
    """Compare log joint densities of the infinite and the finite mixture from random starts."""
    X, _ = four_gaussians(300)
    priors = {"Dirichlet process": (DirichletProcess(1.0), False)}
    priors[f"finite, K = {K}"] = (FiniteDirichlet(1.0, K), False)
    priors["Dirichlet process, split-merge"] = (DirichletProcess(1.0), True)
    figure = new_figure(7.5, 2.9)
    left, right = figure.subplots(1, 2, sharey=True)
    traces = {}
    for color, (name, (prior, split_merge)) in zip(COLORS, priors.items(), strict=False):
        runs = []
        for seed in range(n_starts):
            start = np.random.RandomState(seed).randint(K, size=len(X))
            posterior = chain(X, prior, n_sweeps, seed, split_merge, start).posterior_
            runs.append(np.asarray(posterior.log_joint[0]))
        traces[name] = np.array(runs)
        sweeps = np.arange(1, n_sweeps + 1)
        left.plot(sweeps, traces[name].T, color=color, linewidth=0.5, alpha=0.6)
        low, middle, high = np.quantile(traces[name], (0.25, 0.5, 0.75), axis=0)
        right.plot(sweeps, middle, color=color, label=name)
        right.plot(sweeps, np.array([low, high]).T, color=color, linestyle="--", linewidth=0.7)
    best = max(trace.max() for trace in traces.values())
    for ax, title in ((left, "every start"), (right, "median and quartiles")):
        ax.set(xscale="log", xlabel="sweep", ylim=(best - 180, best + 10))
        ax.set_title(title, loc="left", fontsize="small")
    right.legend(frameon=False, fontsize="x-small")
    words = "Log joint density over sweeps of two mixtures from random starts."
    section.picture(figure, folder, "murphy-25-8", words)
    lines = []
    for name, trace in traces.items():
        near = trace > np.median(trace[:, -1]) - 10
        reached = [int(np.argmax(run)) + 1 if run.any() else n_sweeps + 1 for run in near]
        line = {
            "mixture": name,
            "sweeps until within 10 of the last median, median": float(np.median(reached)),
        }
        line["starts 20 or more below the best, at the end, %"] = 100 * float(
            np.mean(trace[:, -1] < np.median(trace[:, -1]) - 20)
        )
        lines.append(line)
    section.values["figure 8"] = lines
    section.table(lines, 1)


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Figures 25.7 and 25.8: collapsed Gibbs sampling",
        """Figure 25.7: 100 rows in the plane, draws after 50, 100 and 200 sweeps and the posterior
        of K without the first 50: a good clustering is found quickly. Figure 25.8: 300 rows, 20
        random starts: most of the time the infinite mixture converges more rapidly than a finite
        one with K = 4, which is often stuck.""",
    )
    figure_7(section, folder, form.pick(20, 200, 200))
    n_starts, n_sweeps = form.pick((2, 20), (20, 200), (100, 1000))
    figure_8(section, folder, n_starts, n_sweeps)
    section.text(
        f"""Figure 25.8: {n_starts} starts from random labels, {n_sweeps:,} sweeps. The rows are not
        published; ours are four Gaussians. Log joint densities of the two priors differ by a
        constant or so, hence each is compared with its own last median. Ours are normal clusters
        with a normal-inverse-Wishart prior whose parameters are set from the rows and fixed. A
        chain begins with at most 20 warm-up sweeps, with moves that do not leave the posterior
        invariant: they help the finite mixture too, which is why it is stuck less often than in the
        text."""
    )
    return section


if __name__ == "__main__":
    run(make)
