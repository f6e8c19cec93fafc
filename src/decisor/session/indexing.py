"""Build and update indexes of documents, as ``decisor index`` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.sandbox.engines import names_database
from decisor.session.config import Connection
from decisor.session.open_sources import open_first_database
from decisor.system.secrets import hide_password

if TYPE_CHECKING:
    from decisor.documents.index import IndexChanges, Progress, SourceDocument
    from decisor.documents.passage import Embedder
    from decisor.documents.postgres import TablePlace
    from decisor.documents.reader import FolderReader, RowForm


@dataclass(frozen=True)
class IndexRequest:
    """A request to index documents."""

    source: str | Connection
    """A folder, a file or a database."""
    out: str
    """The index: a folder, or the table of ``postgresql://HOST/DATABASE/TABLE``."""
    language: str
    dense: bool
    """Whether the model on this machine makes vectors."""
    embed: str
    """Endpoint that makes vectors, as MODEL@URL."""
    form: RowForm
    tables: Sequence[str] = ()
    """Tables of a database to read, all if none is named."""
    fresh: bool = False
    """Whether to build an existing index anew; else it is updated."""


@dataclass(frozen=True)
class IndexReport:
    """The outcome of indexing."""

    changes: IndexChanges
    reading: FolderReader | None
    """Reader of the files, None for a database."""
    bytes: int
    """Size of the index."""


def build_or_update_index(
    request: IndexRequest, bar: Callable[[FolderReader | None], AbstractContextManager[Progress]]
) -> IndexReport:
    """Build or update an index of documents. bar: context that shows the progress.

    Raises:
        SetupError: something named cannot be read or used.
    """
    from decisor.documents.index import IndexMetadata, update_index
    from decisor.documents.postgres import is_table_url, parse_table_place
    from decisor.documents.search import build_analyzer

    # An unknown language is told before anything is read.
    build_analyzer(request.language)
    table = parse_table_place(request.out) if is_table_url(request.out) else None
    about = IndexMetadata(language=request.language, words=request.form.words)
    with open_requested_embedder(request) as embedder:
        if embedder is None and not request.fresh:
            check_vectors_stay(request.out, table)
        with open_index_source(request) as (documents, reading), bar(reading) as progress:
            # may_be_empty=False: a source without documents leaves the index as it was.
            if table is not None:
                from decisor.documents.postgres import update_table_index

                changes, size = update_table_index(
                    documents, table, about, embedder, request.fresh, progress, may_be_empty=False
                )
                return IndexReport(changes, reading, size)
            out = Path(request.out)
            changes = update_index(documents, out, about, embedder, request.fresh, progress, may_be_empty=False)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    return IndexReport(changes, reading, size)


@contextmanager
def open_requested_embedder(request: IndexRequest) -> Iterator[Embedder | None]:
    """Yield the embedder that makes the vectors, if any, and close its connections when the block ends."""
    embedder: Embedder | None = None
    if request.embed:
        from decisor.llms.embeddings import open_embedder

        embedder = open_embedder(request.embed)
    elif request.dense:
        from decisor.documents.minilm import MiniLM

        embedder = MiniLM.open()
    try:
        yield embedder
    finally:
        if close := getattr(embedder, "close", None):
            close()


def check_vectors_stay(out: str, table: TablePlace | None) -> None:
    """Raise SetupError if an index with vectors would be replaced by one without."""
    from decisor.documents.index import is_index, read_current_version, read_index_metadata
    from decisor.documents.minilm import NAME
    from decisor.documents.postgres import connect_to_table, read_table_metadata

    name = ""
    if table is not None:
        with connect_to_table(table) as db:
            about = read_table_metadata(db, table)
        name = about.embedder if about else ""
    elif is_index(Path(out)):
        with suppress(SetupError):
            name = read_index_metadata(Path(out) / str(read_current_version(Path(out)))).embedder
    if name:
        option = "--dense" if name == NAME else f"--embed {name}@URL"
        raise SetupError(
            f"The index in {table or out} holds vectors by {name}: add {option}, or --fresh to build without them."
        )


@contextmanager
def open_index_source(request: IndexRequest) -> Iterator[tuple[Iterable[SourceDocument], FolderReader | None]]:
    """Yield the documents of a source and their reader, which is None for a database."""
    from decisor.documents.index import is_index
    from decisor.documents.reader import FolderReader

    place = request.source.place if isinstance(request.source, Connection) else request.source
    path = Path(place)
    if place.lower().startswith(("http://", "https://")):
        raise SetupError(f"Pages are not fetched: save {hide_password(place)} to a file and name that.")
    if is_index(path):
        raise SetupError(f"{place} is an index: ask of it (--docs), or name the documents it is made of.")
    if "://" in place or (names_database(path.name) and path.is_file()):
        yield asyncio.run(read_row_documents(request)), None
        return
    if request.tables:
        raise SetupError(f"--table is for databases, and {hide_password(place)} is none.")
    with closing(FolderReader(path, request.form)) as reading:
        yield reading.documents(), reading


async def read_row_documents(request: IndexRequest) -> list[SourceDocument]:
    from decisor.databases.sql import SqlTool
    from decisor.documents.reader import read_table_documents

    tool = await open_first_database(request.source)
    try:
        if not isinstance(tool, SqlTool):
            raise SetupError(f"{tool.name} is a graph; rows are indexed of relational databases.")
        return await read_table_documents(tool, request.tables, request.form)
    finally:
        await tool.close()
