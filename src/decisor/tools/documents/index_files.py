"""How an index lies on disk, so that it is whole at every moment.

    INDEX/CURRENT        the number of the generation that counts, replaced by one rename
    INDEX/lock           held while an index is built; the system lets it go when the builder dies
    INDEX/7/             a generation: about.json, words/ (tantivy), documents.db, vectors (where dense)

A builder works in a new generation and switches CURRENT at the end: killed before that, the old one still counts, and
what was left over is removed by the next builder.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from decisor.errors import SetupError

FORMAT = 2
OURS = ("lock", "embedded.db", "embedded.db-journal", "CURRENT.new")


@dataclass(frozen=True, slots=True)
class About:
    """What an index is. ``embedder`` is its name, '' where there are no vectors; ``width`` is their dimension."""

    passages: int = 0
    documents: int = 0
    next_number: int = 0
    language: str = "english"
    embedder: str = ""
    width: int = 0
    words: int = 100
    format: int = FORMAT


def is_index(path: Path) -> bool:
    return (path / "CURRENT").is_file()


def current(path: Path) -> int:
    """The number of the generation that counts; 0 where there is none yet."""
    try:
        return int((path / "CURRENT").read_text("ascii"))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        raise SetupError(f"The index in {path} is damaged: remove {path} and build it again.") from error


def read_about(folder: Path) -> About:
    """Raises SetupError where it is damaged, or from a newer version."""
    try:
        about = About(**json.loads((folder / "about.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(f"The index in {folder} cannot be read: {error}. Build it again.") from error
    if about.format != FORMAT:
        raise SetupError(f"The index in {folder} has format {about.format}, not {FORMAT}: build it again.")
    return about


def write_about(folder: Path, about: About) -> None:
    write_durably(folder / "about.json", json.dumps(asdict(about), indent=1))


def write_durably(path: Path, text: str) -> None:
    """Either the old or the new content is there after a crash."""
    aside = path.with_name(f"{path.name}.new")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One builder at a time. Raises SetupError where another one is at work, or the folder holds something else."""
    import fcntl

    if path.exists() and not is_index(path) and not _only_ours(path):
        raise SetupError(f"{path} holds something that is no index: name another place for it with --out.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = (path / "lock").open("a")
    except OSError as error:
        raise SetupError(f"No index can be made in {path}: {error.strerror}.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SetupError(f"{path} is being built by another process: wait for it to end.") from error
        yield


def _only_ours(path: Path) -> bool:
    """Empty, or what a builder that was killed in its first build left."""
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else {"a file"}
    return not names or ("lock" in names and all(name.isdigit() or name in OURS for name in names))


def clean(path: Path, keep: int) -> None:
    """Remove every generation but one. Readers that have it open go on reading."""
    for entry in path.iterdir():
        if entry.is_dir() and entry.name.isdigit() and int(entry.name) != keep:
            shutil.rmtree(entry, ignore_errors=True)


def switch(path: Path, number: int) -> None:
    """From here on this generation counts."""
    for folder, _, names in os.walk(path / str(number)):
        for name in names:
            handle = os.open(Path(folder) / name, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        sync_folder(Path(folder))
    write_durably(path / "CURRENT", f"{number}\n")
