"""The folder where benchmarks and examples keep what takes long to make, such as the index of a corpus."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/decisor``, or ``~/.cache/decisor``, or a temporary one where there is no home to write to."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if os.access(next(path for path in (folder, *folder.parents) if path.exists()), os.W_OK):
        return folder / "decisor"
    return Path(tempfile.gettempdir()) / f"decisor-{os.environ.get('USER', 'cache')}"


def digest(text: str) -> str:
    """Twelve hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
