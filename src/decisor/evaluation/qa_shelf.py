"""The corpus of a set of questions, indexed once and kept in the user's cache folder, and lent to every case."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from decisor.errors import SetupError
from decisor.tools.corpus.building import build_index
from decisor.tools.corpus.index import open_index
from decisor.tools.corpus.passage import Passage, read_passages
from decisor.tools.corpus.store import is_index
from decisor.tools.passages import PassagesTool
from decisor.tools.toolbox import Toolbox
from decisor.types import Environment, Tool

Mode = Literal["bm25", "dense", "hybrid"]


class Settings(Protocol):
    """What every set of questions has."""

    @property
    def name(self) -> str: ...

    @property
    def data(self) -> Path: ...

    @property
    def corpus(self) -> str: ...

    @property
    def mode(self) -> Mode: ...

    @property
    def limit(self) -> int: ...


class Own(Protocol):
    """A loader that has passages of its own: where they are, and all of them."""

    def file(self, data: Path) -> Path: ...

    def passages(self, data: Path) -> Iterator[Passage]: ...


@dataclass
class Shelf:
    """The one tool that all cases share, opened when the first needs it. Without passages there is no tool."""

    settings: Settings
    own: Own | None = None
    tools: list[Tool] | None = None

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Environment]:
        """An environment of its own: ids of records start anew.

        Raises:
            SetupError: the corpus cannot be read or indexed.
        """
        if self.tools is None:
            self.tools = list(opened(self.settings, self.own))
        yield Toolbox(self.tools)

    async def close(self) -> None:
        for tool in self.tools or ():
            await tool.close()
        self.tools = None


def opened(settings: Settings, own: Own | None) -> Iterator[Tool]:
    """The tool over the corpus that is named, or over the set's own."""
    if settings.corpus:
        named = Path(settings.corpus)
        if not named.exists():
            raise SetupError(f"There is no corpus {named}. Make one: decisor index SOURCE --out {named}")
        index = indexed(named.stem, named, lambda: read_passages(named)) if named.is_file() else named
    elif own is not None:
        data = settings.data
        index = indexed(settings.name, own.file(data), lambda: own.passages(data))
    else:
        return
    yield PassagesTool(open_index(index, settings.mode), settings.limit)


def indexed(name: str, source: Path, passages: Callable[[], Iterable[Passage]]) -> Path:
    """The index in the cache. It is built where there is none, and updated where a file beside ``source`` changed."""
    place = cache_folder() / "corpora" / f"{name}-{digest(str(source.resolve()))}"
    files = sorted(path for path in source.parent.iterdir() if path.is_file())
    state = digest("\n".join(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files))
    noted = place.with_name(f"{place.name}.state")
    if not is_index(place) or not noted.is_file() or noted.read_text() != state:
        place.parent.mkdir(parents=True, exist_ok=True)
        build_index(passages(), place)
        noted.write_text(state)
    return place


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/decisor``, or ``~/.cache/decisor``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "decisor"
