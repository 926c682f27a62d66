"""Time of segmenting a photograph in many superpixels, beside scikit-image's normalised cuts.

``python benchmarks/segmentation.py`` needs the photographs of BSDS500 in the folder of data sets.
Affinity propagation with a Dirichlet process (DPAP) and without (AP), graph DP-means and normalised
cuts get the same similarities. How well they agree with people: ``papers/tzf_segmentation.py``.
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np

from countless.image import read_picture
from countless.image.segment import cut_patches
from countless.image.similarity import similarity
from harness import Contestant, ContestantFailed, Limits, machine, measure, print_parts, say

DATA = Path(os.environ.get("COUNTLESS_DATA", Path(__file__).parents[2] / "shared" / "data"))
METHODS = "segment_methods.py"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--many", type=int, default=1500, help="superpixels (default: %(default)s)")
    add("--pictures", default="42049,113044,3096", help="which (default: %(default)s)")
    add("--threads", type=int, default=1, help="threads for everybody (default: %(default)s)")
    add("--repeat", type=int, default=2, help="best of this many (default: %(default)s)")
    add("--timeout", type=float, default=900.0, help="seconds for each contestant")
    add("--quick", action="store_true", help="few superpixels: a smoke run")
    add("--json", type=Path, help="write every figure to this file too")
    options = parser.parse_args()
    print_parts("time", {"time": ("Time", time_table)}, options, machine(options.threads))


if __name__ == "__main__":
    main()
