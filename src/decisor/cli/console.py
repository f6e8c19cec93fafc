"""Where the command prints: as wide as the terminal is; into a file or a pipe without wrapping."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

UNWRAPPED = 100_000


def console(columns: int = UNWRAPPED) -> Console:
    """``columns``: the width where standard output is no terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else columns)


def progress(out: Console) -> Console:
    """Where a run tells how it goes on: on the terminal that its result is printed on; on standard error where the
    result goes into a file or a pipe, which then holds the result alone."""
    if out.is_terminal:
        return out
    from rich.console import Console

    return Console(highlight=False, stderr=True, width=None if sys.stderr.isatty() else UNWRAPPED)
