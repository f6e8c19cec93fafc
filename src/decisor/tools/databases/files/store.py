"""The store that files are read into: one DuckDB file in the cache, named after what the files hold.

A file's digest is remembered with its size and times, so that files which did not change are not read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor import child_process
from decisor.cache import cache_folder
from decisor.errors import SetupError
from decisor.log import logger
from decisor.outside import one_line
from decisor.private_file import open_private
from decisor.secrets import redact
from decisor.tools.databases.files.places import Part, parts_of

VERSION = 2
MOST_BYTES = 20 * 2**30
"""Of all stores together; those that were not used for longest go first."""
CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Store:
    """``url``: of the database. ``notes``: what was read, what was guessed, and what could not be read."""

    url: str
    notes: tuple[str, ...]


def store_of(place: str) -> Store:
    """Read now, or found as it was read before.

    Raises:
        SetupError: there are no such files, or one cannot be read.
    """
    parts = parts_of(place)
    folder = stores()
    path = folder / f"{digest_of(parts, folder)}.duckdb"
    report = path.with_suffix(".json")
    if not (path.is_file() and report.is_file()):
        began = time.monotonic()
        load(parts, path, report)
        logger.info("read %s in %.1f s", place, time.monotonic() - began)
        prune(folder, path)
    for one in (path, report):
        os.utime(one)
    return Store(f"duckdb:///{path}", tuple(json.loads(report.read_text("utf-8"))["notes"]))


def stores() -> Path:
    folder = cache_folder() / "files"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SetupError(
            f"Cannot make {folder}, which holds what is read from files: {error.strerror}. "
            "Set XDG_CACHE_HOME to a folder that can be written."
        ) from error
    return folder


def digest_of(parts: Sequence[Part], folder: Path) -> str:
    """Of the names of the tables and all that the files hold."""
    known = read_known(folder / "digests.json")
    whole = hashlib.blake2b(f"{VERSION}".encode(), digest_size=16)
    now: dict[str, list[object]] = {}
    for part in parts:
        whole.update(json.dumps([part.name, part.kind, [Path(path).name for path in part.paths]]).encode())
        for path in part.paths:
            state = stamp(path)
            before = known.get(path)
            digest = before[1] if before and before[0] == state else content_digest(path)
            now[path] = [state, digest]
            whole.update(str(digest).encode())
    if any(known.get(path) != entry for path, entry in now.items()):
        write_known(folder / "digests.json", {**known, **now})
    return whole.hexdigest()


def stamp(path: str) -> list[int]:
    """Raises SetupError where the file cannot be read."""
    try:
        state = os.stat(path)  # noqa: PTH116
    except OSError as error:
        raise SetupError(f"Cannot read {path}: {error.strerror}.") from error
    return [state.st_size, state.st_mtime_ns, state.st_ino]


def content_digest(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise SetupError(f"Cannot read {path}: {error.strerror}.") from error


def read_known(path: Path) -> dict[str, list[object]]:
    try:
        known = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_known(path: Path, known: dict[str, list[object]]) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with open_private(fresh) as file:
        json.dump(dict(list(known.items())[-MOST_KNOWN:]), file)
    fresh.replace(path)


MOST_KNOWN = 100_000


def load(parts: Sequence[Part], path: Path, report: Path) -> None:
    """In a process of its own, with no more than the files at hand. The store is there whole, or not at all."""
    fresh = path.with_name(f"{path.stem}.{os.getpid()}.new")
    job = {"target": str(fresh), "parts": [[part.name, part.kind, part.paths] for part in parts]}
    try:
        ended = child_process.run("decisor.tools.databases.files.load", json.dumps(job).encode())
        lines = ended.stdout.splitlines()
        reply = json.loads(lines[-1]) if lines else {}
        if "notes" not in reply:
            raise SetupError(reply.get("error") or why_it_ended(ended))
        fresh.chmod(0o600)
        with open_private(report) as file:
            json.dump(reply, file, ensure_ascii=False)
        fresh.replace(path)
    finally:
        for rest in path.parent.glob(f"{fresh.name}*"):
            rest.unlink(missing_ok=True)


def why_it_ended(ended: subprocess.CompletedProcess[bytes]) -> str:
    """Of a reader that gave no reply: a signal and a MemoryError are limits, anything else says itself what it is."""
    lines = ended.stderr.decode(errors="replace").splitlines()
    if ended.returncode > 0 and lines and "MemoryError" not in lines[-1]:
        return f"The files cannot be read: {redact(one_line(lines[-1], 300))}"
    return "Reading the files took too much memory or time. Name fewer files."


def prune(folder: Path, latest: Path) -> None:
    """Older stores beyond ``MOST_BYTES`` go."""
    paths = sorted(folder.glob("*.duckdb"), key=lambda path: path.stat().st_mtime, reverse=True)
    size = 0
    for path in paths:
        size += path.stat().st_size
        if size > MOST_BYTES and path != latest:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)
