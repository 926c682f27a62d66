"""Table 1 of Tarlow, Zemel and Frey (2008): Rand indices of segmentations, on other photographs.

``python benchmarks/paper/segmentation.py`` cuts the photographs of BSDS500 in the folder of data
sets into segments, by affinity propagation with a Dirichlet process (DPAP) and without (AP), by
graph DP-means and by scikit-image's normalised cuts. All get the same similarities, and each a
range of settings; the scores are means over the people who segmented a photograph. The paper's own
two pictures are not published: its figures stand beside, but tell of other photographs. A second
table times a picture in many patches.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from countless.image import compare, read_picture, read_truth
from countless.image.segment import cut_patches, make_method, spread
from countless.image.similarity import similarity

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness import Contestant, ContestantFailed, Limits, machine, measure, print_parts, say

DATA = Path(os.environ.get("COUNTLESS_DATA", Path(__file__).parents[3] / "shared" / "data"))
METHODS = "segment_methods.py"

# Of the paper's two pictures, the best Rand index of each method over its settings.
PAPER = {"DPAP": (0.937, 0.773), "AP": (0.919, 0.494), "normalised cut": (0.917, 0.424)}
# How the paper gets a range: it scales similarities for DPAP, and moves the preference for AP.
SCALES = (1.0, 2.5, 5.0, 10.0, 20.0)
PRICES = (0.28, 0.14, 0.07, 0.035, 0.0175)  # a patch
PENALTIES = (-0.1, -0.3, -0.5, -0.7, -0.85)
THRESHOLDS = (0.01, 0.05, 0.2, 0.5, 0.8)
DEFAULT = 2  # the place of the default among them


def settings_of(title: str, n: int) -> list[dict[str, Any]]:
    """Return the settings of a method that are tried, from coarse to fine."""
    if title == "DPAP":
        return [{"name": "affinity", "prior": "dp", "scale": scale} for scale in SCALES]
    if title == "AP":
        common = {"name": "affinity", "prior": "none"}
        return [common | {"settings": {"preference": -price * n}} for price in PRICES]
    if title == "graph DP-means":
        return [{"name": "graph", "settings": {"penalty": penalty}} for penalty in PENALTIES]
    return [{"name": "ncut", "settings": {"threshold": threshold}} for threshold in THRESHOLDS]


TITLES = ("DPAP", "AP", "graph DP-means", "normalised cut")


def score(patches, similarities, size, people, *, name, prior="none", scale=None, settings=None):
    """Segment one picture, and compare with people."""
    method = make_method(name, prior, patches.n, scale, settings or {}, seed=0)
    labels = method.estimator.fit_predict(method.matrix(similarities))
    return scores_of(spread(patches, labels, *size), people)


def scores_of(labels, people) -> tuple[float, ...]:
    """Return the number of segments, and the scores of a table's line."""
    found = compare(labels, people)
    return (
        len(np.unique(labels)),
        found.probabilistic_rand,
        found.mean_adjusted_rand,
        found.mean_variation_of_information,
    )


def each_and_others(people: list) -> list[tuple]:
    return [(one, people[:i] + people[i + 1 :]) for i, one in enumerate(people)]


def rand_table(options) -> list[dict]:
    """Score every method at every setting."""
    pictures = sorted((DATA / "bsds500").glob("*.jpg"))[: 2 if options.quick else None]
    if not pictures:
        sys.exit(f"there are no photographs in {DATA / 'bsds500'}: set COUNTLESS_DATA")
    found: dict[str, list] = {title: [] for title in TITLES}
    agreed = []  # of each person with the others
    for path in pictures:
        print(path.stem, file=sys.stderr, flush=True)
        image, people = read_picture(path)[0], read_truth(path.with_suffix(".npz"))
        agreed.append(np.mean([scores_of(*apart) for apart in each_and_others(people)], axis=0))
        patches = cut_patches(image, options.superpixels)
        similarities = similarity(patches)
        for title in TITLES:
            tried = settings_of(title, patches.n)
            size = image.shape[:2]
            found[title].append(
                [score(patches, similarities, size, people, **way) for way in tried]
            )
    rows = [line("a person", "against the others", np.array(agreed))]
    for title in TITLES:
        scores = np.array(found[title])  # pictures, settings, (k, Rand, adjusted Rand, VI)
        published = " and ".join(f"{value:.3f}" for value in PAPER.get(title, ())) or None
        best = line(title, "the best for each picture", best_of_each(scores))
        rows.append(best | {"Rand in the paper": published})
        for i in range(scores.shape[1]):
            rows.append(line(title, f"{i + 1}{' (default)' if i == DEFAULT else ''}", scores[:, i]))
    return rows


def best_of_each(scores: np.ndarray) -> np.ndarray:
    """Return the scores of each picture at the setting with the best Rand index, as the paper."""
    best = scores[:, :, 1].argmax(axis=1)
    return scores[np.arange(len(scores)), best]


def line(title: str, setting: str, scores: np.ndarray) -> dict[str, Any]:
    k, rand, adjusted, information = scores.mean(axis=0).tolist()
    return {
        "method": title,
        "setting": setting,
        "segments": k,
        "Rand": rand,
        "adjusted Rand": adjusted,
        "variation of information": information,
        "worst Rand": float(scores[:, 1].min()),
    }


def time_table(options) -> list[dict]:
    """Time every method on pictures in many patches, and see that our answers are the same."""
    patches_wanted = 300 if options.quick else options.many
    contestants = {
        "normalised cut": {"method": "ncut", "prior": "none"},
        "graph DP-means": {"method": "graph", "prior": "none"},
        "AP": {"method": "affinity", "prior": "none"},
        "DPAP": {"method": "affinity", "prior": "dp"},
    }
    rows: list[dict] = []
    for path in [DATA / "bsds500" / f"{name}.jpg" for name in options.pictures.split(",")]:
        image = read_picture(path)[0]
        patches = cut_patches(image, patches_wanted)
        with tempfile.TemporaryDirectory() as folder:
            stored = Path(folder) / "similarities.npy"
            np.save(stored, similarity(patches))
            slowest = None
            for title, job in contestants.items():
                row = {"picture": path.stem, "patches": patches.n, "method": title}
                limits = Limits(options.threads, options.timeout)
                try:
                    runs = [
                        measure(Contestant(title, METHODS), stored, job, options.repeat, limits)
                        for _ in range(1 if job["method"] == "ncut" else 2)
                    ]
                except ContestantFailed as failure:
                    rows.append(row | {"seconds": f"not run: {failure}"})
                    say(rows[-1])
                    continue
                best = min(runs, key=lambda run: run.seconds)
                cpu = min(run.details["cpu"] for run in runs)
                slowest = slowest or (best.seconds, cpu)
                rows.append(
                    row
                    | {
                        "seconds": best.seconds,
                        "cut / this": slowest[0] / best.seconds,
                        "CPU seconds": cpu,
                        "cut / this, CPU": slowest[1] / cpu,
                        "iterations": best.passes,
                        "segments": int(best.labels.max()) + 1,
                        "extra MB": (best.extra_bytes or 0) / 1e6,
                    }
                )
                if len(runs) > 1:
                    same = np.array_equal(runs[0].labels, runs[1].labels)
                    rows[-1]["same again"] = str(same)
                say(rows[-1])
    return rows


PARTS = {"rand": ("Agreement with people", rand_table), "time": ("Time", time_table)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", default="rand,time", help="tables to make, of rand and time")
    add("--superpixels", type=int, default=250, help="patches for rand (default: %(default)s)")
    add("--many", type=int, default=1500, help="patches for time (default: %(default)s)")
    add("--pictures", default="42049,113044,3096", help="for time (default: %(default)s)")
    add("--threads", type=int, default=1, help="threads for everybody (default: %(default)s)")
    add("--repeat", type=int, default=2, help="best of this many (default: %(default)s)")
    add("--timeout", type=float, default=900.0, help="seconds for each contestant")
    add("--quick", action="store_true", help="two pictures, few patches: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    print_parts(options.parts, PARTS, options, machine(options.threads))


if __name__ == "__main__":
    main()
