"""``decisor index`` and ``decisor graph``: documents indexed, and graphs loaded, for questions.

Documents are cut into passages; the second time only changed documents are read. A graph comes from files of nodes and
edges, or from a relational database by its foreign keys.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.output import Exit, error_console, print_folder_file, print_json
from decisor.session.config import Connection, resolve_config
from decisor.session.indexing import IndexRequest, build_or_update_index
from decisor.system.secrets import hide_password
from decisor.system.text import clean_one_line
from decisor.system.wording import format_count

if TYPE_CHECKING:
    from decisor.documents.index import IndexChanges, Progress
    from decisor.documents.reader import FolderReader
    from decisor.graphs.load import Progress as GraphWriteProgress
    from decisor.graphs.sources import GraphDraft


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
    from decisor.graphs.sources import ColumnChoice
    from decisor.session.graph_loading import GraphRequest, load_graph

    config = resolve_config()
    places = config.places([database]) if database else [""]
    if out in config.connections:
        out = config.connections[out].place
    request = GraphRequest(out, tuple(files or ()), places[0], ColumnChoice(id, source, target, label, type))
    with show_graph_progress(as_json) as progress:
        draft = asyncio.run(load_graph(request, progress))
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
