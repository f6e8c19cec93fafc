"""A lock on the trace of a run that is under way: the kernel lets go of it when its process ends, in whatever way."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

if sys.platform != "win32":
    import fcntl

    def lock(file: TextIO) -> None:
        """Until the file is closed. A file system without locks is done without."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return

    def is_locked(path: Path) -> bool:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(file)
        return False

else:

    def lock(file: TextIO) -> None:
        """There are no such locks."""

    def is_locked(path: Path) -> bool:
        return False
