"""The parts of ``load.py``: each does its work, checks the answer, and says what was held."""

import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
from countless_dp_means import PassClock
from scale_rows import dask_rows, local_cluster, peak_memory
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from worker import _forget_peak, _memory

from countless import CrossCat, DPMeans, DPMixture, SpectralDPMeans, farthest_first_penalty
from countless.serialize.model_file import load_model, model_bytes

N_COLUMNS, N_CLUSTERS = 8, 50
WRITE_ROWS = 2**18
PENALTY_ROWS = 20_000  # the farthest-first rule looks at this many rows
BATCH_ROWS = 10_000  # of the stream
MEGABYTE = 1e6


def blobs(n_rows, seed=0):
    """Give blocks of rows around overlapping clusters, always the same ones."""
    draws = np.random.default_rng(seed)
    centers = 2.0 * draws.standard_normal((N_CLUSTERS, N_COLUMNS), dtype=np.float32)
    for start in range(0, n_rows, WRITE_ROWS):
        n = min(WRITE_ROWS, n_rows - start)
        noise = 0.7 * draws.standard_normal((n, N_COLUMNS), dtype=np.float32)
        yield start, centers[draws.integers(N_CLUSTERS, size=n)] + noise


def write_blobs(path, n_rows):
    """Write rows to a .npy file, and return a penalty for about the clusters there are."""
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, N_COLUMNS))
    for start, block in blobs(n_rows):
        rows[start : start + len(block)] = block
    rows.flush()
    return farthest_first_penalty(np.array(rows[:PENALTY_ROWS]), N_CLUSTERS)


def disk(job, folder):
    path, n_rows = folder / "rows.npy", job["n_rows"]
    write_blobs(path, n_rows)
    _forget_peak()
    start = time.perf_counter()
    model = DPMeans(n_jobs=job["threads"], random_state=0).fit(path)
    more = {"seconds": time.perf_counter() - start, "peak MB": peak_memory() / MEGABYTE}
    rows, cost = np.load(path, mmap_mode="r"), 0.0
    for at in range(0, n_rows, WRITE_ROWS):
        own = slice(at, at + WRITE_ROWS)
        apart = rows[own].astype(np.float64) - model.cluster_centers_[model.labels_[own]]
        cost += float(np.square(apart).sum())
    objective = cost + model.penalty_ * model.n_clusters_
    lost = (len(model.labels_) != n_rows) + (abs(objective / model.objective_ - 1.0) > 1e-5)
    held = f"{n_rows:,} labels in {model.n_clusters_} clusters, whose objective adds up"
    return f"{n_rows:,} x {N_COLUMNS} from disk", held, lost, more


def stream(job, folder):
    n_rows, resident, n_seen = job["n_rows"], [], 0
    model = DPMeans(n_jobs=job["threads"], random_state=0)  # the first batch decides the penalty
    for _, block in blobs(n_rows):
        for at in range(0, len(block), BATCH_ROWS):
            batch = block[at : at + BATCH_ROWS]
            model.partial_fit(batch)
            n_seen += len(batch)
            if n_seen * 5 // n_rows > len(resident):  # five lines, at each million
                resident.append(_memory("VmRSS") / MEGABYTE)
    weight = float(model.cluster_weights_.sum())
    lost = (weight != n_rows) + (resident[-1] > 1.1 * resident[0])
    told = ", ".join(f"{one:.0f}" for one in resident)
    held = f"{weight:,.0f} rows in {model.n_clusters_} clusters; resident MB at each fifth: {told}"
    return f"a stream of {n_rows:,} x {N_COLUMNS}", held, lost, {}


def mixture(job, folder):
    n_rows, n_sweeps = job["n_rows"], job["n_sweeps"]
    draws = np.random.default_rng(0)
    truth = draws.integers(10, size=n_rows)
    X = (6.0 * draws.standard_normal((10, N_COLUMNS)))[truth]
    X += draws.standard_normal(X.shape)
    model = DPMixture(n_chains=2, n_sweeps=n_sweeps, random_state=0, n_jobs=job["threads"]).fit(X)
    agreement = adjusted_rand_score(truth, model.labels_)
    lost = (len(model.labels_) != n_rows) + (agreement < 0.95)
    held = f"{model.n_clusters_} clusters of 10 planted, adjusted Rand index {agreement:.3f}"
    return f"DPMixture {n_rows:,} x {N_COLUMNS}, {n_sweeps} sweeps, 2 chains", held, lost, {}


def crosscat(job, folder):
    n_rows, n_columns, n_sweeps = job["n_rows"], job["n_columns"], job["n_sweeps"]
    draws = np.random.default_rng(0)
    view_of = np.arange(n_columns) % 3
    groups = draws.integers(5, size=(3, n_rows))
    means = 3.0 * draws.standard_normal((n_columns, 5))
    X = np.stack([means[j, groups[view_of[j]]] for j in range(n_columns)], axis=1)
    X += draws.standard_normal(X.shape)
    model = CrossCat(n_chains=2, n_sweeps=n_sweeps, random_state=0, n_jobs=job["threads"]).fit(X)
    together = model.dependence() > 0.5
    lost = int((together != (view_of[:, None] == view_of)).sum())
    held = f"which of {n_columns} columns belong together, all pairs as planted"
    if lost:
        held = f"which of {n_columns} columns belong together, but for {lost} pairs"
    return f"CrossCat {n_rows:,} x {n_columns}, {n_sweeps} sweeps, 2 chains", held, lost, {}


FIT = """
import sys, numpy as np
from countless import DPMeans
data, checkpoint, answer, penalty, threads = sys.argv[1:]
checkpoint = None if checkpoint == "none" else checkpoint
model = DPMeans(float(penalty), tol=1e-6, n_jobs=int(threads), checkpoint=checkpoint).fit(data)
np.savez(answer, labels=model.labels_, centers=model.cluster_centers_,
         history=model.objective_history_)
"""


def kills(job, folder):
    data, checkpoint = folder / "rows.npy", folder / "run.checkpoint"
    penalty = write_blobs(data, job["n_rows"])

    def begin(checkpoint, answer):
        arguments = map(str, (data, checkpoint, answer, penalty, job["threads"]))
        return subprocess.Popen([sys.executable, "-c", FIT, *arguments])

    def same(answer):
        with np.load(answer) as found, np.load(folder / "whole.npz") as whole:
            return all(found[name].tobytes() == whole[name].tobytes() for name in whole)

    start = time.perf_counter()
    lost = begin("none", folder / "whole.npz").wait() != 0
    whole_seconds = time.perf_counter() - start
    chance, n_kills, n_resumed, n_runs = random.Random(0), 0, 0, 0
    answer = folder / "resumed.npz"
    while n_kills < job["n_kills"] or n_runs == 0 or checkpoint.exists():
        n_resumed += checkpoint.exists()
        process = begin(checkpoint, answer)
        if n_kills < job["n_kills"]:
            try:
                process.wait(chance.uniform(0.0, 0.6 * whole_seconds))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                n_kills += 1
                continue
        n_runs += 1
        lost += process.wait() != 0 or not same(answer)
        answer.unlink()
    left = sorted(path.name for path in folder.iterdir())
    lost += left != ["rows.npy", "whole.npz"]
    held = (
        f"{n_runs} finished fits have the bits of one that nobody stopped, "
        f"after {n_kills} kills and {n_resumed} resumptions"
    )
    return f"{n_kills} SIGKILLs of fits of {job['n_rows']:,} x {N_COLUMNS}", held, lost, {}


class Killer(PassClock):
    """A callback that kills a worker some time after each of the first passes."""

    def __init__(self, client, n_kills):
        super().__init__()
        self.client, self.n_kills = client, n_kills
        self.chance, self.killed = random.Random(0), []

    def on_fit_task_end(self, estimator, context, **_):
        super().on_fit_task_end(estimator, context)
        # Every other pass: a worker that is just being started has nothing to lose.
        if len(self.seconds) % 2 and len(self.killed) < self.n_kills:
            pid = self.chance.choice(sorted(self.client.run(os.getpid).values()))
            self.killed.append(pid)
            threading.Timer(self.chance.uniform(0.0, 0.2), os.kill, (pid, signal.SIGKILL)).start()
        return False


def dask(job, folder):
    path = folder / "rows.npy"
    penalty = write_blobs(path, job["n_rows"])
    settings = {"penalty": penalty, "refine": False, "random_state": 0}
    whole = DPMeans(n_jobs=job["threads"], **settings).fit(np.load(path))
    with local_cluster(job["threads"]) as client:
        killer = Killer(client, job["n_kills"])
        model = DPMeans(**settings).set_callbacks(killer).fit(dask_rows(str(path)))
        labels = model.labels_.compute()
    n_killed = len(set(killer.killed))
    lost = int((labels != whole.labels_).sum()) + (n_killed < job["n_kills"])
    lost += model.cluster_centers_.tobytes() != whole.cluster_centers_.tobytes()
    held = f"labels and centers have the bits of those in memory, after {model.n_iter_} passes"
    return f"{n_killed} killed Dask workers in one fit of {job['n_rows']:,} x 8", held, lost, {}


# What a field of a file is altered to.
VALUES = [-1, 0, 1, 2**31 - 1, -(2**31), 1e300, -1e300, 1e-300, float("nan"), float("inf")]


def altered_json(text, chance):
    """Return JSON with one of its values replaced by another, or left out."""
    saved = json.loads(text)
    at = saved
    while True:
        key = chance.choice(sorted(at) if isinstance(at, dict) else range(len(at)))
        if isinstance(at[key], dict | list) and at[key] and chance.random() < 0.8:
            at = at[key]
            continue
        at[key] = chance.choice([*VALUES, 10**400, "text", None, [], {}])
        return json.dumps(saved).encode()


def altered_bytes(content, chance):
    """Return bytes of which some were changed, cut off or put in."""
    content = bytearray(content)
    at = chance.randrange(max(1, len(content)))
    how = chance.choice(["flip", "cut", "insert"])
    if how == "cut":
        del content[at : at + chance.choice([1, 8, len(content)])]
    elif how == "insert":
        content[at:at] = chance.randbytes(8)
    else:
        content[at : at + 1] = bytes([chance.randrange(256)])
    return bytes(content)


def altered_array(content, chance):
    """Return an array with another value in one cell or all, another type or another shape."""
    array = np.load(io.BytesIO(content))
    if not array.size or array.dtype.kind not in "fi" or chance.random() < 0.3:
        made = chance.choice([array[:0], array[:-1], array.astype(str), array.T, array[None]])
    else:
        made = array.astype(np.float64 if array.dtype.kind == "f" else np.int64).ravel()
        usable = VALUES if array.dtype.kind == "f" else VALUES[:5]
        made[chance.choice([0, -1, slice(None)])] = chance.choice(usable)
        made = made.reshape(array.shape)
    out = io.BytesIO()
    np.save(out, made)
    return out.getvalue(), {"dtype": str(made.dtype), "shape": list(made.shape)}


def altered_file(content, chance):
    """Return a zip with one alteration; unless bytes of the whole were changed, all sums fit."""
    if chance.random() < 0.2:
        return altered_bytes(content, chance)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(sorted(members))
    if name.endswith(".json"):
        members[name] = altered_json(members[name], chance)
    elif name.endswith(".npy"):
        members[name], told = altered_array(members[name], chance)
        if "model.json" in members:
            header = json.loads(members["model.json"])
            header["arrays"][name.removesuffix(".npy")] = told
            members["model.json"] = json.dumps(header).encode()
    else:
        members[name] = altered_bytes(members[name], chance)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return out.getvalue()


def saved_checkpoint(X, penalty, path):
    """Return the bytes of a checkpoint of a run that was stopped."""
    from countless._search import checkpoint as module

    save = module.Checkpoint.save

    def stopping(self, nearest, progress):
        save(self, nearest, progress)
        if path.exists():
            raise KeyboardInterrupt

    module.Checkpoint.save = stopping
    try:
        DPMeans(penalty, checkpoint=path).fit(X)
    except KeyboardInterrupt:
        return path.read_bytes()
    finally:
        module.Checkpoint.save = save
    raise RuntimeError("the run ended before it was saved")


def altered(job, folder):
    warnings.simplefilter("ignore")
    X = np.concatenate([block for _, block in blobs(3000)])
    few = X[:300].astype(np.float64)
    short = {"n_chains": 1, "n_sweeps": 5, "random_state": 0}
    models = [
        DPMeans(20.0).fit(few), DPMixture(**short).fit(few), KMeans(3, n_init=1).fit(few),
        DPMixture("diagonal", **short).fit(few), CrossCat(**short).fit(few),
        SpectralDPMeans(random_state=0).fit(few),
    ]  # fmt: skip
    files = [(model_bytes(model), model.predict(few)) for model in models]
    path = folder / "altered"
    checkpoint = saved_checkpoint(X, 20.0, path), DPMeans(20.0).fit(X).labels_
    chance = random.Random(0)
    n_refused = n_right = n_other = lost = 0
    for i in range(job["n_files"]):
        is_checkpoint = i % 4 == 0
        content, right = checkpoint if is_checkpoint else chance.choice(files)
        path.write_bytes(altered_file(content, chance))
        try:
            if is_checkpoint:
                found = DPMeans(20.0, checkpoint=path).fit(X).labels_
            else:
                found = load_model(path).estimator.predict(few)
        except ValueError as error:
            n_refused += 1
            lost += "\n" in str(error)
            continue
        is_right = np.array_equal(found, right)
        n_right, n_other = n_right + is_right, n_other + (not is_right)
        # Numbers of a model may be others that fit; a checkpoint has a digest.
        lost += len(found) != len(right) or found.min() < 0 or (is_checkpoint and not is_right)
    held = f"{n_refused} refused in one line, {n_right} gave the same labels, "
    held += f"{n_other} were models of other numbers, and predicted"
    return f"{job['n_files']} altered models and checkpoints", held, lost, {}


PARTS = {part.__name__: part for part in (disk, stream, mixture, crosscat, kills, dask, altered)}


def main():
    question, answer = map(Path, sys.argv[1:])
    job = json.loads(question.read_text())
    warnings.simplefilter("ignore", ConvergenceWarning)  # sweeps are counted out
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        what, held, lost, more = PARTS[job["part"]](job, Path(folder))
        seconds = time.perf_counter() - start
    children = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    line = {"part": what, "held": held, "lost": int(lost), "seconds": seconds}
    line |= {"peak MB": max(peak_memory(), children) / MEGABYTE} | more
    answer.write_text(json.dumps(line))


if __name__ == "__main__":
    main()
