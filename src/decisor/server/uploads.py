"""Files that people bring to the page: each person's in a folder of their own, asked as any other connection.

A file is streamed to the disk under a cap, then read by the process that reads every data file. Nobody else sees it,
its owner can remove it, and with it goes what was read from it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import defaultdict
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from decisor.databases.files.store import KINDS, forget_place, import_place, split_file_options, table_name_of_file
from decisor.errors import Error, SetupError
from decisor.server.identity import Refusal
from decisor.server.security import MOST_FILE
from decisor.server.users import User
from decisor.session.pool import Pool
from decisor.session.sources import RESERVED, build_sources
from decisor.system.storage import make_private_folder

MOST_FILES, MOST_OF_OWNER = 20, 500 * 2**20
"""Number of files, and bytes of all of them, that one person may keep."""
SECONDS = 600.0
TAKEN = ("csv", "excel", "parquet")
ABOUT = "CSV, Excel or Parquet"


@dataclass(eq=False)
class Uploads:
    """The uploaded files of all users of a server."""

    folder: Path
    pool: Pool
    is_used: Callable[[str], bool]
    """Whether a run under way in this process asks the connection of this name."""
    is_used_anywhere: Callable[[User, str], Awaitable[bool]]
    """Whether a run under way, of any process, asks this connection of the user."""
    known: dict[Path, tuple[str, tuple[int, int]]] = field(default_factory=dict)
    """Name of the connection of each file, and which file that was."""
    turns: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """One person brings one file at a time, so that the caps hold."""

    def open(self) -> None:
        """Add the files of earlier runs of the server to the pool. They are read when they are first needed."""
        for home in sorted(self.folder.glob("*/")):
            for path in sorted(home.rglob("*.*")):
                self.add(path)

    async def look(self, user: User) -> None:
        """Add the files that other processes took from a user, and close those that they removed."""
        home = self.folder / owner_key(user)
        # This process does so itself.
        if self.turns[home.name].locked():
            return
        async with self.turns[home.name]:
            found = {path: file_key(path) for path in sorted(home.rglob("*.*"))}
            for path, (name, key) in [*self.known.items()]:
                if home in path.parents and found.get(path) != key and not self.is_used(name):
                    del self.known[path]
                    await self.pool.remove(name)
            for path, key in found.items():
                # While a file is read in another way, it is there twice.
                if any(key) and path not in self.known and self.pool.owners.get(self.name_of(path)) is None:
                    self.add(path)

    def add(self, path: Path) -> str:
        """Add a file to the pool and return the name of its connection."""
        name, habits = self.name_of(path), habits_of(path)
        sources = build_sources(db={name: f"{path}#{habits}" if habits else str(path)})
        # Whoever notes the queries of the server's own data means these too.
        audit = next((place.audit for place in self.pool.sources.places), None)
        self.pool.add(
            name, replace(sources, places=(replace(sources.places[0], audit=audit),)), owner=self.owner_of(path)
        )
        self.known[path] = name, file_key(path)
        return name

    def owner_of(self, path: Path) -> str:
        return path.relative_to(self.folder).parts[0]

    def name_of(self, path: Path) -> str:
        """Return the name of the connection of a file. It tells nobody that others have a file of the same name."""
        name, owner = table_name_of_file(path), self.owner_of(path)
        if owner != owner_key(User()):
            name = f"{name}_{owner[:6]}"
        # A person may have chosen a name whose hash begins as another's does.
        while name in RESERVED or (name in self.pool.members and self.pool.owners.get(name) != owner):
            name += "_file"
        return name

    async def keep(self, user: User, file: str, parts: AsyncIterable[bytes]) -> str:
        """Keep a file and return the name of its connection. One of the same name is replaced.

        Raises:
            SetupError: it is no table, cannot be read, or the one that it replaces is in use.
            Refusal: it is too large, there are too many, or it does not come.
        """
        suffix = Path(file).suffix.lower()
        if KINDS.get(suffix) not in TAKEN:
            raise SetupError(f"{file!r:.80} is not a file of {ABOUT}. Save it as one, and bring that.")
        home = self.folder / owner_key(user)
        path = home / f"{table_name_of_file(file)[:60]}{suffix}"
        async with self.turns[home.name]:
            same = [other for other in home.rglob("*.*") if self.name_of(other) == self.name_of(path)]
            sizes = [other.stat().st_size for other in home.rglob("*.*") if other not in same]
            if len(sizes) >= MOST_FILES:
                raise Refusal(413, f"You have {MOST_FILES} files here. Remove one first.")
            make_private_folder(self.folder)
            make_private_folder(home)
            with NamedTemporaryFile(dir=self.folder, prefix="new-") as fresh:
                await receive_file(parts, fresh, min(MOST_FILE, MOST_OF_OWNER - sum(sizes)))
                fresh.flush()
                for other in same:
                    await self.drop(user, self.name_of(other))
                os.link(fresh.name, path)
            name = self.add(path)
            try:
                await self.pool.member(name)
            except Error as error:
                await self.drop(user, name)
                # Who asks a server is not told where its files lie.
                raise SetupError(str(error).replace(str(path), file)) from None
            return name

    async def forget(self, user: User, name: str) -> None:
        """Remove a file of a user and what was read from it. Raises SetupError if there is none, or it is in use."""
        await self.look(user)
        async with self.turns[owner_key(user)]:
            await self.drop(user, name)

    async def drop(self, user: User, name: str) -> None:
        """Remove a file as ``forget`` does, within a turn of its user."""
        path, place = await self.file_of(user, name), self.pool.members[name].places[0].place
        self.known.pop(path, None)
        await self.pool.remove(name)
        await asyncio.to_thread(forget_place, place)
        path.unlink(missing_ok=True)

    async def read_as(self, user: User, name: str, habits: Mapping[str, str]) -> None:
        """Read a file of a user again, its numbers or dates as the person says. It raises as ``forget`` does.

        A reading that fails leaves the table of before.
        """
        await self.look(user)
        async with self.turns[owner_key(user)]:
            path = await self.file_of(user, name)
            known = dict(habit.split("=") for habit in habits_of(path).split(",") if habit) | dict(habits)
            own = ",".join(f"{habit}={choice}" for habit, choice in sorted(known.items()))
            target = self.folder / owner_key(user) / own / path.name
            if target == path:
                return
            make_private_folder(target.parent)
            os.link(path, target)
            try:
                await asyncio.to_thread(import_place, f"{target}#{own}")
                await self.drop(user, name)
            except Error as error:
                target.unlink()
                told = str(error).replace(str(target), path.name)
                raise SetupError(f"The table stays as it was, for the new reading failed: {told}") from None
            await self.pool.member(self.add(target))

    async def file_of(self, user: User, name: str) -> Path:
        """Return the path of a file of a user. Raises as ``forget`` does."""
        if self.pool.owners.get(name) != owner_key(user):
            raise SetupError(f"You have no file {name[:80]!r} here.")
        if await self.is_used_anywhere(user, name):
            raise SetupError("A decision that uses this file is under way. Stop it first, or wait for its end.")
        return Path(split_file_options(self.pool.members[name].places[0].place)[0])


def habits_of(path: Path) -> str:
    """Return how the numbers and dates of a file are written: the name of its folder, '' if nobody has said.

    >>> habits_of(Path("files/5f2/sales.csv")), habits_of(Path("files/5f2/decimal=comma/sales.csv"))
    ('', 'decimal=comma')
    """
    return path.parent.name if "=" in path.parent.name else ""


def file_key(path: Path) -> tuple[int, int]:
    """Return which file a path names now; zeros if none."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return 0, 0
    return facts.st_ino, facts.st_mtime_ns


def owner_key(user: User) -> str:
    """Return the name of a user's folder: names that differ by case alone are one to some file systems."""
    return hashlib.sha256(user.name.encode()).hexdigest()[:16]


def may_use(user: User, name: str, pool: Pool) -> bool:
    """Return whether a user may ask of a connection; of uploaded files only their owner may."""
    owner = pool.owners.get(name)
    return user.may_use(name) if owner is None else owner == owner_key(user)


async def receive_file(parts: AsyncIterable[bytes], file: IO[bytes], most: int) -> None:
    """Write a file as it comes; raise Refusal if it is larger than ``most`` bytes, or ends too late."""
    size = 0
    try:
        async with asyncio.timeout(SECONDS):
            async for part in parts:
                size += len(part)
                if size > most:
                    raise Refusal(413, f"There is room for {most // 2**20:,} MB, and the file has more.")
                file.write(part)
    except TimeoutError as error:
        raise Refusal(408, "The file did not come.") from error
