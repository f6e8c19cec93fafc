"""A short name for what a text says, such as the files that something in the cache was made from."""

from __future__ import annotations

import hashlib


def digest(text: str) -> str:
    """Twelve hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
