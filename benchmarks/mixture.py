"""Dirichlet process mixtures beside scikit-learn's BayesianGaussianMixture, in one run.

Prints Markdown tables: what a sweep costs beside an iteration, in processor time and one thread;
whole fits with defaults, from one cluster, and how they differ from seed to seed; the three kinds
of inference, in processor time and one thread; one partition of 200 draws; how the cost grows; what
a long run keeps; and Murphy's figure 25.8, a Dirichlet process beside a finite mixture.

    python benchmarks/mixture.py [--quick] [--threads 2] [--json FILE]

Set A has 10,000 rows in 2 dimensions and 10 components, set B 5,000 rows in 16 dimensions and 20;
their covariances differ. *oracle* gives each row to its likeliest true component. The k of a chain
is that of the partition that is found from its draws alone, as ``labels_`` is from all; *bare* is
that of least expected loss, in which rows in doubt may be by themselves.
"""

import argparse
import json
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture
from threadpoolctl import threadpool_limits

from countless import DPMixture
from countless._mcmc.draws import collapse
from countless._mcmc.gibbs import collapsed_sweep
from countless._mcmc.partition_chain import PartitionChain
from countless._mcmc.posterior import Posterior
from countless._mcmc.split_merge import TUNING
from countless.models import Gaussian
from countless.priors import DirichletProcess, FiniteDirichlet, Gamma
from harness import Contestant, ContestantFailed, Limits, machine, markdown_table, measure

Record = dict[str, Any]
TABLES = (
    "sweeps",
    "fits",
    "inferences",
    "seeds",
    "point estimate",
    "growth",
    "long runs",
    "figure 25.8",
)
METHODS = Contestant("mixtures", "mixture_methods.py")
FITS: dict[str, Record] = {
    "DPMixture": {"method": "countless", "settings": {}},
    "BayesianGaussianMixture, 30": {"method": "scikit-learn", "n_components": 30},
    "BayesianGaussianMixture, 50": {"method": "scikit-learn", "n_components": 50},
}


class Planted(NamedTuple):
    """Rows, their true components, and the best that can be told of these."""

    X: np.ndarray
    truth: np.ndarray
    oracle: np.ndarray


def planted(n: int, d: int, k: int, spread: float, seed: int = 0) -> Planted:
    """Draw rows from components of any covariance, as many of each."""
    random = np.random.default_rng(seed)
    means = spread * random.standard_normal((k, d))
    turns = np.linalg.qr(random.standard_normal((k, d, d)))[0]
    roots = turns * np.exp(0.35 * random.standard_normal((k, 1, d)))
    truth = random.permutation(np.arange(n) % k)
    X = means[truth] + np.einsum("nij,nj->ni", roots[truth], random.standard_normal((n, d)))
    logs = [
        -0.5 * (np.linalg.solve(root, (X - mean).T) ** 2).sum(axis=0) - np.linalg.slogdet(root)[1]
        for mean, root in zip(means, roots, strict=True)
    ]
    return Planted(X, truth, np.argmax(logs, axis=0))


def sets(quick: bool) -> dict[str, Planted]:
    smaller = 10 if quick else 1
    return {
        "A": planted(10_000 // smaller, 2, 10, 9.5),
        "B": planted(5_000 // smaller, 16, 20, 1.6),
    }


def least_seconds(function, repeats: int) -> float:
    """Return the least processor time of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def chain_at(data: Planted) -> PartitionChain:
    """Return a chain that has found the components, and settled."""
    model = Gaussian().bind(data.X)
    rows, random = model.rows(data.X), np.random.default_rng(0)
    prior = DirichletProcess(Gamma())
    chain = PartitionChain(model, prior, rows, data.truth, random, n_burn_in=TUNING.warm_up_sweeps)
    for _ in range(TUNING.warm_up_sweeps):
        chain.sweep()
    return chain


def sweep_costs(name: str, data: Planted, repeats: int) -> list[Record]:
    """Return what a sweep costs, of each row once and with all that goes with it."""
    chain = chain_at(data)
    parts = {"iteration, 30": _iteration(data.X, 30), "iteration, 50": _iteration(data.X, 50)}
    whole = least_seconds(chain.sweep, repeats)
    alone = least_seconds(lambda: collapsed_sweep(chain.partition, chain.setting), repeats)
    least = parts["iteration, 30"]
    return [
        {
            "set": name,
            "what": what,
            "ms": 1e3 * seconds,
            "of an iteration with 30": seconds / least,
        }
        for what, seconds in {
            "sweep": alone,
            "with restless rows again, splits, merges and hyperparameters": whole,
            **parts,
        }.items()
    ]


def _iteration(X: np.ndarray, n_components: int) -> float:
    """Return the seconds of one iteration: of six, less one, a fifth."""

    def fit(iterations: int) -> None:
        BayesianGaussianMixture(
            n_components=n_components,
            max_iter=iterations,
            tol=0.0,
            init_params="random_from_data",
            random_state=0,
        ).fit(X)

    return (least_seconds(lambda: fit(6), 3) - least_seconds(lambda: fit(1), 3)) / 5


def whole_fits(
    name: str, data: Planted, limits: Limits, repeat: int, methods: dict[str, Record]
) -> list[Record]:
    """Let every method fit a set in a process of its own."""
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, data.X)
        for title, options in methods.items():
            record: Record = {"set": name, "method": title}
            try:
                found = measure(METHODS, path, options, repeat, limits)
            except ContestantFailed as error:
                records.append({**record, "note": str(error)})
                continue
            record |= {
                "s": found.seconds,
                "passes": found.passes,
                "k": len(np.unique(found.labels)),
                "k of each chain": ", ".join(map(str, found.details.get("k_of_chains", "-"))),
                "bare": ", ".join(map(str, found.details.get("bare_k_of_chains", "-"))),
                "NMI": normalized_mutual_info_score(data.truth, found.labels),
                "oracle": normalized_mutual_info_score(data.truth, data.oracle),
                "s for labels_": found.details.get("seconds_of_estimate"),
                "R-hat": found.details.get("r_hat"),
                "MB more": None if found.extra_bytes is None else found.extra_bytes / 1e6,
                "MB of draws": found.details.get("bytes_of_draws", 0) / 1e6,
            }
            records.append(record)
    return records


def other_seeds(name: str, data: Planted, limits: Limits, n_seeds: int) -> list[Record]:
    """Return how whole fits differ from seed to seed: the median, the least and the most.

    These are none of the seeds that the constants of the sampler were chosen with.
    """
    fits = {
        title: whole_fits(
            name,
            data,
            limits,
            1,
            {str(seed): FITS[title] | {"seed": seed} for seed in range(1_000, 1_000 + n_seeds)},
        )
        for title in ("DPMixture", "BayesianGaussianMixture, 30")
    }
    seconds = np.array([[fit["s"] for fit in of_one] for of_one in fits.values()])
    records: list[Record] = []
    for place, (method, of_one) in enumerate(fits.items()):
        record: Record = {"set": name, "method": method, "seeds": n_seeds}
        for what in ("s", "passes", "k", "NMI"):
            values = [fit[what] for fit in of_one]
            record[what] = "{1:.4g} ({0:.4g} to {2:.4g})".format(
                *np.percentile(values, [0, 50, 100])
            )
        record["seeds in which it is faster"] = int((seconds.argmin(axis=0) == place).sum())
        for title, what in (("chains by their k", "k of each chain"), ("bare", "bare")):
            chains = Counter(k for fit in of_one for k in fit[what].split(", "))
            record[title] = ", ".join(f"{k}: {n}" for k, n in sorted(chains.items()))
        records.append(record)
    return records


def growth(quick: bool, repeats: int) -> list[Record]:
    """Return what a sweep costs as rows, columns and components grow."""
    n = 1_000 if quick else 5_000
    shapes = [(n, 4, 10), (2 * n, 4, 10), (4 * n, 4, 10), (n, 8, 10), (n, 16, 10), (n, 32, 10)]
    shapes += [(n, 4, 20), (n, 4, 40)]
    return [
        {"n": n, "d": d, "k": k, "ms a sweep": 1e3 * least_seconds(chain.sweep, repeats)}
        for n, d, k in shapes
        for chain in [chain_at(planted(n, d, k, 8.0 / np.sqrt(d)))]
    ]


def figure_25_8(quick: bool) -> list[Record]:
    """Return the log joint density along chains, for a Dirichlet process and a finite mixture."""
    data = planted(300, 2, 4, 4.0, seed=1)
    random = np.random.default_rng(0)
    records = []
    sweeps = (1, 5, 20, 100)
    priors = {
        "Dirichlet process": DirichletProcess(1.0),
        "finite, K = 4": FiniteDirichlet(1.0, 4),
    }
    for name, prior in priors.items():
        traces, found = [], []
        for seed in range(5 if quick else 20):
            mixture = DPMixture(
                prior=prior,
                split_merge=False,
                sample_hyper=False,
                init=random.integers(4, size=300),
                n_chains=1,
                n_sweeps=sweeps[-1],
                burn_in=0,
                random_state=seed,
            ).fit(data.X)
            traces.append(mixture.posterior_.log_joint[0])
            found.append(normalized_mutual_info_score(data.truth, mixture.labels_))
        middle = np.percentile(traces, [25, 50, 75], axis=0)
        records.append(
            {"prior": name}
            | {
                f"sweep {at}: median (quartiles)": "{1:.0f} ({0:.0f}, {2:.0f})".format(
                    *middle[:, at - 1]
                )
                for at in sweeps
            }
            | {"NMI, median": float(np.median(found))}
        )
    return records


def long_runs(quick: bool, limits: Limits) -> list[Record]:
    """Return what is kept of runs of several lengths."""
    long = {
        f"{n_sweeps:,} sweeps, thin={thin}": {
            "method": "countless",
            "settings": {"n_sweeps": n_sweeps, "thin": thin, "burn_in": 0, "n_chains": 2},
        }
        for n_sweeps, thin in ((200, 1), (2_000, 1), (2_000, 10))
    }
    return whole_fits("1,000 rows", planted(300 if quick else 1_000, 2, 5, 9.0), limits, 1, long)


def estimates(name: str, data: Planted, n_draws: int, repeats: int) -> list[Record]:
    """Return what one partition of many draws costs, and how near it is to draws and truth."""
    chain = chain_at(data)
    labels = []
    for _ in range(n_draws):
        chain.sweep()
        labels.append(chain.record().labels)
    posterior = Posterior([labels], np.zeros((1, n_draws)))
    draws = posterior.labels[0]
    records = []
    for loss in ("vi", "binder"):
        least = min(posterior.expected_loss(draw, loss) for draw in draws[:: max(1, n_draws // 50)])
        tracemalloc.start()
        found = posterior.point_estimate(loss, 0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        seconds = least_seconds(lambda loss=loss: posterior.point_estimate(loss, 0), repeats)
        records.append(
            {
                "set": name,
                "loss": loss,
                "draws": n_draws,
                "distinct rows": len(collapse(draws)[1]),
                "CPU s": seconds,
                "MB more": peak / 1e6,
                "k": int(found.max()) + 1,
                "expected loss": posterior.expected_loss(found, loss),
                "of a draw, least": least,
                "NMI": normalized_mutual_info_score(data.truth, found),
                "NMI of draws, mean": float(
                    np.mean([normalized_mutual_info_score(data.truth, d) for d in draws[::20]])
                ),
                "oracle": normalized_mutual_info_score(data.truth, data.oracle),
            }
        )
    return records


def inferences(name: str, data: Planted, repeats: int) -> list[Record]:
    """Compare the ways to fit a mixture, in processor time, with scikit-learn's."""
    methods = {
        **{
            f"inference='{inference}'": DPMixture(inference=inference, random_state=0, n_jobs=1)
            for inference in ("variational", "map", "mcmc")
        },
        **{
            f"BayesianGaussianMixture, {k}": BayesianGaussianMixture(
                n_components=k, weight_concentration_prior=1.0, max_iter=500, random_state=0
            )
            for k in (30, 50)
        },
    }
    records = []
    for title, method in methods.items():
        seconds = least_seconds(partial(method.fit, data.X), repeats)
        labels = method.predict(data.X)
        records.append(
            {
                "set": name,
                "method": title,
                "s": seconds,
                "rounds": method.n_iter_,
                "k": len(np.unique(labels)),
                "NMI": normalized_mutual_info_score(data.truth, labels),
                "oracle": normalized_mutual_info_score(data.truth, data.oracle),
                "lower bound": getattr(method, "lower_bound_", None),
            }
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one fit")
    parser.add_argument("--json", type=Path, help="write the records here, too")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    options = parser.parse_args()
    quick, limits = options.quick, Limits(options.threads, options.timeout)
    makers = {
        "sweeps": lambda: [
            record
            for name, data in sets(quick).items()
            for record in sweep_costs(name, data, 3 if quick else 15)
        ],
        "fits": lambda: [
            record
            for name, data in sets(quick).items()
            for record in whole_fits(name, data, limits, 1 if quick else 2, FITS)
        ],
        "inferences": lambda: [
            record
            for name, data in sets(quick).items()
            for record in inferences(name, data, 2)  # the first may compile
        ],
        "seeds": lambda: other_seeds("A", sets(quick)["A"], limits, 3 if quick else 10),
        "point estimate": lambda: [
            record
            for name, data in sets(quick).items()
            for record in estimates(name, data, 50 if quick else 200, 1 if quick else 3)
        ],
        "growth": lambda: growth(quick, 3 if quick else 7),
        "long runs": lambda: long_runs(quick, limits),
        "figure 25.8": lambda: figure_25_8(quick),
    }
    about = machine(options.threads)
    print(", ".join(f"{key}: {value}" for key, value in about.items()), flush=True)
    tables = {}
    for title in options.tables:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tables[title] = makers[title]()
        print(f"\n## {title}\n\n{markdown_table(tables[title])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, **tables}, indent=1, default=float))


if __name__ == "__main__":
    main()
