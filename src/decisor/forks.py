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
PACKAGE = __file__.removesuffix("forks.py")
WAIT_SECONDS = 60.0
STEP_SECONDS = 0.001


def register_wait() -> None:
    """See to it that a fork begins while no other thread imports for us. A fork out of an import does not wait, and
    none waits for the imports of others."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=wait_for_imports)


def wait_for_imports() -> None:
    ends = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends:
        frames = sys._current_frames()
        is_ours = is_importing(frames.pop(get_ident(), None))
        if is_ours or not any(is_importing(frame, PACKAGE) for frame in frames.values()):
            return
        del frames  # they hold on to what the threads work on
        time.sleep(STEP_SECONDS)


def is_importing(frame: FrameType | None, package: str = "") -> bool:
    """Whether a thread that has come to this frame is within an import that code of a folder began, or any code."""
    is_import = False
    while frame is not None:
        file = frame.f_code.co_filename
        is_import = is_import or file == IMPORTING
        if is_import and file.startswith(package):
            return True
        frame = frame.f_back
    return False
