"""Compiled kernels that were kept for the next process, and when they must not be used."""

import hashlib
from pathlib import Path

from numba.core.caching import FunctionCache

_STAMP = "countless-kernels.sha256"


def forget_stale_kernels() -> None:
    """Forget all kept kernels after any source has changed, as by an upgrade.

    numba compares a kernel's own file only. One that calls into a file that has changed would go on
    with what it was compiled with, and read arrays at places where they no longer are.
    """
    here = Path(__file__)
    kept = Path(FunctionCache(forget_stale_kernels).cache_path)
    forget_if_changed(sorted(here.parent.glob("*.py")), kept)


def forget_if_changed(sources: list[Path], kept: Path) -> None:
    """Remove numba's indices from a folder, unless they were made from these sources."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    stamp = kept / _STAMP
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    for index in kept.glob("*.nbi"):
        index.unlink(missing_ok=True)  # another process may be doing the same
    stamp.write_text(digest.hexdigest())
