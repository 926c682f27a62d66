"""Clustering problems drawn at random: blobs, shapes, tables, and clouds without clusters.

`draw_problem` makes one from a seed: rows, their true clusters from 1 on (0 is noise), and a name.
The kinds are those that public benchmark sets have: blobs from far apart to as close as in the S
sets, of equal and unequal density; curves, rings and boxes, some with noise or a thin bridge
between two of them; tables of correlated, skewed and rounded columns whose classes overlap.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

CLOUDS = (
    "normal",
    "uniform",
    "ball",
    "exponential",
    "t",
    "lognormal",
    "beta",
    "laplace",
    "gamma",
    "banana",
    "curve",
    "scales",
    "simplex",
    "triangle",
    "sphere",
    "grid",
    "table",
)


def draw_problem(seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Draw rows with known clusters; a quarter of the problems has one."""
    rng = np.random.default_rng(seed)
    make = rng.choice([blobs, shapes, tables, cloud], p=[0.32, 0.28, 0.15, 0.25])
    X, y, name = make(rng)
    order = rng.permutation(len(X))
    return X[order], y[order], name


def draw_wide_problem(seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Draw rows of 13 to 256 columns, as embeddings have; half of the problems have one cluster."""
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        make = rng.choice([topics, blobs, tables, cloud], p=[0.3, 0.1, 0.1, 0.5])
        X, y, name = make(rng)
        if X.shape[1] > 12:
            order = rng.permutation(len(X))
            return X[order], y[order], name
    raise AssertionError("no draw had more than 12 columns")


def topics(rng):
    """Directions around centers that share themes, like texts or pictures, with some noise."""
    d = int(np.exp(rng.uniform(np.log(16), np.log(256))))
    k = int(np.exp(rng.uniform(np.log(2), np.log(40))))
    n = int(np.exp(rng.uniform(np.log(max(300, 20 * k)), np.log(5000))))
    sizes = _sizes(rng, n, k, least=15)
    spectrum = np.arange(1, d + 1) ** -rng.uniform(0.0, 0.7)
    spectrum /= np.linalg.norm(spectrum)
    themes = rng.normal(size=(max(1, k // 3), d)) * spectrum
    centers = rng.normal(size=(k, d)) * spectrum
    centers += rng.uniform(0.0, 0.8) * themes[rng.integers(len(themes), size=k)]
    spread = rng.uniform(0.6, 1.6) * np.exp(rng.normal(size=k) * rng.choice([0.0, 0.2]))
    # Clusters are longer in a few directions of their own, and some are bent.
    stretch, bend = rng.uniform(0.0, 1.5), rng.choice([0.0, 0.5])
    parts = []
    for center, scale, size in zip(centers, spread, sizes, strict=True):
        along = rng.normal(size=(size, int(rng.integers(1, 6))))
        axes, turns = stretch * rng.normal(size=(2, along.shape[1], d)) * spectrum
        rows = rng.normal(size=(size, d)) * spectrum + along @ axes
        parts.append(center + scale * (rows + bend * (along**2 - 1) @ turns))
    y = np.repeat(np.arange(1, k + 1), sizes)
    n_noise = int(len(y) * rng.choice([0.0, 0.0, 0.1, 0.3]))
    X = np.vstack([*parts, rng.normal(size=(n_noise, d)) * spectrum])
    y = np.append(y, np.zeros(n_noise, int))
    return X / np.linalg.norm(X, axis=1)[:, None], y, "topics" + "+noise" * bool(n_noise)


def blobs(rng):
    """Round, elliptical, heavy-tailed, skewed or uniform blobs in up to 40 dimensions."""
    d = int(rng.choice([2, 2, 2, 3, 4, 6, 10, 20, 40]))
    k = int(np.exp(rng.uniform(np.log(2), np.log(40 if d < 5 else 15))))
    n = np.exp(rng.uniform(np.log(max(120, 20 * k)), np.log(5000)))
    kind = str(rng.choice(["round", "elliptical", "heavy", "skewed", "uniform"]))
    spread = np.exp(rng.normal(size=k) * rng.choice([0.0, 0.25, 0.6]))
    apart = rng.uniform(2.2, 7.0) * (1 + 0.12 * np.sqrt(d) if d > 3 else 1.0)
    centers = _centers(rng, k, d, apart * spread.mean())
    sizes = np.maximum(12, n * rng.dirichlet(np.full(k, rng.choice([2.0, 5.0, 50.0])))).astype(int)
    parts = []
    for center, scale, size in zip(centers, spread, sizes, strict=True):
        rows = _standard_rows(rng, kind, size, d)
        if kind == "elliptical":
            axes = np.exp(rng.uniform(-1, 1, size=d))
            rows = rows * (axes / np.sqrt(np.mean(axes**2))) @ _rotation(rng, d)
        parts.append(center + scale * rows)
    X, y = np.vstack(parts), np.repeat(np.arange(1, k + 1), sizes)
    if d == 2 and rng.uniform() < 0.15:
        return *_with_noise(rng, X, y), f"{kind} blobs+noise"
    return X, y, f"{kind} blobs"


def tables(rng):
    """Correlated columns of different kinds, and classes that overlap, like measured tables."""
    k = int(rng.integers(2, 8))
    d = int(rng.integers(4, 31))
    n = int(np.exp(rng.uniform(np.log(max(100, 30 * k)), np.log(2500))))
    sizes = _sizes(rng, n, k)
    columns = _Columns(rng, d)
    latent = columns.n_factors
    centers = _centers(rng, k, latent, rng.uniform(2.5, 6.0))
    parts = []
    for center, size in zip(centers, sizes, strict=True):
        own = np.exp(rng.normal(size=latent) * rng.choice([0.0, 0.3, 0.6]))
        parts.append(center + own * rng.normal(size=(size, latent)))
    return columns.show(rng, np.vstack(parts)), np.repeat(np.arange(1, k + 1), sizes), "table"


def shapes(rng):
    """Curves, rings, boxes and blobs in the plane, some with noise, some turned into space."""
    n = np.exp(rng.uniform(np.log(150), np.log(5000)))
    thick = rng.uniform(0.0, 0.12)
    make = rng.choice([_rings, _moons, _spirals, _boxes, _lines, _scattered, _scattered])
    parts = make(rng, n, thick)
    X, y = np.vstack(parts), np.repeat(np.arange(1, len(parts) + 1), [len(p) for p in parts])
    name = make.__name__.strip("_")
    extra = rng.uniform()
    if extra < 0.2:
        X, y, name = *_with_noise(rng, X, y), f"{name}+noise"
    elif extra < 0.35:
        X, y, name = *_with_bridge(rng, X, y), f"{name}+bridge"
    if rng.uniform() < 0.25:
        d = int(rng.choice([3, 5, 10]))
        turned = np.zeros((len(X), d))
        turned[:, :2] = X
        turned += 0.01 * X.std() * rng.normal(size=turned.shape)
        X, name = turned @ _rotation(rng, d), f"{name} in {d} dimensions"
    return X, y, name


def cloud(rng):
    """Rows without clusters: unimodal clouds of many kinds, and single curves."""
    d = int(rng.choice([2, 2, 2, 2, 3, 5, 10, 20, 40]))
    n = int(np.exp(rng.uniform(np.log(100), np.log(5000))))
    kind = str(rng.choice(CLOUDS))
    if kind in ("normal", "uniform"):
        X = _standard_rows(rng, "round" if kind == "normal" else "box", n, d)
        X = X * np.exp(rng.uniform(-1, 1, size=d))
    elif kind == "ball":
        X = _standard_rows(rng, "ball", n, d)
    elif kind == "exponential":
        X = rng.exponential(size=(n, d))
    elif kind == "t":
        X = rng.standard_t(rng.uniform(3, 8), size=(n, d))
    elif kind == "lognormal":
        X = rng.lognormal(sigma=rng.uniform(0.2, 0.8), size=(n, d))
    elif kind == "beta":
        X = rng.beta(rng.uniform(1, 4), rng.uniform(1, 4), size=(n, d))
    elif kind == "laplace":
        X = rng.laplace(size=(n, d))
    elif kind == "gamma":
        X = rng.gamma(rng.uniform(1, 6, size=d), size=(n, d))
    elif kind == "banana":
        X = rng.normal(size=(n, d))
        X[:, 1] += rng.uniform(0.2, 1) * X[:, 0] ** 2
    elif kind == "scales":
        wide = rng.uniform(size=(n, 1)) < 0.5
        X = rng.normal(size=(n, d)) * np.where(wide, rng.uniform(1.2, 2.0), 1.0)
    elif kind == "simplex":
        X = rng.dirichlet(np.ones(d + 1), size=n)[:, :d]
    elif kind == "triangle":
        X = np.sort(rng.uniform(size=(n, 2)), axis=1)
    elif kind == "sphere":
        X = rng.normal(size=(n, d + 1))
        X /= np.linalg.norm(X, axis=1)[:, None]
    elif kind == "grid":
        values = int(rng.integers(4, 30))
        X = rng.integers(0, values, size=(n, d)).astype(float)
        return X, np.ones(n, dtype=int), "grid cloud"
    elif kind == "table":
        columns = _Columns(rng, max(d, 4))
        X = columns.show(rng, rng.normal(size=(n, columns.n_factors)))
        return X, np.ones(n, dtype=int), "table cloud"
    else:
        X = _curve(rng, n, str(rng.choice(["moon", "ring", "line", "s", "spiral"])))
        X = X + rng.uniform(0.005, 0.08) * rng.normal(size=X.shape)
    if rng.uniform() < 0.5:
        X = X @ _rotation(rng, X.shape[1])
    return X, np.ones(len(X), dtype=int), f"{kind} cloud"


class _Columns:
    """Columns that follow a few factors: correlated, some skewed, some rounded."""

    def __init__(self, rng, d):
        self.n_factors = int(rng.integers(2, min(d, 8) + 1))
        loadings = rng.normal(size=(self.n_factors, d))
        self._loadings = loadings / np.linalg.norm(loadings, axis=0)
        self._noise = rng.uniform(0.2, 1.0)
        self._skew = np.where(rng.uniform(size=d) < rng.choice([0.0, 0.5]), 0.35, 0.0)
        self._steps = np.where(rng.uniform(size=d) < rng.choice([0.0, 0.5, 1.0]), 40, 0)
        self._scale = np.exp(0.4 * rng.normal(size=d))

    def show(self, rng, factors):
        """Return the columns of rows with these factors, of about unit spread within a class."""
        d = self._loadings.shape[1]
        X = factors @ self._loadings + self._noise * rng.normal(size=(len(factors), d))
        with_skew = np.expm1(self._skew * X) / np.where(self._skew > 0, self._skew, 1.0)
        X = np.where(self._skew > 0, with_skew, X)
        step = np.ptp(X, axis=0) / np.where(self._steps > 0, self._steps, 1)
        return np.where(self._steps > 0, np.round(X / step) * step, X) * self._scale


def _with_noise(rng, X, y):
    """Add uniform rows in the box around the others, of no cluster."""
    noise = rng.uniform(X.min(axis=0), X.max(axis=0), size=(int(len(X) * 0.06), X.shape[1]))
    return np.vstack([X, noise]), np.append(y, np.zeros(len(noise), int))


def _with_bridge(rng, X, y):
    """Add a thin line of rows between the first two clusters, of neither."""
    one, other = X[y == 1], X[y == 2]
    distance, nearest = KDTree(other).query(one)
    start = int(distance.argmin())
    end = other[nearest[start]]
    share = rng.uniform(size=(int(np.ceil(0.01 * len(X))), 1))
    bridge = one[start] + share * (end - one[start])
    bridge += 0.02 * X.std() * rng.normal(size=bridge.shape)
    return np.vstack([X, bridge]), np.append(y, np.zeros(len(bridge), int))


def _standard_rows(rng, kind, size, d):
    """Draw rows of about unit variance in every direction."""
    if kind == "heavy":
        return rng.standard_t(4, size=(size, d)) / np.sqrt(2)
    if kind == "skewed":
        return (rng.gamma(3, size=(size, d)) - 3) / np.sqrt(3)
    if kind == "box" or (kind == "uniform" and rng.uniform() < 0.5):
        return rng.uniform(-np.sqrt(3), np.sqrt(3), size=(size, d))
    rows = rng.normal(size=(size, d))
    if kind in ("uniform", "ball"):
        radius = np.sqrt(d + 2) * rng.uniform(size=(size, 1)) ** (1 / d)
        rows *= radius / np.linalg.norm(rows, axis=1)[:, None]
    return rows


def _centers(rng, k, d, apart):
    """Place centers so that a fifth of them have a neighbour at most this far away."""
    centers = np.zeros((k, d))
    for _ in range(30):
        centers = rng.normal(size=(k, d)) if rng.uniform() < 0.5 else rng.uniform(-1, 1, (k, d))
        nearest = KDTree(centers).query(centers, 2)[0][:, 1]
        centers *= apart / np.quantile(nearest, 0.2)
        if nearest.min() >= 0.75 * np.quantile(nearest, 0.2):
            break
    return centers


def _rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def _curve(rng, size, kind):
    t = rng.uniform(size=size)
    if kind == "moon":
        return np.c_[np.cos(np.pi * t), np.sin(np.pi * t)]
    if kind == "ring":
        return np.c_[np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)]
    if kind == "line":
        return np.c_[2 * t - 1, 0 * t]
    if kind == "spiral":
        angle = np.pi * (0.6 + 2.2 * np.sqrt(t))
        return np.c_[angle * np.cos(angle), angle * np.sin(angle)] / 8
    if kind == "s":
        angle = 3 * np.pi * (t - 0.5)
        return 0.6 * np.c_[np.sin(angle), np.sign(angle) * (np.cos(angle) - 1)]
    if kind == "blob":
        return 0.4 * rng.normal(size=(size, 2))
    if kind == "disc":
        return 0.5 * _standard_rows(rng, "ball", size, 2)
    return rng.uniform(-1, 1, size=(size, 2)) * [1, rng.uniform(0.2, 1)]  # a box


def _sizes(rng, n, k, least=25):
    share = rng.dirichlet(np.full(k, rng.choice([3.0, 20.0])))
    return np.maximum(least, n * share).astype(int)


def _jitter(rng, rows, scale):
    return rows + scale * rng.normal(size=rows.shape)


def _rings(rng, n, thick):
    k = int(rng.integers(2, 5))
    radius = np.append(rng.choice([0.0, 0.3]), np.arange(1, k) + 0.8)
    sizes = np.maximum(40, n * np.arange(1, k + 1) / np.arange(1, k + 1).sum()).astype(int)
    parts = [r * _curve(rng, m, "ring") for r, m in zip(radius, sizes, strict=True)]
    return [_jitter(rng, part, max(1.2 * thick, 0.02)) for part in parts]


def _moons(rng, n, thick):
    up, down = (_curve(rng, size, "moon") for size in _sizes(rng, n, 2))
    down = np.c_[1 - down[:, 0], 0.5 - down[:, 1] - rng.uniform(-0.2, 0.2)]
    return [_jitter(rng, part, 1.2 * thick) for part in (up, down)]


def _spirals(rng, n, thick):
    k = int(rng.integers(2, 4))
    parts = []
    for turn in 2 * np.pi * np.arange(k) / k:
        about = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        parts.append(_curve(rng, max(60, int(n / k)), "spiral") @ about)
    return [_jitter(rng, part, 0.35 * thick) for part in parts]


def _boxes(rng, n, thick):
    k, gap = int(rng.integers(2, 6)), rng.uniform(0.15, 0.6)
    parts = []
    for place, size in enumerate(_sizes(rng, n, k)):
        rows = rng.uniform(-1, 1, size=(size, 2))
        if rng.uniform() < 0.5:  # denser towards one side
            rows[:, 0] = rng.choice([-1, 1]) * (2 * np.sqrt(rng.uniform(size=size)) - 1)
        parts.append(rows + np.array([(2 + gap) * place, rng.uniform(-0.8, 0.8)]))
    return parts


def _lines(rng, n, thick):
    sizes = _sizes(rng, n, int(rng.integers(2, 8)))
    parts = [
        _curve(rng, size, "line") * 1.5 + [rng.uniform(-0.3, 0.3), 0.5 * place]
        for place, size in enumerate(sizes)
    ]
    return [_jitter(rng, part, 0.8 * thick) for part in parts]


def _scattered(rng, n, thick):
    k, gap = int(rng.integers(2, 8)), rng.uniform(0.18, 0.6)
    parts: list[np.ndarray] = []
    for size in _sizes(rng, n, k):
        for _ in range(60):
            kind = str(rng.choice(["moon", "ring", "line", "s", "disc", "box", "blob"]))
            rows = _jitter(rng, _curve(rng, size, kind) * np.exp(rng.uniform(-0.7, 0.5)), thick)
            rows = rows @ _rotation(rng, 2) + rng.uniform(-1.2, 1.2, size=2) * np.sqrt(k)
            if not parts or KDTree(np.vstack(parts)).query(rows)[0].min() > gap:
                parts.append(rows)
                break
    return parts if len(parts) > 1 else _moons(rng, n, thick)
