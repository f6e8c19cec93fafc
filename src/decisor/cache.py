"""The folder for what can be made again: example worlds, indexes of corpora."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/decisor``, or ``~/.cache/decisor``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "decisor"
