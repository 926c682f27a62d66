"""Murphy's algorithms to the letter where the library's differ: sections 25.2.4 and 25.5.2."""

from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import KMeans

from countless import DivisiveClustering, DPMixture
from countless.metrics import adjusted_rand_score
from countless.models import FixedGaussian
from countless.priors import DirichletProcess
from data import load
from section import Form, Section, run

ALPHA = 0.3


def diana_split(D: np.ndarray, group: np.ndarray, off: int) -> tuple[np.ndarray, np.ndarray]:
    """Split a group by dissimilarity analysis; averages within divide by n - off.

    ``off=0`` is equation 25.52 to the letter, ``off=1`` leaves the row itself out, as R does.
    """
    stay, leave = list(group), []
    while len(stay) > 1:
        within = D[np.ix_(stay, stay)].sum(axis=1) / (len(stay) - off)
        between = D[np.ix_(stay, leave)].mean(axis=1) if leave else np.zeros(len(stay))
        gain = within - between
        best = int(gain.argmax())
        if leave and gain[best] <= 0:
            break
        leave.append(stay.pop(best))
    return np.array(stay), np.array(leave)


def largest_first(split, size, n: int, k: int) -> np.ndarray:
    """Split the group of the largest size again and again until there are k."""
    groups = [np.arange(n)]
    while len(groups) < k:
        groups.sort(key=size)
        groups += split(groups.pop())
    labels = np.empty(n, dtype=np.int64)
    for label, group in enumerate(groups):
        labels[group] = label
    return labels


def gibbs_25_1(X, variance, prior_variance, alpha, n_sweeps: int, fixed: bool) -> np.ndarray:
    """Run algorithm 25.1 on one column, in random or fixed order; return k after each sweep."""
    random = np.random.RandomState(0)
    z = np.zeros(len(X), dtype=np.int64)
    k = []
    for _ in range(n_sweeps):
        for i in range(len(X)) if fixed else random.permutation(len(X)):
            z[i] = -1
            known, z[z >= 0] = np.unique(z[z >= 0], return_inverse=True)
            count = np.bincount(z[z >= 0], minlength=len(known)).astype(float)
            total = np.bincount(z[z >= 0], X[z >= 0], minlength=len(known))
            count, total = np.append(count, 0.0), np.append(total, 0.0)
            precision = 1 / prior_variance + count / variance
            spread = variance + 1 / precision
            away = X[i] - total / variance / precision
            weight = (
                np.append(count[:-1], alpha) * np.exp(-0.5 * away**2 / spread) / np.sqrt(spread)
            )
            z[i] = random.choice(len(weight), p=weight / weight.sum())
        k.append(len(np.unique(z)))
    return np.array(k)


def of_trees(names: tuple[str, ...]) -> list[dict]:
    """Compare the literal divisions with the library's, at the number of classes."""
    lines = []
    for name in names:
        table = load(name)
        X, k = table.numbers(), len(np.unique(table.y))
        D = squareform(pdist(X))

        def diameter(group, D=D) -> float:
            return float(D[np.ix_(group, group)].max())

        def bisect(group, X=X) -> list[np.ndarray]:
            labels = KMeans(2, n_init=1, random_state=0).fit(X[group]).labels_
            return [group[labels == 0], group[labels == 1]]

        found = {"DIANA": DivisiveClustering("diana", n_clusters=k).fit(X).labels_}
        found["bisecting k-means"] = (
            DivisiveClustering("bisecting", n_clusters=k, random_state=0).fit(X).labels_
        )
        literal = {
            "DIANA": largest_first(
                lambda group, D=D: list(diana_split(D, group, 0)), diameter, len(X), k
            ),
            "bisecting k-means": largest_first(bisect, diameter, len(X), k),
        }
        as_r = largest_first(lambda group, D=D: list(diana_split(D, group, 1)), diameter, len(X), k)
        assert adjusted_rand_score(as_r, found["DIANA"]) > 1 - 1e-9  # what the library says it does
        for method, labels in found.items():
            lines.append(
                {
                    "method": method,
                    "rows": name,
                    "k": k,
                    "ours with the letter": adjusted_rand_score(literal[method], labels),
                    "ours with the classes": adjusted_rand_score(table.y, labels),
                    "the letter with the classes": adjusted_rand_score(table.y, literal[method]),
                }
            )
    return lines


def make(form: Form, folder: Path) -> Section:
    section = Section(
        "Sections 25.2.4 and 25.5.2: algorithms to the letter",
        """Dissimilarity analysis (DIANA) divides the sum of dissimilarities within a group by its
        number of rows (equation 25.52); bisecting k-means divides the group of largest diameter;
        algorithm 25.1 visits rows in random order.""",
    )
    lines = of_trees(form.pick(("iris",), ("iris", "wine"), ("iris", "wine")))
    section.values["trees"] = lines
    section.text(
        """Adjusted Rand indices at the number of classes. The library's DIANA leaves the row itself
        out of its average, n - 1, as R's does; its bisecting k-means divides the group with the
        largest sum of squares, as what it lowers is the sum of squares:"""
    )
    section.table(lines)
    n_sweeps = form.pick(300, 1500, 10_000)
    random = np.random.RandomState(3)
    X = np.concatenate([random.normal(center, 1.0, 8) for center in (-3.0, 0.0, 3.0)])
    draws = {
        "random order (the letter)": gibbs_25_1(X, 1.0, 9.0, ALPHA, n_sweeps, fixed=False),
        "fixed order": gibbs_25_1(X, 1.0, 9.0, ALPHA, n_sweeps, fixed=True),
    }
    model = FixedGaussian(1.0, prior_variance=9.0, mean=0.0)
    mixture = DPMixture(
        model,
        DirichletProcess(ALPHA),
        n_chains=1,
        n_sweeps=n_sweeps,
        split_merge=False,
        random_state=0,
    ).fit(X[:, None])
    draws["the library"] = mixture.posterior_.labels[0].max(axis=1) + 1
    lines = []
    for name, k in draws.items():
        share = {f"k = {value}": float(np.mean(k == value)) for value in range(2, 9)}
        lines.append({"P(k), algorithm 25.1": name} | share | {"mean k": float(np.mean(k))})
    section.values["k"] = lines
    section.text(
        f"""The library's sweeps visit rows in a fixed order, which leaves the same posterior
        invariant: the posterior of k for {len(X)} rows, from {n_sweeps:,} sweeps of a plain loop in
        each order and of the library:"""
    )
    section.table(lines)
    return section


if __name__ == "__main__":
    run(make)
