"""The folder for what can be made again (example worlds, indexes of corpora), and stamps by which it is known."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/decisor``, or ``~/.cache/decisor``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "decisor"


def stamp_of(*parts: str | bytes) -> bytes:
    """16 bytes that stand for a content."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()
