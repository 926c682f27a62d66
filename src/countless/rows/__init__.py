"""The storage backends of a table: one interface, for memory, disk and Dask."""

from countless.rows.backend import Rows
from countless.rows.block import Block
from countless.rows.frame import Frame, Summary
from countless.rows.open import open_rows

__all__ = ["Block", "Frame", "Rows", "Summary", "open_rows"]
