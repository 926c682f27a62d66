"""Unbounded standard input, which Ctrl-C or SIGTERM ends between two rows."""

import hashlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .._errors import InputError

PIECE_BYTES = 2**16
PIECES_AHEAD = 8
POLL_SECONDS = 0.1


class StandardInput:
    """Chunks of standard input, each of complete lines but the last.

    The first signal ends the input: complete lines are yielded, a partial line is discarded. A
    second signal has its default effect. A thread reads ahead by a bounded amount, so that the main
    thread can receive signals.
    """

    def __init__(self) -> None:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed")
        self.stopped = False
        self._digest = hashlib.sha256()
        self._queue: queue.Queue[bytes] = queue.Queue(PIECES_AHEAD)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StandardInput":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        threading.Thread(target=self._read_on, args=(_reader(),), daemon=True).start()
        return self

    def __exit__(self, *details: object) -> None:
        self._restore()

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        while True:
            try:
                piece = self._queue.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if self.stopped:
                    return
                continue
            if not piece:
                if rest:
                    # Ctrl-C also stops the writing process: a partial last line may be truncated.
                    time.sleep(2 * POLL_SECONDS)
                if not self.stopped:
                    yield rest
                return
            self._digest.update(piece)
            lines, newline, rest = (rest + piece).rpartition(b"\n")
            if newline:
                yield lines + newline

    def sha256(self) -> str:
        """Return the digest of all input."""
        return self._digest.hexdigest()

    def _read_on(self, read: Callable[[], bytes]) -> None:
        piece = b"more"
        while piece and not self.stopped:
            try:
                piece = read()
            except (OSError, ValueError):  # closed by the other process, or at exit
                piece = b""
            while not self.stopped:
                try:
                    self._queue.put(piece, timeout=POLL_SECONDS)
                    break
                except queue.Full:
                    continue

    def _stop(self, number: int, frame: object) -> None:
        self.stopped = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()


def _reader() -> Callable[[], bytes]:
    """Return an unbuffered read function: a buffer's lock could block the interpreter's exit."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, AttributeError):
        return lambda: sys.stdin.buffer.read(PIECE_BYTES)
    return lambda: os.read(descriptor, PIECE_BYTES)
