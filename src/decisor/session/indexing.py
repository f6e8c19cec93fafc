"""From what is named to an index of documents: what ``decisor index`` does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.config.connection import Connection
from decisor.errors import SetupError
from decisor.secrets import without_password
from decisor.session.opening import open_first
from decisor.tools.databases.sandbox.urls import names_database

if TYPE_CHECKING:
    from decisor.tools.documents.embedder import Embedder
    from decisor.tools.documents.folder import FolderReader
    from decisor.tools.documents.postgres import TablePlace
    from decisor.tools.documents.row_documents import RowForm
    from decisor.tools.documents.update import Changes, Document, Progress


@dataclass(frozen=True)
class IndexRequest:
    """``source``: a folder, a file, or a database, of which ``tables`` are read (all where none is named).
    ``out``: the index, a folder or the table of ``postgresql://HOST/DATABASE/TABLE``, which is updated where it is
    there, and built anew where ``fresh``. ``dense``: vectors by the
    model on this machine; ``embed``: by an endpoint, MODEL@URL."""

    source: str | Connection
    out: str
    language: str
    dense: bool
    embed: str
    form: RowForm
    tables: Sequence[str] = ()
    fresh: bool = False


@dataclass(frozen=True)
class IndexReport:
    """``reading``: what read the files; None for a database. ``bytes``: of the index."""

    changes: Changes
    reading: FolderReader | None
    bytes: int


def index(request: IndexRequest, bar: Callable[[FolderReader | None], AbstractContextManager[Progress]]) -> IndexReport:
    """Build or update. ``bar`` shows how far it is.

    Raises:
        SetupError: something named cannot be read or used.
    """
    from decisor.tools.documents.bm25 import analyzer
    from decisor.tools.documents.index_build import update
    from decisor.tools.documents.index_files import About
    from decisor.tools.documents.postgres import names_table, parse_place

    analyzer(request.language)
    table = parse_place(request.out) if names_table(request.out) else None
    embedder = embedder_of(request.dense, request.embed)
    if embedder is None and not request.fresh:
        vectors_stay(request.out, table)
    about = About(language=request.language, words=request.form.words)
    source = OpenSource(request.source, request.form, request.tables)
    with closing_endpoint(embedder), source as (documents, reading), bar(reading) as progress:
        if table is not None:
            from decisor.tools.documents.postgres import update_table

            changes, size = update_table(documents, table, about, embedder, request.fresh, progress, may_be_empty=False)
            return IndexReport(changes, reading, size)
        out = Path(request.out)
        changes = update(documents, out, about, embedder, request.fresh, progress, may_be_empty=False)
    return IndexReport(changes, reading, size_of(out))


@contextmanager
def closing_endpoint(embedder: Embedder | None) -> Iterator[None]:
    """Ends the connections of an embedder that has some."""
    try:
        yield
    finally:
        if close := getattr(embedder, "close", None):
            close()


def embedder_of(dense: bool, embed: str) -> Embedder | None:
    if embed:
        from decisor.lms.embeddings import embedder

        return embedder(embed)
    if not dense:
        return None
    from decisor.tools.documents.minilm import MiniLM

    return MiniLM.open()


def vectors_stay(out: str, table: TablePlace | None) -> None:
    """Raises SetupError where an index with vectors would be replaced by one without."""
    from decisor.tools.documents.minilm import NAME

    if name := embedder_in_table(table) if table else embedder_in(Path(out)):
        option = "--dense" if name == NAME else f"--embed {name}@URL"
        raise SetupError(f"The index in {table or out} holds vectors by {name}: add {option}, or --fresh to build "
                         "without them.")  # fmt: skip


def embedder_in(out: Path) -> str:
    """Its name; '' where there is no index, or one without vectors."""
    from decisor.tools.documents.index_files import current, is_index, read_about

    if is_index(out):
        with suppress(SetupError):
            return read_about(out / str(current(out))).embedder
    return ""


def embedder_in_table(place: TablePlace) -> str:
    """The same of a table."""
    from decisor.tools.documents.postgres import connecting, stored_about

    with connecting(place) as db:
        about = stored_about(db, place)
    return about.embedder if about else ""


class OpenSource:
    """The documents of a source, and what reads them (None for a database)."""

    def __init__(self, source: str | Connection, form: RowForm, tables: Sequence[str]) -> None:
        self.connection, self.form, self.tables = source, form, tables
        self.source = source.place if isinstance(source, Connection) else source
        self.reading: FolderReader | None = None

    def __enter__(self) -> tuple[Iterable[Document], FolderReader | None]:
        from decisor.tools.documents.folder import FolderReader
        from decisor.tools.documents.index_files import is_index

        if self.source.lower().startswith(("http://", "https://")):
            raise SetupError(f"Pages are not fetched: save {without_password(self.source)} to a file and name that.")
        if is_index(Path(self.source)):
            raise SetupError(f"{self.source} is an index: ask of it (--docs), or name the documents it is made of.")
        if "://" in self.source or is_database(Path(self.source)):
            return asyncio.run(rows_of(self.connection, self.form, self.tables)), None
        if self.tables:
            raise SetupError(f"--table is for databases, and {without_password(self.source)} is none.")
        self.reading = FolderReader(Path(self.source), self.form)
        return self.reading.documents(), self.reading

    def __exit__(self, *failure: object) -> None:
        if self.reading is not None:
            self.reading.close()


def is_database(path: Path) -> bool:
    return names_database(path.name) and path.is_file()


async def rows_of(source: str | Connection, form: RowForm, tables: Sequence[str]) -> list[Document]:
    from decisor.tools.databases.sql import SqlTool
    from decisor.tools.documents.row_documents import table_documents

    tool = await open_first(source)
    try:
        if not isinstance(tool, SqlTool):
            raise SetupError(f"{tool.name} is a graph; rows are indexed of relational databases.")
        return await table_documents(tool, tables, form)
    finally:
        await tool.close()


def size_of(folder: Path) -> int:
    return sum((Path(at) / name).stat().st_size for at, _, names in os.walk(folder) for name in names)
