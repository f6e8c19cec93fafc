"""Where runs are kept: a folder that only its owner can open."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """``$XDG_DATA_HOME/decisor``, or ``~/.local/share/decisor``."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "decisor"


def make_folder(folder: Path) -> None:
    """Raises OSError where it cannot be made."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
