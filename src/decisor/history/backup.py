"""Backups of runs in one ZIP file, made while runs are written.

history.db, runs/     of a folder; the database by SQLite's own backup
store.dump            of PostgreSQL; by pg_dump, and restored by pg_restore
uploads/              files that people brought to the page
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from decisor.errors import SetupError
from decisor.history.place import FolderPlace
from decisor.history.postgres import PostgresPlace
from decisor.system.processes import KEPT, ProcessStart, working_folder
from decisor.system.secrets import redact
from decisor.system.storage import PRIVATE, create_private, data_folder, make_private_folder

DATABASE, DUMP = "history.db", "store.dump"
FOLDERS = ("runs", "uploads")


def write_backup(place: FolderPlace | PostgresPlace, file: Path) -> int:
    """Write a backup to a new file, for its owner alone; return how many runs there are."""
    count = count_runs(place)
    with file_faults(file):
        if file.exists():
            raise SetupError(f"{file} is there already. Name a new file.")
        create_private(file)
        try:
            with ZipFile(file, "w", ZIP_DEFLATED) as archive, TemporaryDirectory(prefix="decisor-") as scratch:
                if isinstance(place, PostgresPlace):
                    dump = Path(scratch) / DUMP
                    run_postgres_tool("pg_dump", place, "--format=custom", "--no-owner", f"--file={dump}")
                    archive.write(dump, DUMP)
                else:
                    copy = Path(scratch) / DATABASE
                    with (
                        closing(sqlite3.connect(place.folder / DATABASE)) as old,
                        closing(sqlite3.connect(copy)) as new,
                    ):
                        old.backup(new)
                    archive.write(copy, DATABASE)
                add_files(archive, files_of(place))
        except BaseException:
            file.unlink()
            raise
    return count


def add_files(archive: ZipFile, folder: Path) -> None:
    for path in sorted(path for name in FOLDERS for path in (folder / name).rglob("*") if path.is_file()):
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # dropped meanwhile
            continue
        # The last line of a trace may be half written.
        whole = content[: content.rfind(b"\n") + 1] if path.suffix == ".jsonl" else content
        archive.writestr(path.relative_to(folder).as_posix(), whole)


def restore_backup(place: FolderPlace | PostgresPlace, file: Path, replaces: bool = False) -> int:
    """Restore a backup and return how many runs there are.

    Raises:
        SetupError: it is none, is of another kind of store, or there are runs already and it is not to replace them.
    """
    wanted = DUMP if isinstance(place, PostgresPlace) else DATABASE
    if not replaces and count_runs(place):
        raise SetupError(f"{place.name} has runs already. With --replace they are deleted, and these take their place.")
    with file_faults(file), ZipFile(file) as archive:
        names = archive.namelist()
        if wanted not in names:
            raise SetupError(f"{file} has no {wanted}. A backup of PostgreSQL needs --store, one of a folder none.")
        folder = files_of(place)
        make_private_folder(folder)
        # Beside what it replaces, so that nothing is deleted before all was read.
        with TemporaryDirectory(prefix="restored-", dir=folder) as scratch:
            fresh = Path(scratch)
            archive.extractall(fresh, [name for name in names if name.partition("/")[0] in (*FOLDERS, wanted)])
            for path in fresh.rglob("*"):
                path.chmod(0o700 if path.is_dir() else PRIVATE)
            if isinstance(place, PostgresPlace):
                run_postgres_tool(
                    *("pg_restore", place, "--clean", "--if-exists", "--no-owner", "--single-transaction"),
                    str(fresh / DUMP),
                )
            for name in FOLDERS if wanted == DUMP else (*FOLDERS, DATABASE):
                if (folder / name).is_dir():
                    shutil.rmtree(folder / name)
                if (fresh / name).exists():
                    (fresh / name).replace(folder / name)
    return count_runs(place)


def files_of(place: FolderPlace | PostgresPlace) -> Path:
    """Return the folder that has the files of a place: traces and uploads."""
    return place.folder if isinstance(place, FolderPlace) else data_folder()


def count_runs(place: FolderPlace | PostgresPlace) -> int:
    with place.transaction() as tables:
        return int(tables.execute("SELECT count(*) FROM run").fetchone()[0])


def run_postgres_tool(name: str, place: PostgresPlace, *options: str) -> None:
    """Run one of PostgreSQL's programs on the database of a place; raise SetupError if it is missing or fails."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    if not shutil.which(name):
        raise SetupError(f"This needs {name}. Install PostgreSQL's client programs (package postgresql-client).")
    # Everybody on the machine can read a command, but not its environment.
    known = {key: str(value) for key, value in conninfo_to_dict(place.url).items()}
    own = {key: value for key, value in os.environ.items() if key in (*KEPT, "HOME") or key.startswith("PG")}
    own |= {"PGPASSWORD": known.pop("password")} if "password" in known else {}
    start = ProcessStart((name, f"--dbname={make_conninfo(**known)}", *options), own, str(working_folder()))
    done = subprocess.run(start.command, env=start.environment, cwd=start.folder, capture_output=True, text=True)
    if done.returncode:
        raise SetupError(f"{name} failed. It says: {redact(done.stderr.strip())[:500]}")


@contextmanager
def file_faults(file: Path) -> Iterator[None]:
    """Raise SetupError for what goes wrong with the file of a backup."""
    try:
        yield
    except BadZipFile as error:
        raise SetupError(f"{file} is no backup: {error}. Make one with: decisor history backup FILE") from error
    except OSError as error:
        raise SetupError(f"Cannot use {error.filename or file}: {error.strerror or error}.") from error
