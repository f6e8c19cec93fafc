"""Files that are private to the person: traces, saved runs and run stores hold questions, rows and prompts. And the
folder where such things are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

PRIVATE = 0o600


def data_folder() -> Path:
    """``$XDG_DATA_HOME/decisor``, or ``~/.local/share/decisor``."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "decisor"


def make_folder(folder: Path) -> None:
    """Its owner's alone, where it is not there. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> TextIO:
    """For writing text. A new file is its owner's alone; one that is there keeps its mode. Raises OSError."""
    return open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, PRIVATE))


def create_private(path: Path) -> None:
    """An empty file, its owner's alone, where there is none. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, PRIVATE))
