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
