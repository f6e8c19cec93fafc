"""The store that files are read into: one DuckDB file in the cache, named after the content of the files.

A place is a file, a folder, or a pattern such as ``data/*.parquet``. Files of one kind that a pattern names, or whose
names in a folder differ in digits only, are parts of one table if their columns agree. A file's digest is remembered
with its size and times, so that unchanged files are not read again. DataFrames (pandas, polars, Arrow) become tables
of a store that lives as long as the object that holds it. A process of its own does the reading.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisor.errors import SetupError
from decisor.system import processes as child_process
from decisor.system.extras import logger
from decisor.system.secrets import hide_password
from decisor.system.storage import cache_folder, write_private
from decisor.system.text import quote_identifier

KINDS = {
    ending: kind
    for kind, endings in {
        "csv": ".csv .tsv .tab",
        "json": ".json .jsonl .ndjson",
        "parquet": ".parquet .pq",
        "excel": ".xlsx .xlsm .xls .xlsb .ods",
        "sqlite": ".db .sqlite .sqlite3 .db3",
        "duckdb": ".duckdb .ddb",
    }.items()
    for ending in endings.split()
}
"""How a file is read, by the ending of its name. ``.gz`` may follow those of CSV and JSON."""
DATABASES = ("sqlite", "duckdb")
MAX_FILES = 10_000
PATTERN = re.compile(r"[*?\[]")
HABITS = {"decimal": {"comma": ",", "point": "."}, "dates": {"day": "day", "month": "month"}}
"""What may follow the name of a file after #, and what it means."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """Files that are read alike."""

    name: str
    """Of their table; for a workbook of several sheets or a database, the tables have names of their own."""
    kind: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a place names."""

    parts: tuple[FilePart, ...]
    decimal: str = ""
    """The decimal separator of its texts, "," or "."; '' if the person does not say."""
    dates: str = ""
    """"day" or "month": which goes first in its dates; '' if the person does not say."""
    left_out: tuple[str, ...] = ()


def split_file_options(place: str) -> tuple[str, dict[str, str]]:
    """Return the path of a place, and how its numbers and dates are written.

    >>> split_file_options("sales.csv#decimal=comma,dates=day")
    ('sales.csv', {'decimal': ',', 'dates': 'day'})

    Raises:
        SetupError: a word after # means nothing.
    """
    path, mark, words = place.rpartition("#")
    # The name of a file may have a # in it.
    if not mark or "=" not in words or Path(place).exists():
        return place, {}
    habits: dict[str, str] = {}
    for word in words.split(","):
        name, _, choice = word.strip().partition("=")
        if choice not in HABITS.get(name, {}):
            raise SetupError(
                f"Unknown {word.strip()!r} after the name of a file. Write #decimal=comma or "
                "#decimal=point, #dates=day or #dates=month."
            )
        habits[name] = HABITS[name][choice]
    return path, habits


def file_kind(path: str | Path) -> str:
    """Return the kind of a file by the ending of its name; '' if it is no file of data.

    >>> file_kind("a/sales.CSV"), file_kind("log.jsonl.gz"), file_kind("notes.txt")
    ('csv', 'json', '')
    """
    ending, *before = [one.lower() for one in reversed(Path(path).suffixes)] or [""]
    if ending == ".gz" and before:
        kind = KINDS.get(before[0], "")
        return kind if kind in ("csv", "json") else ""
    return KINDS.get(ending, "")


def names_files(place: str) -> bool:
    """Return whether a place is read as files. One file with a database is not: it is queried where it is.

    >>> names_files("sales.csv"), names_files("data/*.parquet"), names_files("shop.db"), names_files("bolt://host")
    (True, True, False, False)
    """
    if "://" in place:
        return False
    place = split_file_options(place)[0]
    return bool(PATTERN.search(place)) or file_kind(place) not in ("", *DATABASES) or Path(place).is_dir()


def find_data_files(place: str) -> Files:
    """Return the data files of a place. A link in a folder that leads out of the folder is not followed.

    >>> find_data_files("nowhere.csv")
    Traceback (most recent call last):
    decisor.errors.SetupError: There is no file nowhere.csv. Check the path.

    Raises:
        SetupError: there is nothing, or too much.
    """
    place, habits = split_file_options(place)
    root = Path(place)
    if root.is_file():
        part = FilePart(table_name_of_file(root), file_kind(root), (str(root.absolute()),))
        return Files((part,), left_out=(), **habits)
    if root.is_dir():
        # Hidden files, and ~$ as Office names its locks.
        hidden = (".", "~$")
        paths = [
            path
            for path in root.rglob("*")
            if not any(part.startswith(hidden) for part in path.relative_to(root).parts)
        ]
        base = inside = root
    elif PATTERN.search(place):
        paths = [Path(name) for name in glob.glob(place, recursive=True)]  # noqa: PTH207
        base = Path(PATTERN.split(place)[0])
        inside = base if place[: len(str(base)) + 1].endswith("/") else base.parent
    else:
        raise SetupError(f"There is no file {hide_password(place)}. Check the path.")
    real = inside.resolve()
    readable, left_out = [], []
    for path in sorted(path for path in paths if file_kind(path)):
        # A link in the folder could otherwise show any file of this account to the LLM.
        if not is_inside_folder(path, real):
            left_out.append(f"Left out: {path} is a link that leads out of {inside}, or to nothing: name it by itself.")
        elif path.is_file():
            readable.append(path)
    if not readable:
        endings = ", ".join(KINDS)
        because = f" {left_out[0]}" if left_out else ""
        raise SetupError(
            f"{hide_password(place)} holds no file that is read as data: their names end in {endings}.{because}"
        )
    if len(readable) > MAX_FILES:
        raise SetupError(f"{place} names {len(readable):,} files, more than {MAX_FILES:,}: name fewer.")
    return Files(tuple(group_files(readable, base, by_digits=root.is_dir())), left_out=tuple(left_out), **habits)


def is_inside_folder(path: Path, folder: Path) -> bool:
    """Return whether a path exists and no link in it leads out of the folder."""
    try:
        return path.resolve(strict=True).is_relative_to(folder)
    except (OSError, RuntimeError):
        return False


def group_files(paths: Iterable[Path], base: Path, by_digits: bool) -> Iterable[FilePart]:
    """Yield parts of files that have one kind and one name, in order."""
    members: dict[tuple[str, str], list[Path]] = {}
    for path in paths:
        kind = file_kind(path)
        name = table_name_of_file(path)
        if kind in ("csv", "json", "parquet"):
            name = strip_final_digits(name) if by_digits else table_name_of_file(base)
        members.setdefault((name, kind), []).append(path)
    for (name, kind), some in members.items():
        whole = table_name_of_file(some[0]) if len(some) == 1 else name
        yield FilePart(whole, kind, tuple(str(path.absolute()) for path in some))


def strip_final_digits(name: str) -> str:
    """Return a name without the digits at its end, unless nothing else is left.

    >>> strip_final_digits("sales_2024_01"), strip_final_digits("2024")
    ('sales', '2024')
    """
    return re.sub(r"[_\d]+$", "", name) or name


def table_name_of_file(path: Path | str) -> str:
    """Return the name of a table for a file: a word made of the file's own name.

    >>> table_name_of_file("data/Sales 2024.csv.gz"), table_name_of_file("data/2024-prices.csv")
    ('Sales_2024', 't_2024_prices')
    """
    stem = Path(path).name
    while Path(stem).suffix and (file_kind(stem) or Path(stem).suffix.lower() in (".gz", *KINDS)):
        stem = Path(stem).stem
    word = re.sub(r"\W+", "_", stem).strip("_") or "data"
    return f"t_{word}" if word[0].isdigit() else word


VERSION = 4
MAX_KNOWN = 100_000
"""Files whose digests are remembered."""
MAX_BYTES = 20 * 2**30
"""Of all stores together; those that were not used for longest go first."""


@dataclass(frozen=True, slots=True)
class ImportedStore:
    """A database that files were read into."""

    url: str
    """URL of the database."""
    notes: tuple[str, ...]
    """On the files that were read, on guesses, and on failures."""


def import_place(place: str) -> ImportedStore:
    """Return the store of a place; its files are read unless an earlier store holds them unchanged.

    Raises:
        SetupError: there are no such files, or one cannot be read.
    """
    files = find_data_files(place)
    folder = stores()
    path = folder / f"{digest_files(files, folder)}.duckdb"
    report = path.with_suffix(".json")
    if not (path.is_file() and report.is_file()):
        began = time.monotonic()
        run_import(files, path, report)
        logger.info("read %s in %.1f s", place, time.monotonic() - began)
        prune_stores(folder, path)
    # The stores that were not used for longest are removed first.
    for file in (path, report):
        os.utime(file)
    return ImportedStore(f"duckdb:///{path}", (*files.left_out, *json.loads(report.read_text("utf-8"))["notes"]))


def forget_place(place: str) -> None:
    """Remove the store that the files of a place were read into."""
    folder = stores()
    path = folder / f"{digest_files(find_data_files(place), folder)}.duckdb"
    for file in (path, path.with_suffix(".json")):
        file.unlink(missing_ok=True)


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


def digest_files(files: Files, folder: Path) -> str:
    """Return a digest of the table names and all content of the files. Raises SetupError if one cannot be read."""
    known: dict[str, list[object]] = {}
    with suppress(OSError, ValueError):
        known = json.loads((folder / "digests.json").read_text("utf-8"))
    digest = hashlib.blake2b(f"{VERSION} {files.decimal} {files.dates}".encode(), digest_size=16)
    now: dict[str, list[object]] = {}
    for part in files.parts:
        digest.update(json.dumps([part.name, part.kind, [Path(path).name for path in part.paths]]).encode())
        for path in part.paths:
            try:
                status = Path(path).stat()
                # A file that replaces another may have its size and time, but not its inode.
                stamp = [status.st_size, status.st_mtime_ns, status.st_ino]
                content = known[path][1] if path in known and known[path][0] == stamp else None
                if content is None:
                    with Path(path).open("rb") as file:
                        content = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
            except OSError as error:
                raise SetupError(f"Cannot read {path}: {error.strerror}.") from error
            now[path] = [stamp, content]
            digest.update(str(content).encode())
    if any(known.get(path) != entry for path, entry in now.items()):
        latest = dict(list({**known, **now}.items())[-MAX_KNOWN:])
        write_private(folder / "digests.json", json.dumps(latest, ensure_ascii=False))
    return digest.hexdigest()


def run_import(files: Files, path: Path, report: Path) -> None:
    """Read the files in a process of its own, which may use no other files. The store appears whole or not at all."""
    fresh = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.new")
    left_out: list[str] = []
    try:
        reply = import_parts(files, files.parts, fresh)
        # The process ended over one part: each is tried by itself, and the others are read without those that fail.
        if "end" in reply and len(files.parts) > 1:
            replies = [(part, import_parts(files, [part], fresh)) for part in files.parts]
            left_out = [
                f"Left out: {summarize_names([part])}: {reply.get('end') or reply['error']}"
                for part, reply in replies
                if "notes" not in reply
            ]
            readable = [part for part, reply in replies if "notes" in reply]
            reply = import_parts(files, readable, fresh) if readable else {"error": left_out[0]}
        if "notes" not in reply:
            raise SetupError(reply.get("error") or f"{summarize_names(files.parts)}: {reply['end']}")
        fresh.chmod(0o600)
        # The report comes first, for a store without one is read again.
        write_private(report, json.dumps({"notes": [*left_out, *reply["notes"]]}, ensure_ascii=False))
        fresh.replace(path)
    finally:
        remove_store(fresh)


def summarize_names(parts: Sequence[FilePart]) -> str:
    names = [Path(path).name for part in parts for path in part.paths]
    return f"{', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"


def import_parts(files: Files, parts: Sequence[FilePart], fresh: Path) -> dict[str, Any]:
    """Return the "notes" or the "error" of a reader process; "end" with the reason if it gave no reply."""
    remove_store(fresh)
    job = {
        "target": str(fresh),
        "decimal": files.decimal,
        "dates": files.dates,
        "parts": [[part.name, part.kind, part.paths] for part in parts],
    }
    ended = child_process.run_child("decisor.databases.files.import_process", json.dumps(job).encode())
    if lines := ended.stdout.splitlines():
        reply: dict[str, Any] = json.loads(lines[-1])
        return reply
    from decisor.databases.files.columns import reason_of_end

    return {"end": reason_of_end(ended.returncode, ended.stderr.decode(errors="replace"))}


def remove_store(fresh: Path) -> None:
    for rest in fresh.parent.glob(f"{fresh.name}*"):
        if rest.is_dir():  # scratch of a reader that was killed
            shutil.rmtree(rest, ignore_errors=True)
        else:
            rest.unlink(missing_ok=True)


def prune_stores(folder: Path, latest: Path) -> None:
    """Remove the least recently used stores beyond ``MAX_BYTES``, but never the latest."""
    paths = sorted(folder.glob("*.duckdb"), key=lambda path: path.stat().st_mtime, reverse=True)
    size = 0
    for path in paths:
        size += path.stat().st_size
        if size > MAX_BYTES and path != latest:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)


MODULES = ("pandas", "polars", "pyarrow", "duckdb", "_duckdb")


def is_frame(value: object) -> bool:
    """Return whether a value is a DataFrame or table of pandas, polars, Arrow or DuckDB."""
    module = type(value).__module__.partition(".")[0]
    return module in MODULES or hasattr(value, "__arrow_c_stream__")


@dataclass(frozen=True)
class FrameStream:
    """A DataFrame reduced to its Arrow stream. For the class of polars DuckDB would ask for pyarrow."""

    frame: Any

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


class FrameStore:
    """A database in a folder of its own, which is removed with this object."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="decisor-frames-")
        self.path = Path(folder) / "frames.duckdb"
        self.url = f"duckdb:///{self.path}"
        # Runs at the end of the process too, if the object lives that long.
        self.remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


def store_frames(frames: Mapping[str, object]) -> FrameStore:
    """Write DataFrames as tables into a new database.

    Raises:
        SetupError: one is no table that can be read.
    """
    import duckdb

    store = FrameStore()
    with duckdb.connect(str(store.path)) as db:
        for name, frame in frames.items():
            table = table_name_of_file(name)
            try:
                is_pandas = type(frame).__module__.startswith("pandas")
                is_stream = hasattr(frame, "__arrow_c_stream__") and not is_pandas
                db.register("frame", FrameStream(frame) if is_stream else frame)
                db.execute(f"CREATE TABLE {quote_identifier(table)} AS FROM frame")
                db.unregister("frame")
            except (duckdb.Error, ValueError, TypeError) as error:
                store.remove()
                complaint = " ".join(str(error).splitlines()[0].split())
                raise SetupError(f"The table {name} cannot be read ({type(frame).__name__}): {complaint}") from error
    return store
