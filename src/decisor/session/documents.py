"""Open what ``--docs`` names as a tool that finds passages: an index on disk or in PostgreSQL, a folder or file small
enough to be indexed in memory, or a person's own retriever."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.sandbox.engines import names_database
from decisor.system.extras import find_plugins
from decisor.system.secrets import hide_password
from decisor.system.settings import IMPORT_PATH
from decisor.system.text import fit_on_one_line, json_line
from decisor.system.wording import format_count

if TYPE_CHECKING:
    from decisor.documents.index import DocumentIndex
    from decisor.documents.passage import Embedder, Passage
    from decisor.documents.tool import PassagesTool
    from decisor.sandbox.process import Audit
    from decisor.session.config import Connection

# A folder without an index is read anew at each opening; a larger one gets an index on disk.
MOST_BYTES = 50_000_000
PASSAGES = "passages"


async def open_documents_for_reader(
    place: str, name: str, conditions: Sequence[str], connection: Connection | None = None, audit: Audit | None = None
) -> PassagesTool:
    """Open only the documents that fulfil the conditions. audit: file that notes each search.

    Raises:
        SetupError: a condition is none, or as ``open_documents``.
    """
    from decisor.documents.tool import COLUMNS, DocumentCondition, RestrictedRetriever

    if not conditions:
        return replace(await open_documents(place, name, connection=connection), audit=audit)
    condition = DocumentCondition(tuple(conditions))
    condition.check()
    # A person's own retriever may have other columns than our passages.
    if not is_retriever_path(place) and (missing := condition.unknown()):
        raise SetupError(f"Documents have no {missing[0]}; they have {', '.join(COLUMNS)}.")
    # Titles and counts would tell of documents that the reader may not see.
    tool = await open_documents(place, name, connection=connection, titles=False)
    return replace(tool, retriever=RestrictedRetriever(tool.retriever, condition), audit=audit, is_restricted=True)


async def open_documents(
    place: str,
    name: str = PASSAGES,
    limit: int = 10,
    connection: Connection | None = None,
    titles: bool = True,
) -> PassagesTool:
    """Open documents as a tool that finds passages.

    An index with vectors is searched by words and by vectors; DECISOR_EMBED names the endpoint that made them. Code is
    only imported by a path that a person typed, or that a file of theirs has (``connection``). titles: whether the
    description tells more than where the documents are.

    Raises:
        SetupError: there is nothing that can be read, or too much to be indexed at once.
    """
    from decisor.documents.index import is_index, open_index
    from decisor.documents.postgres import is_table_url, open_table_index, parse_table_place
    from decisor.documents.tool import PassagesTool, open_custom_retriever

    path = Path(place)
    if path.name == place and not path.exists() and place in find_plugins("retrievers"):
        place = find_plugins("retrievers")[place].value
    label, counts = path.name, True
    if is_table_url(place):
        index = await open_table_index(place, by_name=embedder_of_environment)
        label = parse_table_place(place).name
    elif is_retriever_path(place):
        retriever = (
            open_custom_retriever(place, connection.settings, connection.folder)
            if connection
            else open_custom_retriever(place)
        )
        return PassagesTool(retriever, limit, retriever.about, name, end=retriever.close)
    elif place.startswith(("http://", "https://")):
        raise SetupError(
            f"{hide_password(place)} is an address: pages are not fetched, since they change and "
            "lead elsewhere. Download it, and give the file or folder."
        )
    elif names_database(place):
        raise SetupError(
            f"{place} is a database: name it with --db, or index its rows: decisor index {place} --out INDEX"
        )
    elif is_index(path):
        index = open_index(path, None, by_name=embedder_of_environment)
    else:
        index, counts = await asyncio.to_thread(index_documents_in_memory, path), False
    end_embedder = embedder_closer(index.embedder)

    async def end() -> None:
        await index.close()
        await end_embedder()

    try:
        if titles:
            label += f", {format_count(index.about.documents, 'document')}" if counts else ""
            label += await format_index_titles(index)
    # The connection is ours until the tool has it, also when this is cancelled.
    except BaseException:
        await end()
        raise
    return PassagesTool(index, limit, label, name, end=end)


def is_retriever_path(place: str) -> bool:
    """Return whether a place names a person's own retriever, as ``module:Class``."""
    return IMPORT_PATH.fullmatch(place) is not None and not Path(place).exists()


async def format_index_titles(index: DocumentIndex) -> str:
    """Format the titles of an index for a prompt, '' if it has none."""
    titles, all_of_them = await index.titles()
    if not titles:
        return ""
    names = ", ".join(json_line(fit_on_one_line(title, 60)) for title in titles)
    return f"; titles: {names}" if all_of_them else f"; some titles: {names}, ..."


def embedder_of_environment(name: str) -> Embedder | None:
    """Return the embedder of DECISOR_EMBED if it made the vectors. None leaves it to the index."""
    spec = os.environ.get("DECISOR_EMBED", "")
    # DECISOR_EMBED is MODEL@URL, and vectors of two models cannot be compared.
    if not spec.startswith(name):
        return None
    from decisor.llms.embeddings import open_embedder

    return open_embedder(spec)


def embedder_closer(embedder: Embedder | None) -> Callable[[], Awaitable[None]]:
    """Return a function that closes the connections of an embedder, if it has some."""

    async def end() -> None:
        if close := getattr(embedder, "close", None):
            await asyncio.to_thread(close)

    return end


def index_documents_in_memory(path: Path) -> DocumentIndex:
    from decisor.documents.formats import UnreadableDocument
    from decisor.documents.index import build_memory_index
    from decisor.documents.reader import FolderReader

    reading = FolderReader(path)
    if reading.total > MOST_BYTES:
        raise SetupError(f"{path} is large: index it once, with decisor index {path} --out INDEX, and name INDEX.")
    passages: list[Passage] = []
    try:
        for document in reading.documents():
            try:
                passages += document.cut()
            except UnreadableDocument:
                # One bad file does not keep the folder from being asked.
                continue
    finally:
        reading.close()
    if not passages:
        raise SetupError(f"Nothing in {path} could be read; decisor index {path} --out INDEX says why.")
    return build_memory_index(passages)
