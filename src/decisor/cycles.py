"""How often Python looks for objects that only hold each other."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def seldom_collected() -> Iterator[None]:
    """For a process that is ours, not for a library's call. Python looks for cycles after every 700 new objects. With
    hundreds of cases or runs under way nearly all of them are in use, and each look costs the more the more there are.
    """
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
