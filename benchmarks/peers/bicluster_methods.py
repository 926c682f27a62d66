"""DPBiclustering, or SpectralBiclustering with k told: labels of both sides, and CPU seconds."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np


def make(job):
    """Return the estimator that the job names."""
    if job["method"] == "spectral":
        from sklearn.cluster import SpectralBiclustering

        return SpectralBiclustering(tuple(job["n_clusters"]), n_init=3, random_state=job["seed"])
    from countless import DPBiclustering

    return DPBiclustering(n_chains=1, n_sweeps=job["n_sweeps"], random_state=job["seed"], n_jobs=1)


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    table = np.load(job["data"]).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Compile, or load what was compiled, before the clock starts.
        make({**job, "n_sweeps": 2, "n_clusters": [2, 2]}).fit(table[:40, :40])
        begin = time.process_time()
        model = make(job).fit(table)
        cpu = time.process_time() - begin
    found = {
        "cpu": cpu,
        "rows": model.row_labels_.tolist(),
        "columns": model.column_labels_.tolist(),
    }
    Path(sys.argv[2]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
