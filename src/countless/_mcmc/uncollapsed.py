"""Uncollapsed Gibbs sampling of partitions, given parameters of clusters: Neal's algorithm 2.

Each sweep draws the parameters of every cluster from their posterior. Then each row is assigned to
a cluster of s others with weight f(s + 1) / f(s) p(x | its parameters), or to a new one, whose
parameters are drawn immediately. It is the sampler that Kulis and Jordan compare DP-means with
(section 6 of their paper). It mixes more slowly than with parameters integrated out.

R. M. Neal, "Markov chain sampling methods for Dirichlet process mixture models", JCGS 9, 2000.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from countless._mcmc.collapsed import Partition, Setting, without_gaps
from countless.kernels.arrays import plain
from countless.kernels.gibbs import sweep_densities
from countless.models import BoundModel

# Number of rows whose densities are computed at once, which bounds memory.
BLOCK = 2**14


def uncollapsed_sweep(partition: Partition, setting: Setting) -> Partition:
    """Draw the parameters of each cluster, then the cluster of each row in turn."""
    _, rows, tables, random = setting
    model = cast(BoundModel, setting.model)  # other cluster models cannot draw parameters
    labels, sizes = partition.labels.copy(), partition.sizes.copy()
    drawn = model.draw_parameters(partition.statistics, random)
    parameters = {name: np.array(value) for name, value in drawn.items()}
    for start in range(0, len(rows), BLOCK):
        block, names = rows[start : start + BLOCK], labels[start : start + BLOCK]
        fresh = model.log_predictive(block, model.empty())[:, 0]
        densities = plain(model.log_density(block, parameters))
        row, opened = 0, False
        while row < len(block):
            row, opened = sweep_densities(
                densities, fresh, row, sizes, names, tables.join, tables.open, random
            )
            if opened:  # by the previous row
                added = model.draw_parameters(model.statistics(block[row - 1 : row])[None], random)
                slot = int(sizes.argmin())
                if sizes[slot] > 0:
                    slot = len(sizes)
                    sizes = np.append(sizes, 0)
                    parameters = {
                        name: np.concatenate([value, added[name]])
                        for name, value in parameters.items()
                    }
                    densities = np.pad(densities, ((0, 0), (0, 1)))
                for name, value in parameters.items():
                    value[slot] = added[name][0]
                densities[row:, slot] = model.log_density(block[row:], added)[:, 0]
                names[row - 1], sizes[slot] = slot, 1
    return without_gaps(labels, sizes, model.statistics(rows, labels, len(sizes)))
