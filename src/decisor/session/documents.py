"""``--docs``: an index on disk or in PostgreSQL, a folder or file small enough to be indexed in memory, or somebody's
own retriever, as a tool that finds passages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.outside import json_line, one_line
from decisor.plurals import counted
from decisor.secrets import without_password
from decisor.settings import IMPORT_PATH
from decisor.tools.databases.sandbox.urls import names_database

if TYPE_CHECKING:
    from decisor.config.connection import Connection
    from decisor.tools.databases.sandbox.audit import Audit
    from decisor.tools.documents.embedder import Embedder
    from decisor.tools.documents.index import Index
    from decisor.tools.documents.passage import Passage
    from decisor.tools.documents.passages_tool import PassagesTool

MOST_BYTES = 50_000_000
PASSAGES = "passages"


async def open_for_reader(
    place: str, name: str, conditions: Sequence[str], connection: Connection | None = None, audit: Audit | None = None
) -> PassagesTool:
    """Those documents alone that fulfil the conditions. ``audit``: where each search is noted.

    Raises:
        SetupError: a condition is none, or as ``open_documents``.
    """
    from decisor.tools.documents.for_reader import COLUMNS, Condition, ForReader

    if not conditions:
        return replace(await open_documents(place, name, connection=connection), audit=audit)
    condition = Condition(tuple(conditions))
    condition.check()
    if not names_code(place) and (missing := condition.unknown()):
        raise SetupError(f"Documents have no {missing[0]}; they have {', '.join(COLUMNS)}.")
    tool = await open_documents(place, name, connection=connection, titles=False)
    return replace(tool, retriever=ForReader(tool.retriever, condition), audit=audit, is_restricted=True)


async def open_documents(
    place: str, name: str = PASSAGES, limit: int = 10, connection: Connection | None = None,
    titles: bool = True,
) -> PassagesTool:  # fmt: skip
    """An index with vectors is searched both ways. The endpoint that made them is named by DECISOR_EMBED. Code is only
    imported by a path that a person typed, or a file of theirs has: ``connection``. Without ``titles`` the description
    tells where the documents are, and nothing of them.

    Raises:
        SetupError: there is nothing that can be read, or too much to be indexed at once.
    """
    from decisor.tools.documents.index import open_index
    from decisor.tools.documents.index_files import current, is_index, read_about
    from decisor.tools.documents.own_retriever import open_own
    from decisor.tools.documents.passages_tool import PassagesTool
    from decisor.tools.documents.postgres import names_table

    path = Path(place)
    if names_table(place):
        return await open_documents_table(place, name, limit, titles)
    if names_code(place):
        retriever = open_own(place, connection.settings, connection.folder) if connection else open_own(place)
        return PassagesTool(retriever, limit, retriever.about, name, end=retriever.close)
    if place.startswith(("http://", "https://")):
        raise SetupError(f"{without_password(place)} is an address: pages are not fetched, since they change and "
                         "lead elsewhere. Download it, and give the file or folder.")  # fmt: skip
    if names_database(place):
        raise SetupError(
            f"{place} is a database: name it with --db, or index its rows: decisor index {place} --out INDEX"
        )
    if not is_index(path):
        index = await asyncio.to_thread(in_memory, path)
        return PassagesTool(index, limit, f"{path.name}{titles_of(index) if titles else ''}", name)
    about = read_about(path / str(current(path)))
    embedder = embedder_of(about.embedder) if about.embedder else None
    index = open_index(path, "hybrid", embedder) if about.embedder else open_index(path)
    text = path.name + (f", {counted(about.documents, 'document')}{titles_of(index)}" if titles else "")
    return PassagesTool(index, limit, text, name, end=ending(embedder))


def names_code(place: str) -> bool:
    """Whether it is a retriever of somebody's own, ``module:Class``."""
    return IMPORT_PATH.fullmatch(place) is not None and not Path(place).exists()


async def open_documents_table(place: str, name: str, limit: int, titles: bool = True) -> PassagesTool:
    """An index in PostgreSQL."""
    from decisor.tools.documents.passages_tool import PassagesTool
    from decisor.tools.documents.postgres import open_table

    index = await open_table(place, by_name=embedder_of)
    end_embedder = ending(index.embedder)

    async def end() -> None:
        await index.close()
        await end_embedder()

    try:
        of_them = titles_in_words(*await index.titles()) if titles else ""
    except BaseException:
        await end()
        raise
    text = index.place.name + (f", {counted(index.about.documents, 'document')}{of_them}" if titles else "")
    return PassagesTool(index, limit, text, name, end=end)


def titles_of(index: Index) -> str:
    """What the documents are called, for a prompt; '' where they have no titles."""
    return titles_in_words(*index.titles())


def titles_in_words(titles: Sequence[str], all_of_them: bool) -> str:
    if not titles:
        return ""
    names = ", ".join(json_line(one_line(title, 60)) for title in titles)
    return f"; titles: {names}" if all_of_them else f"; some titles: {names}, ..."


def embedder_of(name: str) -> Embedder | None:
    """The endpoint of DECISOR_EMBED where that made the vectors; None leaves it to the index."""
    spec = os.environ.get("DECISOR_EMBED", "")
    if not spec.startswith(name):
        return None
    from decisor.lms.embeddings import embedder

    return embedder(spec)


def ending(embedder: Embedder | None) -> Callable[[], Awaitable[None]]:
    """What ends the connections of an embedder that has some."""

    async def end() -> None:
        if close := getattr(embedder, "close", None):
            await asyncio.to_thread(close)

    return end


def in_memory(path: Path) -> Index:
    from decisor.tools.documents.folder import FolderReader
    from decisor.tools.documents.index import index_of
    from decisor.tools.documents.text_formats import Unreadable

    reading = FolderReader(path)
    if reading.total > MOST_BYTES:
        raise SetupError(f"{path} is large: index it once, with decisor index {path} --out INDEX, and name INDEX.")
    passages: list[Passage] = []
    try:
        for document in reading.documents():
            try:
                passages += document.cut()
            except Unreadable:
                continue
    finally:
        reading.close()
    if not passages:
        raise SetupError(f"Nothing in {path} could be read; decisor index {path} --out INDEX says why.")
    return index_of(passages)
