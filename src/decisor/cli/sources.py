"""``decisor index`` and ``decisor graph``: documents indexed, and graphs loaded, for questions.

Documents are cut into passages; the second time only changed documents are read. A graph comes from files of nodes and
edges, or from a relational database by its foreign keys.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.output import Exit, error_console, print_folder_file, print_json
from decisor.databases.files.store import names_files
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.graphs.load import Progress as GraphWriteProgress
from decisor.graphs.load import check_graph_target, load_nodes_and_edges
from decisor.graphs.sources import (
    ColumnChoice,
    GraphDraft,
    SourceTable,
    draft_graph_of_database,
    draft_graph_of_files,
    read_source_table,
)
from decisor.sandbox.engines import names_database
from decisor.session.config import Connection, resolve_config
from decisor.session.data import open_data
from decisor.session.open_sources import open_first_database, open_source
from decisor.session.sources import Source, build_sources
from decisor.system.secrets import hide_password
from decisor.system.text import clean_one_line
from decisor.system.wording import format_count

if TYPE_CHECKING:
    from decisor.documents.index import IndexChanges, Progress, SourceDocument
    from decisor.documents.passage import Embedder
    from decisor.documents.postgres import TablePlace
    from decisor.documents.reader import FolderReader, RowForm


SHOWN = 20
TABLE = "Database table to read. Repeatable; default: all."
OUT = "Folder of the index, or postgresql://HOST/DATABASE/TABLE. An existing index is updated."
SOURCE = (
    "A folder, a file (text, Markdown, HTML, PDF, Word, PowerPoint, Excel, JSON lines, CSV), a database's URL, or the "
    "name of a connection."
)


def index_command(
    source: Annotated[str, typer.Argument(help=SOURCE)],
    out: Annotated[str, typer.Option("--out", metavar="PLACE", help=OUT)],
    dense: Annotated[bool, typer.Option("--dense", help="Add vectors by the local embedding model (slow).")] = False,
    embed: Annotated[str, typer.Option("--embed", metavar="MODEL@URL", help="Add vectors by an endpoint.")] = "",
    words: Annotated[int, typer.Option("--words", min=20, max=2000, help="Approximate words per passage.")] = 100,
    language: Annotated[str, typer.Option("--language", help="Language for word forms, or none.")] = "english",
    table: Annotated[list[str] | None, typer.Option("--table", metavar="TABLE", help=TABLE)] = None,
    text: Annotated[str, typer.Option("--text", metavar="COLUMN", help="Column with the text.")] = "",
    title: Annotated[str, typer.Option("--title", metavar="COLUMN", help="Column with the title.")] = "",
    id: Annotated[str, typer.Option("--id", metavar="COLUMN", help="Column that identifies a row.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Rebuild the whole index.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Index documents for decisor ask --docs.

    Run the same command again to update the index: changed documents are read again, deleted ones are removed. If it
    is stopped, the index stays unchanged.
    """
    from decisor.documents.reader import RowForm

    form = RowForm(text, title, id, words)
    config = resolve_config()
    place = config.connections.get(source, source)
    if isinstance(place, Connection):
        print_folder_file(config)
    request = IndexRequest(place, out, language, dense, embed, form, table or (), fresh)
    report = build_or_update_index(request, partial(IndexBar, quiet=as_json))
    changes, reading = report.changes, report.reading
    summary: dict[str, Any] = {
        "kept" if name == "unchanged" else name: value for name, value in asdict(changes).items()
    }
    summary |= {"index": hide_password(out), "bytes": report.bytes}
    if reading is not None:
        summary |= {"other_kinds": dict(reading.strange), "outside": reading.outside}
    if as_json:
        print_json(summary)
    else:
        print_index_summary(changes, summary)
    if not changes.passages:
        raise typer.Exit(Exit.FAILED)


class IndexBar:
    """A bar on standard error, if that is a terminal: bytes read, documents, passages."""

    def __init__(self, reading: FolderReader | None, quiet: bool) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self.reading, self.documents = reading, 0
        off = quiet or not sys.stderr.isatty()
        self.progress = Progress(*columns, console=error_console(), transient=True, refresh_per_second=5, disable=off)

    def __enter__(self) -> Progress:
        self.progress.start()
        self.task = self.progress.add_task("reading", total=self.reading.total if self.reading else None)
        return self.hear

    def hear(self, key: str, passages: int) -> None:
        self.documents += 1
        if self.documents % 50 == 1 or self.reading is None or len(self.reading.files) < 1000:
            text = (
                f"{format_count(self.documents, 'document')}, {format_count(passages, 'new passage')} · "
                f"{clean_one_line(key, 40)}"
            )
            self.progress.update(self.task, description=text, completed=self.reading.at if self.reading else None)

    def __exit__(self, *failure: object) -> None:
        self.progress.stop()


def print_index_summary(changes: IndexChanges, summary: dict[str, Any]) -> None:
    """Print the changes of an index, and the documents and links left out."""
    if changes.passages:
        print(f"{summary['index']}: {format_count(changes.passages, 'passage')}, {format_size(summary['bytes'])}")
        counts = {name: summary[name] for name in ("added", "updated", "deleted", "kept")}
        print("Documents: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()))
    if changes.anew:
        print(f"Rebuilt, since {changes.anew}.")
    if changes.unread:
        print(f"Not read: {changes.unread:,}")
        for key, why in changes.skipped[:SHOWN]:
            print(f"  {clean_one_line(key, 80)}: {clean_one_line(why, 120)}")
        if changes.unread > SHOWN:
            print(f"  and {changes.unread - SHOWN:,} more (--json names the first {len(changes.skipped):,})")
    if kinds := summary.get("other_kinds"):
        print(
            "Left out: " + ", ".join(f"{count:,} {clean_one_line(kind, 20)}" for kind, count in sorted(kinds.items()))
        )
    if not changes.passages:
        print(explain_empty_index(summary, bool(changes.unread)))
    if outside := summary.get("outside"):
        print(f"Not followed, leads outside: {', '.join(clean_one_line(name, 60) for name in outside[:SHOWN])}")


def explain_empty_index(summary: dict[str, Any], unread: bool) -> str:
    """Explain an index without passages, and say whether the index stays.

    The reason is given only if no document gave one.
    """
    from decisor.documents.index import is_index
    from decisor.documents.postgres import is_table_url
    from decisor.documents.reader import KINDS

    why = ""
    if not unread:
        documents = f"No documents found (readable: {' '.join(KINDS)}). "
        why = documents if "other_kinds" in summary else "The database has no rows. "
    out = summary["index"]
    stays = is_table_url(out) or is_index(Path(out))
    return f"{why}Nothing was indexed; {f'{out} is unchanged' if stays else 'no index was made'}."


def format_size(size: int) -> str:
    """Format a number of bytes in kB or MB.

    >>> format_size(45_300), format_size(12_345_678)
    ('45.3 kB', '12.3 MB')
    """
    return f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


SHOWN_LABELS = 12
app = typer.Typer(no_args_is_help=True, help="Load a graph from files of nodes and edges, or from a database.")
FilesOf = Annotated[list[str] | None, typer.Argument(metavar="FILE...", help="CSV, JSON, Parquet or Excel.")]
OutOf = Annotated[str, typer.Option("--out", metavar="PLACE", help="FILE.kgl, bolt://HOST, or a connection.")]
FromOf = Annotated[
    str, typer.Option("--from", metavar="URL", help="Relational database to convert by its foreign keys.")
]


@app.callback()
def graph_root() -> None:
    """Load a graph from files of nodes and edges, or from a relational database."""


@app.command("load")
def load_graph_command(
    out: OutOf,
    files: FilesOf = None,
    database: FromOf = "",
    id: Annotated[str, typer.Option("--id", metavar="COLUMN", help="Column with node ids.")] = "",
    source: Annotated[str, typer.Option("--source", metavar="COLUMN", help="Column with edges' start node.")] = "",
    target: Annotated[str, typer.Option("--target", metavar="COLUMN", help="Column with edges' end node.")] = "",
    label: Annotated[
        str, typer.Option("--label", metavar="COLUMN|none", help="Column of labels; none: file name.")
    ] = "",
    type: Annotated[str, typer.Option("--type", metavar="COLUMN|none", help="Column of types; none: file name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Load a graph for decisor ask --graph.

    Files with a source and a target column hold relationships, others hold nodes. Existing data are not overwritten.
    """
    config = resolve_config()
    places = config.places([database]) if database else [""]
    if out in config.connections:
        out = config.connections[out].place
    columns = ColumnChoice(id, source, target, label, type)
    with show_graph_progress(as_json) as progress:
        draft = asyncio.run(load_graph(out, files or (), places[0], columns, progress))
    if database:
        print_folder_file(config)
    if as_json:
        print_json(graph_as_object(out, draft))
    else:
        print_graph_summary(out, draft)


@contextmanager
def show_graph_progress(quiet: bool) -> Iterator[GraphWriteProgress]:
    """Show a progress bar on standard error if that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    off = quiet or not sys.stderr.isatty()
    with Progress(*columns, console=error_console(), transient=True, refresh_per_second=5, disable=off) as lines:
        task = lines.add_task("reading", total=None)

        def hear(what: str, done: int, total: int) -> None:
            lines.update(task, description=clean_one_line(what, 60), completed=done, total=total)

        yield hear


def graph_as_object(out: str, draft: GraphDraft) -> dict[str, object]:
    return {
        "out": hide_password(out),
        "nodes": len(draft.nodes),
        "relationships": len(draft.edges),
        "labels": dict(draft.labels()),
        "kinds": dict(draft.kinds()),
        "notes": draft.notes,
        "left_out": draft.lost,
    }


def print_graph_summary(out: str, draft: GraphDraft) -> None:
    types = Counter(edge.type for edge in draft.edges)
    nodes = f"{format_count(len(draft.nodes), 'node')} ({format_top_counts(draft.labels())})"
    edges = f"{format_count(len(draft.edges), 'relationship')}{f' ({format_top_counts(types)})' if types else ''}"
    print(f"{clean_one_line(hide_password(out), 200)}: {nodes} and {edges}")
    for note in draft.notes:
        print(f"  {clean_one_line(note, 300)}")
    for line in draft.lost:
        print(f"Left out: {clean_one_line(line, 300)}")


def format_top_counts(counts: Counter[str]) -> str:
    some = [f"{clean_one_line(name, 60)} {count:,}" for name, count in counts.most_common(SHOWN_LABELS)]
    more = [f"{len(counts) - SHOWN_LABELS:,} more"] if len(counts) > SHOWN_LABELS else []
    return ", ".join([*some, *more])


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
    from decisor.documents.reader import read_table_documents

    tool = await open_first_database(request.source)
    try:
        if not isinstance(tool, SqlTool):
            raise SetupError(f"{tool.name} is a graph; rows are indexed of relational databases.")
        return await read_table_documents(tool, request.tables, request.form)
    finally:
        await tool.close()


COUNT = re.compile(r": [\d,]+ rows from ")
"""A note that says no more than how much was read."""


async def load_graph(
    out: str, files: Sequence[str], database: str | Connection, names: ColumnChoice, progress: GraphWriteProgress
) -> GraphDraft:
    """Load a graph of files or of a database into its place, and return the nodes and edges that were loaded.

    Raises:
        SetupError: something cannot be read, its ids do not fit, or the place is taken or cannot be written.
    """
    if bool(files) == bool(database):
        raise SetupError("Name the files with nodes and edges, or a database: --from URL.")
    url = graph_url(out)
    # Look at the target first, as reading may take long.
    check_graph_target(url)
    try:
        draft = await (
            read_graph_database(database, progress) if database else read_graph_files(files, names, progress)
        )
    except ToolError as error:
        raise SetupError(f"The rows cannot be read: {error}") from error
    if not draft.nodes:
        raise SetupError("There are no rows to make nodes of.")
    load_nodes_and_edges(url, draft.nodes, draft.edges, progress)
    return draft


def graph_url(out: str) -> str:
    """Return the URL of the graph that ``--out`` names; raise SetupError if it is no such place.

    >>> graph_url("shop.kgl"), graph_url("bolt://host")
    ('kglite:///shop.kgl', 'bolt://host')
    """
    if "://" in out:
        return out
    if PurePath(out).suffix.lower() != ".kgl":
        raise SetupError(f"--out {out}: name a file that ends in .kgl, or bolt://HOST.")
    return f"kglite:///{out}"


async def read_graph_files(files: Sequence[str], names: ColumnChoice, progress: GraphWriteProgress) -> GraphDraft:
    tables: list[SourceTable] = []
    notes: list[str] = []
    for number, place in enumerate(files):
        if not names_files(place):
            there = "is no table" if Path(place).exists() else "is not there"
            raise SetupError(
                f"{hide_password(place)} {there}. Name files such as nodes.csv, or a database by --from URL."
            )
        progress(f"reading {place}", number, len(files))
        tool = await open_source(Source("sql", place, "files"))
        try:
            assert isinstance(tool, SqlTool)
            name = Path(place).name
            for one in tool.tables:
                tables.append(
                    await read_source_table(tool, one, name if len(tool.tables) == 1 else f"{name}, {one.name}")
                )
            notes += [note for note in tool.notes if not COUNT.search(note)]
        finally:
            await tool.close()
    draft = draft_graph_of_files(tables, names)
    draft.notes += notes
    return draft


async def read_graph_database(database: str | Connection, progress: GraphWriteProgress) -> GraphDraft:
    async with open_data(build_sources(db=[database])) as data:
        tool = next((tool for tool in data.tools if isinstance(tool, SqlTool)), None)
        if tool is None:
            raise SetupError("--from takes a relational database; that is none.")
        # A view shows rows of tables once more: only tables become nodes and edges.
        tables = [table for table in tool.tables if not table.view and table.runs]
        rows: dict[str, SourceTable] = {}
        for number, table in enumerate(tables):
            progress(f"reading {table.name}", number, len(tables))
            rows[table.name] = await read_source_table(tool, table, table.name)
        return draft_graph_of_database(tables, rows)
