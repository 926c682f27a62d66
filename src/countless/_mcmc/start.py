"""Initial partitions of chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from countless._labels import check_labels, number_by_appearance
from countless._search.dp_means import auto_labels


def first_labels(init: Any, rows: np.ndarray, seed: int, n_jobs: int | None) -> np.ndarray:
    """Return initial labels: all rows in one cluster, those of DP-means, or given ones."""
    if isinstance(init, str):
        if init == "one":
            return np.zeros(len(rows), dtype=np.int32)
        if init == "dp-means":
            if np.isnan(rows).any():
                raise ValueError("init='dp-means' takes no gaps; use init='one'")
            return auto_labels(rows, seed, n_jobs)
        raise ValueError(f"init must be 'one', 'dp-means' or a label for each row; got {init!r}")
    labels = check_labels("init", init)
    if len(labels) != len(rows):
        raise ValueError(f"init has {len(labels)} labels; X has {len(rows)} rows")
    return number_by_appearance(labels)[1]
