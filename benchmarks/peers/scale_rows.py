"""What contestants of ``scale.py`` share: rows as Dask sees them, a cluster, and memory used."""

import numpy as np
from worker import _memory

CHUNK_ROWS = 2**17


def dask_rows(path):
    """Return the rows of a .npy file as a Dask array that tasks read from the file."""
    import dask
    import dask.array as da

    rows = np.load(path, mmap_mode="r")
    (n_rows, n_features), dtype = rows.shape, rows.dtype
    del rows
    read = dask.delayed(read_rows, pure=True)
    starts = range(0, n_rows, CHUNK_ROWS)
    stops = [min(start + CHUNK_ROWS, n_rows) for start in starts]
    return da.concatenate(
        [
            da.from_delayed(read(path, start, stop), (stop - start, n_features), dtype)
            for start, stop in zip(starts, stops, strict=True)
        ]
    )


def read_rows(path, start, stop):
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def local_cluster(n_workers):
    """Return a client of single-threaded worker processes of this machine."""
    from distributed import Client

    return Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


def peak_memory():
    """Return the most memory that this process has had, in bytes; Linux only.

    ``getrusage`` would not do: a new process starts from the peak of the one that made it.
    """
    return _memory("VmHWM")
