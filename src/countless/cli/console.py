"""Console output of a command: results on stdout, everything else on stderr."""

import json
import logging
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from .._report.plain import printable
from .schema import VERSION

COMPILING = "compiling, once after installation"
# Warnings about code, not about data, that users cannot act on.
_FOR_DEVELOPERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


class _Results(Console):
    """Ignores a closed pipe: the run continues, as it has files to write."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Screen:
    """Output of results, notes and warnings, and the duration of each step.

    Examples
    --------
    >>> screen = Screen(quiet=True)
    >>> with screen.step("thinking"):
    ...     pass
    >>> list(screen.seconds)
    ['thinking']
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        settings: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        self.out = _Results(**settings)
        self.err = Console(stderr=True, **settings)
        self.quiet = quiet
        self.as_json = as_json
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []

    @property
    def can_ask(self) -> bool:
        """Whether somebody reads questions and can answer them."""
        streams = (sys.stdin, sys.stderr)
        there = all(stream is not None and stream.isatty() for stream in streams)
        return there and not (self.quiet or self.as_json)

    @contextmanager
    def step(self, name: str, doing: str | None = None) -> Iterator[Callable[[str], None]]:
        """Time one step, show that it runs, and collect its warnings.

        Yields a function that shows the progress of the step.
        """
        doing = printable(doing or name)
        shown = self.err.status(Text(doing)) if not self.quiet else None

        def say(progress: str) -> None:
            if shown:
                shown.update(Text(f"{doing}: {progress}"))

        start = time.perf_counter()
        if shown:
            shown.start()
        try:
            with (
                _hearing("countless.compilations", lambda _: say(COMPILING)),
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("default")
                for category in _FOR_DEVELOPERS:
                    warnings.simplefilter("ignore", category)
                yield say
        finally:
            if shown:
                shown.stop()
            self.seconds[name] = round(time.perf_counter() - start, 4)
        for warning in caught:
            self.warn(in_option_terms(str(warning.message)))

    def show(self, *lines: RenderableType) -> None:
        """Print a part of the human-readable result."""
        if not (self.quiet or self.as_json):
            for line in lines:
                self.out.print(Text(printable(line)) if isinstance(line, str) else line)

    def note(self, message: str) -> None:
        """Print a note that does not affect the result."""
        if not (self.quiet or self.as_json):
            self.err.print(Text(f"note: {printable(message)}", style="dim"), soft_wrap=True)

    @contextmanager
    def hear(self, logger: str) -> Iterator[None]:
        """Show the messages of a logger as notes."""
        with _hearing(logger, self.note):
            yield

    def warn(self, message: str) -> None:
        """Print a warning that affects the trust in the result."""
        message = " ".join(message.split())
        if message not in self.warnings:
            self.warnings.append(message)
            self.err.print(Text(f"warning: {printable(message)}", style="yellow"), soft_wrap=True)

    def finish(self, record: dict[str, Any]) -> None:
        """Print the machine-readable result, if requested."""
        if self.as_json:
            self.out.file.write(to_json({"schema": VERSION, **record}))


@contextmanager
def _hearing(logger: str, receive: Callable[[str], None]) -> Iterator[None]:
    """Pass the messages of a logger to a function."""
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: receive(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger(logger)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


def in_option_terms(message: str) -> str:
    """Rename an estimator's parameters in a message to the options of the command.

    Examples
    --------
    >>> in_option_terms("CrossCat's chains disagree; raise n_sweeps, or call resume()")
    "CrossCat's chains disagree; raise --sweeps"
    """
    return re.sub(r"\bn_(sweeps|chains)\b", r"--\1", message.replace(", or call resume()", ""))


def to_json(value: Any) -> str:
    """Write a result as JSON; a number that is not finite becomes null.

    Examples
    --------
    >>> import numpy as np
    >>> print(to_json({"a": np.float64(0.5), "b": float("inf")}), end="")
    {
     "a": 0.5,
     "b": null
    }
    """
    return json.dumps(_plain(value), indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if is_dataclass(value) and not isinstance(value, type):  # a prior and its parts
        value = {"class": type(value).__name__, **vars(value)}
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
