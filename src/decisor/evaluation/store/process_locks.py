"""Which processes work on a run store: each holds a lock on a file of its own, which ends with the process."""

from __future__ import annotations

import fcntl
import glob
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Owner:
    """A held lock. ``number`` is given once in the life of a store."""

    number: int
    path: Path
    file: int

    @staticmethod
    def take(store: Path, number: int) -> Owner:
        path = lock_of(store, number)
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(file).st_ino:
                    return Owner(number, path, file)
            os.close(file)  # somebody swept it away before it was locked

    def leave(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.file)


def lock_of(store: Path, number: int) -> Path:
    return store.with_name(f"{store.name}-owner-{number}")


def living(store: Path, number: int, me: Owner | None = None) -> bool:
    """Whether the owner of that number still runs. The file that a dead one left is taken away."""
    if me is not None and me.number == number:
        return True
    path = lock_of(store, number)
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(file)


def sweep(store: Path) -> None:
    """Take away what dead owners left."""
    for path in store.parent.glob(f"{glob.escape(store.name)}-owner-*"):
        living(store, int(path.name.rpartition("-")[2]))
