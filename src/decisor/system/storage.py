"""Files that are private to the person, and the folders of data and cache.

Traces, saved runs and run stores hold questions, rows and prompts, so their files are for their owner alone. The cache
folder holds what can be made again (example worlds, indexes of corpora), known by stamps of its content.
"""

from __future__ import annotations

import hashlib
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
    """Return the data folder: ``$XDG_DATA_HOME/decisor``, or ``~/.local/share/decisor``."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "decisor"


def make_private_folder(folder: Path) -> None:
    """Create a folder for its owner alone, if it is missing. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> TextIO:
    """Open a file for writing text.

    A new file is for its owner alone; an existing file keeps its mode. Raises OSError.
    """
    return open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, PRIVATE))


def write_private(path: Path, text: str) -> None:
    """Write a whole text, or nothing.

    The old content stays until the new one is on the disk, and the file keeps its mode. A link leads to its file. If
    the path is no plain file, or no other file may be made beside it, it is written to directly. Raises OSError.
    """
    # A rename onto a link would replace the link and leave its file as it was.
    place = Path(os.path.realpath(path))
    # /dev/stdout and pipes cannot be renamed over, and some folders let a file be changed but none be made.
    if (place.exists() and not place.is_file()) or not os.access(place.parent, os.W_OK):
        with open_private(path) as file:
            file.write(text)
        return
    aside = place.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with open_private(aside) as file:
            file.write(text)
            file.flush()
            # Before the rename, or a power cut could leave the new name with no content.
            os.fsync(file.fileno())
        if place.exists():
            aside.chmod(stat.S_IMODE(place.stat().st_mode))
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)


def check_writable(path: Path, otherwise: str) -> None:
    """Check that a file can be written at a path; raise SetupError if not.

    So nothing is paid for before it turns out that it cannot. otherwise: the end of the message, with the remedy.
    """
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
    """Create an empty file for its owner alone, if it is missing. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, PRIVATE))


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Lock the folder of a file while the file is read and written anew.

    Others who would change a file of it under this lock wait. A file system without locks is done without.
    """
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
            # The folder, not the file: the file is replaced by a rename, and its lock would go with the old one.
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def cache_folder() -> Path:
    """Return the cache folder: ``$XDG_CACHE_HOME/decisor``, or ``~/.cache/decisor``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "decisor"


def stamp_of(*parts: str | bytes) -> bytes:
    """Return a digest of 16 bytes that identifies a content."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        # With its length, so that ("ab", "c") and ("a", "bc") differ.
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()
