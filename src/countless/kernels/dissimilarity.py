"""Dissimilarities of rows: differences of cells, weighed and added up over the columns."""

import numpy as np
from numba import njit

# How two cells of a column are compared.
ABSOLUTE, SQUARED, UNEQUAL = 0, 1, 2


@njit(nogil=True, cache=True)
def compare_rows(
    here,  # IN (n, n_columns), NaN is a gap
    there,  # IN (n_columns, m), the other rows by column
    kinds,  # IN (n_columns,), ABSOLUTE, SQUARED or UNEQUAL
    weight,  # IN (n_columns,)
    gappy,  # IN (n_columns,), whether the other rows have gaps there
    averaged,  # IN, whether sums are divided by the weight of the columns that both rows know
    out,  # OUT (n, m)
):
    """Compare every row here with every row there; rows that share no known cell give NaN."""
    n_columns, m = there.shape
    total, known, difference = np.empty(m), np.empty(m), np.empty(m)
    for i in range(here.shape[0]):
        total[:] = 0.0
        known[:] = 0.0
        known_by_all = 0.0
        for column in range(n_columns):
            cell, others = np.float64(here[i, column]), there[column]
            if np.isnan(cell):
                continue
            # The columns of a row one by one, the other rows within: loops that run in registers.
            if kinds[column] == ABSOLUTE:
                for j in range(m):
                    difference[j] = abs(cell - others[j])
            elif kinds[column] == SQUARED:
                for j in range(m):
                    difference[j] = (cell - others[j]) ** 2
            else:
                for j in range(m):
                    difference[j] = np.float64(cell != others[j])
            w = weight[column]
            if gappy[column]:
                for j in range(m):
                    is_known = others[j] == others[j]
                    total[j] += w * difference[j] if is_known else 0.0
                    known[j] += w if is_known else 0.0
            else:
                known_by_all += w
                for j in range(m):
                    total[j] += w * difference[j]
        for j in range(m):
            share = known[j] + known_by_all
            if share > 0.0:
                out[i, j] = total[j] / share if averaged else total[j]
            else:
                out[i, j] = np.nan
