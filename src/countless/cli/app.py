"""The command group and its error handling.

An error in the user's input is one line on standard error and exit code 2; an interrupt is 130; an
internal error keeps its traceback.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from .. import __version__
from .._errors import InputError

INTERRUPTED = 130


class Commands(click.Group):
    """A click group whose errors are one line each.

    Examples
    --------
    >>> Commands("countless", commands=[]).name
    'countless'
    """

    def __init__(self, name: str, *, commands: Sequence[click.Command], **settings: Any) -> None:
        super().__init__(
            name,
            commands=commands,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            **settings,
        )
        click.version_option(__version__, prog_name="countless")(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the documentation."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run one command, and exit quietly if its output is closed."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            # Discard buffered output; Python would report the closed pipe at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        return result

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the command line, and convert errors to one line and an exit code."""
        for stream in (sys.stdout, sys.stderr):
            # A terminal that lacks a character shows its code instead of raising an error.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        settings["standalone_mode"] = False
        try:
            code = super().main(*args, **settings)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _fail(error.format_message())
        except InputError as error:
            _fail(str(error))
        except MemoryError as error:
            from .._memory import lack_of_memory

            _fail(lack_of_memory(error))
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    from .._report.plain import printable

    click.echo(f"error: {printable(' '.join(message.split()))}", err=True)
    sys.exit(2)
