"""The storage backends of a table: one interface, for memory, disk and Dask."""

from countless._data.backend import Backend
from countless._data.block import Block
from countless._data.fixed_point import FixedPoint, Summary
from countless._data.open import open_rows

__all__ = ["Backend", "Block", "FixedPoint", "Summary", "open_rows"]
