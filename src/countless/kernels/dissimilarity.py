"""Dissimilarities of rows: weighted sums over columns of differences between cells."""

import numpy as np
from numba import njit

# How two cells of a column are compared.
ABSOLUTE, SQUARED, UNEQUAL = 0, 1, 2


@njit(nogil=True, cache=True)
def compare_rows(
    here,  # IN (n, n_columns), NaN is a missing value
    there,  # IN (n_columns, m), the other rows, transposed
    kinds,  # IN (n_columns,), ABSOLUTE, SQUARED or UNEQUAL
    weight,  # IN (n_columns,)
    gappy,  # IN (n_columns,), whether the other rows have missing values there
    averaged,  # IN, whether sums are divided by the weight of the columns known in both rows
    out,  # OUT (n, m)
):
    """Compare every row here with every row there; rows without a common known cell give NaN."""
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
            # Columns in the outer loop, other rows in the inner one, which vectorizes.
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
