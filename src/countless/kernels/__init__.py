"""Compiled loops over blocks of rows: numba and NumPy only, serial, without the GIL."""

from countless.kernels.cached import forget_stale_kernels, log_compilations

forget_stale_kernels()
log_compilations()
