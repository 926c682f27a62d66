"""Compiled loops over blocks of rows: numba and NumPy only, serial, without the GIL."""
