"""``decisor graph load``: a graph from files of nodes and edges, or from a relational database by its foreign keys."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.console import error_console, print_json
from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.secrets import without_password

if TYPE_CHECKING:
    from decisor.tools.databases.graph_draft import Draft
    from decisor.tools.databases.graph_write import Progress

SHOWN = 12
app = typer.Typer(no_args_is_help=True, help="Load a graph from files of nodes and edges, or from a database.")
FilesOf = Annotated[list[str] | None, typer.Argument(metavar="FILE...", help="CSV, JSON, Parquet or Excel.")]
OutOf = Annotated[str, typer.Option("--out", metavar="PLACE", help="FILE.kgl, bolt://HOST, or a connection.")]
FromOf = Annotated[
    str, typer.Option("--from", metavar="URL", help="A relational database, or a connection, by its foreign keys.")
]


@app.callback()
def graph() -> None:
    """Load a graph from files of nodes and edges, or from a relational database."""


@app.command("load")
def load_command(
    out: OutOf, files: FilesOf = None, database: FromOf = "",
    id: Annotated[str, typer.Option("--id", metavar="COLUMN", help="Of nodes: their id.")] = "",
    source: Annotated[str, typer.Option("--source", metavar="COLUMN", help="Of edges: the id they start at.")] = "",
    target: Annotated[str, typer.Option("--target", metavar="COLUMN", help="Of edges: the id they lead to.")] = "",
    label: Annotated[str, typer.Option("--label", metavar="COLUMN|none", help="Of nodes; none: the file's name.")] = "",
    type: Annotated[str, typer.Option("--type", metavar="COLUMN|none", help="Of edges; none: the file's name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:  # fmt: skip
    """Load a graph that decisor ask --graph can be asked of.

    A file with a source and a target holds relationships, any other nodes. What is there is not loaded over.
    """
    from decisor.cli.settings import tell_folder_file
    from decisor.config.current import current
    from decisor.session.graph_loading import GraphRequest, load_graph
    from decisor.tools.databases.graph_files import Names

    config = current()
    places = config.places([database]) if database else [""]
    if out in config.connections:
        out = config.connections[out].place
    request = GraphRequest(out, tuple(files or ()), places[0], Names(id, source, target, label, type))
    with bar(as_json) as progress:
        draft = asyncio.run(load_graph(request, progress))
    if database:
        tell_folder_file(config)
    if as_json:
        print_json(summary(out, draft))
    else:
        say(out, draft)


@contextmanager
def bar(quiet: bool) -> Iterator[Progress]:
    """A bar on standard error, where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console(), transient=True, refresh_per_second=5) as lines:
        task = lines.add_task("reading", total=None)

        def hear(what: str, done: int, total: int) -> None:
            lines.update(task, description=one_line(what, 60), completed=done, total=total)

        yield hear


def summary(out: str, draft: Draft) -> dict[str, object]:
    return {
        "out": without_password(out), "nodes": len(draft.nodes), "relationships": len(draft.edges),
        "labels": dict(draft.labels()), "kinds": dict(draft.kinds()), "notes": draft.notes, "left_out": draft.lost,
    }  # fmt: skip


def say(out: str, draft: Draft) -> None:
    types = Counter(edge.type for edge in draft.edges)
    nodes = f"{counted(len(draft.nodes), 'node')} ({listed(draft.labels())})"
    edges = f"{counted(len(draft.edges), 'relationship')}{f' ({listed(types)})' if types else ''}"
    print(f"{one_line(without_password(out), 200)}: {nodes} and {edges}")
    for note in draft.notes:
        print(f"  {one_line(note, 300)}")
    for line in draft.lost:
        print(f"Left out: {one_line(line, 300)}")


def listed(counts: Counter[str]) -> str:
    some = [f"{one_line(name, 60)} {count:,}" for name, count in counts.most_common(SHOWN)]
    more = [f"{len(counts) - SHOWN:,} more"] if len(counts) > SHOWN else []
    return ", ".join([*some, *more])
