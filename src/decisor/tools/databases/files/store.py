"""The store that files are read into: one DuckDB file in the cache, named after what the files hold.

A file's digest is remembered with its size and times, so that files which did not change are not read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor import child_process
from decisor.cache import cache_folder
from decisor.errors import SetupError
from decisor.log import logger
from decisor.private_file import open_private
from decisor.tools.databases.files.limits import reason_of_end
from decisor.tools.databases.files.places import Files, Part, files_of

VERSION = 4
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
    files = files_of(place)
    folder = stores()
    path = folder / f"{digest_of(files, folder)}.duckdb"
    report = path.with_suffix(".json")
    if not (path.is_file() and report.is_file()):
        began = time.monotonic()
        load(files, path, report)
        logger.info("read %s in %.1f s", place, time.monotonic() - began)
        prune(folder, path)
    for file in (path, report):
        os.utime(file)
    return Store(f"duckdb:///{path}", (*files.left_out, *json.loads(report.read_text("utf-8"))["notes"]))


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


def digest_of(files: Files, folder: Path) -> str:
    """Of the names of the tables and all that the files hold."""
    known = read_known(folder / "digests.json")
    whole = hashlib.blake2b(f"{VERSION} {files.decimal} {files.dates}".encode(), digest_size=16)
    now: dict[str, list[object]] = {}
    for part in files.parts:
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
    write_whole(path, dict(list(known.items())[-MOST_KNOWN:]))


def write_whole(path: Path, content: object) -> None:
    """Nobody who reads it at the same time, in this process or another, sees a part of it."""
    fresh = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with open_private(fresh) as file:
        json.dump(content, file, ensure_ascii=False)
    fresh.replace(path)


MOST_KNOWN = 100_000


def load(files: Files, path: Path, report: Path) -> None:
    """In a process of its own, with no more than the files at hand. The store is there whole, or not at all."""
    fresh = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.new")
    try:
        reply = read_parts(files, files.parts, fresh)
        if "notes" not in reply and "error" not in reply and len(files.parts) > 1:
            reply = read_survivors(files, fresh)
        if "notes" not in reply:
            names = ", ".join(Path(name).name for part in files.parts for name in part.paths[:3])
            raise SetupError(str(reply.get("error") or f"{names}: {reply['end']}"))
        fresh.chmod(0o600)
        write_whole(report, reply)
        fresh.replace(path)
    finally:
        remove_store(fresh)


def read_parts(files: Files, parts: Sequence[Part], fresh: Path) -> dict[str, object]:
    """Return the "notes" or the "error" of a reader; "end": how it ended without either."""
    job = {"target": str(fresh), "decimal": files.decimal, "dates": files.dates,
           "parts": [[part.name, part.kind, part.paths] for part in parts]}  # fmt: skip
    ended = child_process.run("decisor.tools.databases.files.load", json.dumps(job).encode())
    lines = ended.stdout.splitlines()
    if lines:
        reply: dict[str, object] = json.loads(lines[-1])
        return reply
    return {"end": reason_of_end(ended.returncode, ended.stderr.decode(errors="replace"))}


def read_survivors(files: Files, fresh: Path) -> dict[str, object]:
    """Read once more, without the files that end their reader by themselves."""
    notes: list[str] = []
    survivors: list[Part] = []
    for part in files.parts:
        remove_store(fresh)
        reply = read_parts(files, [part], fresh)
        if "notes" not in reply:
            names = ", ".join(Path(path).name for path in part.paths[:3])
            notes.append(
                f"Left out: {names}{', ...' if len(part.paths) > 3 else ''}: {reply.get('end') or reply['error']}"
            )
        else:
            survivors.append(part)
    remove_store(fresh)
    if not survivors:
        return {"error": notes[0]}
    reply = read_parts(files, survivors, fresh)
    known = reply.get("notes")
    return {"notes": [*notes, *known]} if isinstance(known, list) else reply


def remove_store(fresh: Path) -> None:
    for rest in fresh.parent.glob(f"{fresh.name}*"):
        if rest.is_dir():  # scratch of a reader that was killed
            shutil.rmtree(rest, ignore_errors=True)
        else:
            rest.unlink(missing_ok=True)


def prune(folder: Path, latest: Path) -> None:
    """Older stores beyond ``MOST_BYTES`` go."""
    paths = sorted(folder.glob("*.duckdb"), key=lambda path: path.stat().st_mtime, reverse=True)
    size = 0
    for path in paths:
        size += path.stat().st_size
        if size > MOST_BYTES and path != latest:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)
