"""Load a graph from files or a database, read through the sandbox, into a file, a folder or a server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from decisor.databases.files.store import names_files
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.graphs.load import Progress, check_graph_target, ignore_progress, load_nodes_and_edges
from decisor.graphs.sources import (
    ColumnChoice,
    GraphDraft,
    SourceTable,
    draft_graph_of_database,
    draft_graph_of_files,
    read_source_table,
)
from decisor.session.config import Connection
from decisor.session.data import open_data
from decisor.session.open_sources import open_source
from decisor.session.sources import Source, build_sources
from decisor.system.secrets import hide_password

COUNT = re.compile(r": [\d,]+ rows from ")
"""A note that says no more than how much was read."""


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """A request to load a graph, either from ``files`` or from a ``database``."""

    out: str
    """A file that ends in .kgl, or the URL of a graph."""
    files: tuple[str, ...] = ()
    database: str | Connection = ""
    names: ColumnChoice = field(default_factory=ColumnChoice)


async def load_graph(request: GraphRequest, progress: Progress = ignore_progress) -> GraphDraft:
    """Load a graph into its place, and return the nodes and edges that were loaded.

    Raises:
        SetupError: something cannot be read, its ids do not fit, or the place is taken or cannot be written.
    """
    if bool(request.files) == bool(request.database):
        raise SetupError("Name the files with nodes and edges, or a database: --from URL.")
    url = graph_url(request.out)
    # Look at the target first, as reading may take long.
    check_graph_target(url)
    try:
        draft = await (
            read_graph_database(request, progress) if request.database else read_graph_files(request, progress)
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


async def read_graph_files(request: GraphRequest, progress: Progress) -> GraphDraft:
    tables: list[SourceTable] = []
    notes: list[str] = []
    for number, place in enumerate(request.files):
        if not names_files(place):
            there = "is no table" if Path(place).exists() else "is not there"
            raise SetupError(
                f"{hide_password(place)} {there}. Name files such as nodes.csv, or a database by --from URL."
            )
        progress(f"reading {place}", number, len(request.files))
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
    draft = draft_graph_of_files(tables, request.names)
    draft.notes += notes
    return draft


async def read_graph_database(request: GraphRequest, progress: Progress) -> GraphDraft:
    async with open_data(build_sources(db=[request.database])) as data:
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
