"""Checks of the available memory before large allocations."""

from __future__ import annotations

import logging
import os
from pathlib import Path

logger = logging.getLogger("countless")


def state_memory(what: str, n_bytes: int, advice: str) -> None:
    """Log the size of an allocation, and raise MemoryError if it exceeds what is available."""
    available = available_memory()
    there = "unknown" if available is None else f"{available:,}"
    logger.info("%s: %s bytes; %s available", what, f"{n_bytes:,}", there)
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs {n_bytes:,} bytes, and {available:,} are available; {advice}"
        )


def lack_of_memory(error: MemoryError) -> str:
    """Return a message with the requested size or, if the error lacks it, the available memory.

    Examples
    --------
    >>> lack_of_memory(MemoryError("Unable to allocate 8 GiB"))
    'not enough memory: Unable to allocate 8 GiB'
    """
    message = str(error)
    if not any(character.isdigit() for character in message):  # as from Python and compiled code
        available = available_memory()
        there = "" if available is None else f"{available:,} bytes are available"
        message = "; ".join(filter(None, [message.rstrip("."), there]))
    return f"not enough memory: {message}"


def available_memory() -> int | None:
    """Return the available memory in bytes, or None if the system does not report it."""
    known = []
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        known.append(1024 * int(fields["MemAvailable"].split()[0]))
    elif "SC_AVPHYS_PAGES" in getattr(os, "sysconf_names", {}):
        known.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if limit.exists() and used.exists() and limit.read_text().strip() != "max":
        known.append(int(limit.read_text()) - int(used.read_text()))
    return min(known, default=None)
