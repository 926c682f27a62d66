"""Where the data lives: one interface to blocks of rows, whatever their home."""

from countless.rows.memory import MemoryRows, Summary, open_rows

__all__ = ["MemoryRows", "Summary", "open_rows"]
