"""``--help`` for the scripts without options: the head of the file."""

from __future__ import annotations

import sys


def words(about: str | None) -> list[str]:
    """The arguments; with ``--help`` among them, prints ``about`` and ends."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(about)
        sys.exit(0)
    return sys.argv[1:]
