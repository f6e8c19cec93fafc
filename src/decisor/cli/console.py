"""Where the command prints: as wide as the terminal is; into a file or a pipe without wrapping.

All that the command prints goes through here, and is cleaned: a row, a model file or an LLM must not steer a terminal.
``clean_output`` does it for whatever writes to standard output and standard error, ``console`` for styled text, whose
styles are ours.
"""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, TextIO

from decisor.encoding import finite
from decisor.render.text import clean

if TYPE_CHECKING:
    from rich.console import Console

UNWRAPPED = 100_000


class CleanOutput(io.TextIOWrapper):
    """A stream of the process, cleaned. ``styled``: the one below, for what is clean but for our own styles."""

    def __init__(self, stream: io.TextIOWrapper, errors: str) -> None:
        super().__init__(stream.buffer, encoding=stream.encoding, errors=errors, write_through=True)
        stream.reconfigure(errors=errors)
        self.styled = stream

    def write(self, text: str) -> int:
        super().write(clean(text))
        return len(text)


def clean_output() -> None:
    """From here on clean what is printed. Characters that a terminal or pipe cannot hold are replaced."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not isinstance(sys.stdout, CleanOutput):
        sys.stdout = CleanOutput(sys.stdout, "replace")
    if isinstance(sys.stderr, io.TextIOWrapper) and not isinstance(sys.stderr, CleanOutput):
        sys.stderr = CleanOutput(sys.stderr, "backslashreplace")


def styled(stream: TextIO) -> TextIO:
    """Return the stream below one that cleans."""
    return stream.styled if isinstance(stream, CleanOutput) else stream


def rewrite_line(text: str, is_last: bool) -> None:
    """Write over the line of standard error that was written so before."""
    print(f"\r{clean(text)}", end="\n" if is_last else "", file=styled(sys.stderr), flush=True)


def print_json(value: object) -> None:
    """Print one line of JSON, without NaN and Infinity. What could steer a terminal is escaped, so nothing is lost."""
    text = json.dumps(finite(value), ensure_ascii=False, allow_nan=False, default=str)
    print(text if clean(text) == text else json.dumps(finite(value), allow_nan=False, default=str))


def console(columns: int = UNWRAPPED) -> Console:
    """``columns``: the width where standard output is no terminal."""
    return clean_console(sys.stdout, None if sys.stdout.isatty() else columns)


def progress(out: Console) -> Console:
    """Where a run tells how it goes on: on the terminal that its result is printed on; on standard error where the
    result goes into a file or a pipe, which then holds the result alone."""
    return out if out.is_terminal else error_console(UNWRAPPED)


def error_console(columns: int | None = None) -> Console:
    """``columns``: the width where standard error is no terminal."""
    return clean_console(sys.stderr, None if sys.stderr.isatty() else columns)


def clean_console(stream: TextIO, width: int | None) -> Console:
    from collections.abc import Iterable

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class CleanConsole(Console):
        """Styles and movements of the cursor are our own; the text between them is not."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=clean(segment.text))

    return CleanConsole(file=styled(stream), highlight=False, markup=False, width=width)
