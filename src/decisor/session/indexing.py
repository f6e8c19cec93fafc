"""Build and update indexes of documents, as ``decisor index`` does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
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
    embedder = open_requested_embedder(request.dense, request.embed)
    if embedder is None and not request.fresh:
        check_vectors_stay(request.out, table)
    about = IndexMetadata(language=request.language, words=request.form.words)
    source = OpenSource(request.source, request.form, request.tables)
    with close_embedder_after(embedder), source as (documents, reading), bar(reading) as progress:
        if table is not None:
            from decisor.documents.postgres import update_table_index

            # may_be_empty=False: a source without documents leaves the index as it was.
            changes, size = update_table_index(
                documents, table, about, embedder, request.fresh, progress, may_be_empty=False
            )
            return IndexReport(changes, reading, size)
        out = Path(request.out)
        changes = update_index(documents, out, about, embedder, request.fresh, progress, may_be_empty=False)
    return IndexReport(changes, reading, folder_size_bytes(out))


@contextmanager
def close_embedder_after(embedder: Embedder | None) -> Iterator[None]:
    """Close the connections of an embedder, if it has some, when the block ends."""
    try:
        yield
    finally:
        if close := getattr(embedder, "close", None):
            close()


def open_requested_embedder(dense: bool, embed: str) -> Embedder | None:
    if embed:
        from decisor.llms.embeddings import open_embedder

        return open_embedder(embed)
    if not dense:
        return None
    from decisor.documents.minilm import MiniLM

    return MiniLM.open()


def check_vectors_stay(out: str, table: TablePlace | None) -> None:
    """Raise SetupError if an index with vectors would be replaced by one without."""
    from decisor.documents.minilm import NAME

    if name := embedder_of_table(table) if table else embedder_of_index(Path(out)):
        option = "--dense" if name == NAME else f"--embed {name}@URL"
        raise SetupError(
            f"The index in {table or out} holds vectors by {name}: add {option}, or --fresh to build without them."
        )


def embedder_of_index(out: Path) -> str:
    """Return the name of an index's embedder, '' if there is no index or it has no vectors."""
    from decisor.documents.index import is_index, read_current_version, read_index_metadata

    if is_index(out):
        with suppress(SetupError):
            return read_index_metadata(out / str(read_current_version(out))).embedder
    return ""


def embedder_of_table(place: TablePlace) -> str:
    """Return the name of the embedder of an index in a table, '' if there is none."""
    from decisor.documents.postgres import connect_to_table, read_table_metadata

    with connect_to_table(place) as db:
        about = read_table_metadata(db, place)
    return about.embedder if about else ""


class OpenSource:
    """The documents of a source and their reader, as a context. The reader is None for a database."""

    def __init__(self, source: str | Connection, form: RowForm, tables: Sequence[str]) -> None:
        self.connection, self.form, self.tables = source, form, tables
        self.source = source.place if isinstance(source, Connection) else source
        self.reading: FolderReader | None = None

    def __enter__(self) -> tuple[Iterable[SourceDocument], FolderReader | None]:
        from decisor.documents.index import is_index
        from decisor.documents.reader import FolderReader

        if self.source.lower().startswith(("http://", "https://")):
            raise SetupError(f"Pages are not fetched: save {hide_password(self.source)} to a file and name that.")
        if is_index(Path(self.source)):
            raise SetupError(f"{self.source} is an index: ask of it (--docs), or name the documents it is made of.")
        if "://" in self.source or is_database_path(Path(self.source)):
            return asyncio.run(read_row_documents(self.connection, self.form, self.tables)), None
        if self.tables:
            raise SetupError(f"--table is for databases, and {hide_password(self.source)} is none.")
        self.reading = FolderReader(Path(self.source), self.form)
        return self.reading.documents(), self.reading

    def __exit__(self, *failure: object) -> None:
        if self.reading is not None:
            self.reading.close()


def is_database_path(path: Path) -> bool:
    return names_database(path.name) and path.is_file()


async def read_row_documents(source: str | Connection, form: RowForm, tables: Sequence[str]) -> list[SourceDocument]:
    from decisor.databases.sql import SqlTool
    from decisor.documents.reader import read_table_documents

    tool = await open_first_database(source)
    try:
        if not isinstance(tool, SqlTool):
            raise SetupError(f"{tool.name} is a graph; rows are indexed of relational databases.")
        return await read_table_documents(tool, tables, form)
    finally:
        await tool.close()


def folder_size_bytes(folder: Path) -> int:
    return sum((Path(at) / name).stat().st_size for at, _, names in os.walk(folder) for name in names)
