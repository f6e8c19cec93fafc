"""Loads a graph: what files or a database hold, read through the sandbox, into a file, a folder or a server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from decisor.config.connection import Connection
from decisor.errors import SetupError, ToolError
from decisor.secrets import without_password
from decisor.session.data import opened
from decisor.session.source_tools import open_source
from decisor.session.sources import Source, sources_of
from decisor.tools.databases.files.places import names_files
from decisor.tools.databases.graph_draft import Draft, Rows, rows_of
from decisor.tools.databases.graph_files import Names, draft_of_files
from decisor.tools.databases.graph_load import check_place, load
from decisor.tools.databases.graph_relations import draft_of_database
from decisor.tools.databases.graph_write import Progress, silent
from decisor.tools.databases.sql import SqlTool

COUNT = re.compile(r": [\d,]+ rows from ")
"""A note that says no more than how much was read."""


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """Either ``files`` or a ``database``. ``out``: a file that ends in .kgl, or the URL of a graph."""

    out: str
    files: tuple[str, ...] = ()
    database: str | Connection = ""
    names: Names = field(default_factory=Names)


async def load_graph(request: GraphRequest, progress: Progress = silent) -> Draft:
    """What was loaded.

    Raises:
        SetupError: something cannot be read, its ids do not fit, or the place is taken or cannot be written.
    """
    if bool(request.files) == bool(request.database):
        raise SetupError("Name the files with nodes and edges, or a database: --from URL.")
    url = graph_url(request.out)
    check_place(url)
    try:
        draft = await (from_database(request, progress) if request.database else from_files(request, progress))
    except ToolError as error:
        raise SetupError(f"The rows cannot be read: {error}") from error
    if not draft.nodes:
        raise SetupError("There are no rows to make nodes of.")
    load(url, draft.nodes, draft.edges, progress)
    return draft


def graph_url(out: str) -> str:
    """
    >>> graph_url("shop.kgl"), graph_url("bolt://host")
    ('kglite:///shop.kgl', 'bolt://host')
    """
    if "://" in out:
        return out
    if PurePath(out).suffix.lower() != ".kgl":
        raise SetupError(f"--out {out}: name a file that ends in .kgl, or bolt://HOST.")
    return f"kglite:///{out}"


async def from_files(request: GraphRequest, progress: Progress) -> Draft:
    tables: list[Rows] = []
    notes: list[str] = []
    for number, place in enumerate(request.files):
        if not names_files(place):
            there = "is no table" if Path(place).exists() else "is not there"
            raise SetupError(
                f"{without_password(place)} {there}. Name files such as nodes.csv, or a database by --from URL."
            )
        progress(f"reading {place}", number, len(request.files))
        tool = await open_source(Source("sql", place, "files"))
        try:
            assert isinstance(tool, SqlTool)
            name = Path(place).name
            for one in tool.tables:
                tables.append(await rows_of(tool, one, name if len(tool.tables) == 1 else f"{name}, {one.name}"))
            notes += [note for note in tool.notes if not COUNT.search(note)]
        finally:
            await tool.close()
    draft = draft_of_files(tables, request.names)
    draft.notes += notes
    return draft


async def from_database(request: GraphRequest, progress: Progress) -> Draft:
    async with opened(sources_of(db=[request.database])) as data:
        tool = next((tool for tool in data.tools if isinstance(tool, SqlTool)), None)
        if tool is None:
            raise SetupError("--from takes a relational database; that is none.")
        tables = [table for table in tool.tables if not table.view and table.runs]
        rows: dict[str, Rows] = {}
        for number, table in enumerate(tables):
            progress(f"reading {table.name}", number, len(tables))
            rows[table.name] = await rows_of(tool, table, table.name)
        return draft_of_database(tables, rows)
