"""Files that are private to the person: traces, saved runs and run stores hold questions, rows and prompts. And the
folder where such things are."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from decisor.errors import SetupError

PRIVATE = 0o600


def data_folder() -> Path:
    """``$XDG_DATA_HOME/decisor``, or ``~/.local/share/decisor``."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "decisor"


def make_folder(folder: Path) -> None:
    """Its owner's alone, where it is not there. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> TextIO:
    """For writing text. A new file is its owner's alone; one that is there keeps its mode. Raises OSError."""
    return open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, PRIVATE))


def write_private(path: Path, text: str) -> None:
    """All of a text, or nothing: what was there stays until the new one is on the disk, and keeps its mode. A link
    leads to its file. What is no plain file, or where no other may be made beside it, is written to as it is. Raises
    OSError."""
    place = Path(os.path.realpath(path))
    if (place.exists() and not place.is_file()) or not os.access(place.parent, os.W_OK):
        with open_private(path) as file:
            file.write(text)
        return
    aside = place.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with open_private(aside) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if place.exists():
            aside.chmod(stat.S_IMODE(place.stat().st_mode))
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)


def check_place(path: Path, otherwise: str) -> None:
    """Can a file be written there? So that nothing is paid for before it turns out that it cannot. Raises SetupError
    that ends with ``otherwise``: what to do."""
    place = path if path.exists() else path.parent
    if path.is_dir() or not os.access(place, os.W_OK):
        why = (
            "it is a folder"
            if path.is_dir()
            else "you may not write there"
            if place.exists()
            else f"there is no folder {place}"
        )
        raise SetupError(f"Cannot write {path}: {why}. {otherwise}")


def create_private(path: Path) -> None:
    """An empty file, its owner's alone, where there is none. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, PRIVATE))


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """While a file is read and written anew, whoever else would change a file of its folder so waits. A file system
    without locks is done without."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
