"""The cache of compiled kernels: where it is stored, when it is invalid, and when it is filled."""

import atexit
import hashlib
import logging
import os
import shutil
import tempfile
from pathlib import Path

from numba import config
from numba.core import event
from numba.core.caching import FunctionCache

_STAMP = "countless-kernels.sha256"

logger = logging.getLogger("countless")
# Hears the name of each kernel when it is compiled, which takes seconds, and not when it is cached.
compilations = logging.getLogger("countless.compilations")


class _Compilations(event.Listener):
    """Logs which kernels are compiled; those that a kernel calls are compiled within its turn."""

    depth = 0

    def on_start(self, event: event.Event) -> None:
        if self.depth == 0:
            compilations.info("compiling %s", event.data["dispatcher"].py_func.__name__)
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1


def log_compilations() -> None:
    """Log at level INFO, under ``countless.compilations``, what is compiled from now on."""
    event.register("numba:compile", _Compilations())


def forget_stale_kernels() -> None:
    """Clear the cache of compiled kernels after any source has changed, as by an upgrade.

    numba compares only the kernel's own file. A kernel that calls into a changed file would use the
    old compiled code, and read arrays at offsets that are no longer valid.
    """
    here = Path(__file__)
    try:
        kept = FunctionCache(forget_stale_kernels).cache_path
    except RuntimeError:  # numba can write neither to the source folder nor to one of the user
        use_temporary_cache()
        kept = FunctionCache(forget_stale_kernels).cache_path
    forget_if_changed(sorted(here.parent.glob("*.py")), Path(kept))


def use_temporary_cache() -> None:
    """Have numba cache compiled code in a new temporary folder, until this process ends.

    The name of the folder is random: numba runs what it finds in its cache, and other users may
    write where temporary folders are.
    """
    folder = tempfile.mkdtemp(prefix="countless-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    config.CACHE_DIR = folder  # type: ignore[attr-defined]
    logger.warning(
        "no folder can be written in which compiled code is kept: it is in %s until this process "
        "ends, and the next one compiles again; NUMBA_CACHE_DIR names a folder that can",
        folder,
    )


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
    part = stamp.with_suffix(f".{os.getpid()}")
    part.write_text(digest.hexdigest())
    os.replace(part, stamp)  # atomic: no reader sees a partial file
