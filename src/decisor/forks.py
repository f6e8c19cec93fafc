"""A fork of a process whose threads import: it waits for them, or the child would wait for ever.

A thread holds the lock of a module while it imports it. A child has the lock and not the thread, so its own import of
that module never ends (CPython resets only the lock of the whole import system). The first question imports most of us.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident  # threading and typing would take longer to import than all of this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

IMPORTING = "<frozen importlib._bootstrap>"
WAIT_SECONDS = 5.0
STEP_SECONDS = 0.001


def register_wait() -> None:
    """See to it that a fork begins while no other thread imports. A fork out of an import does not wait."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=wait_for_imports)


def wait_for_imports() -> None:
    ends = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends:
        frames = sys._current_frames()
        is_ours = is_importing(frames.pop(get_ident(), None))
        if is_ours or not any(map(is_importing, frames.values())):
            return
        del frames  # they hold on to what the threads work on
        time.sleep(STEP_SECONDS)


def is_importing(frame: FrameType | None) -> bool:
    """Whether a thread that has come to this frame is within an import."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORTING:
            return True
        frame = frame.f_back
    return False
