"""Open the sources that a person named as tools, with their limits.

The rows, masks and tables of a config file hold for a connection whatever a person names. A denied table must be named
exactly, for a slip of spelling would leave it open: so its name is looked up in the databases first. No limit on one
query is set where the source could not keep to it.

What ``--docs`` names becomes a tool that finds passages: an index on disk or in PostgreSQL, a folder or file small
enough to be indexed in memory, or a person's own retriever.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from decisor.databases.files.store import import_place, names_files
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError
from decisor.graphs.cypher import CypherTool, normalize_graph_label
from decisor.runtime.budget import MaxScan, parse_max_scan
from decisor.sandbox.engine import Caps, bare_table_name, build_policy
from decisor.sandbox.engines import load_engine, names_database, parse_url
from decisor.session.access import (
    Reader,
    check_source_policy,
    parse_row_conditions,
    restrict_sources,
    split_row_conditions,
)
from decisor.session.config import Config
from decisor.session.sources import (
    Places,
    Source,
    Sources,
    build_sources,
    check_reserved_names,
    split_names,
    tables_of_source,
)
from decisor.session.user_tools import ToolSpecs, is_mcp_spec, open_tools_of_spec, read_mcp_keys
from decisor.system.extras import find_plugins, logger
from decisor.system.secrets import hide_password
from decisor.system.settings import IMPORT_PATH
from decisor.system.tasks import map_concurrently
from decisor.system.text import fit_on_one_line, json_line
from decisor.system.wording import format_count
from decisor.tools.abilities import Database, is_database_tool
from decisor.types import Tool

if TYPE_CHECKING:
    from decisor.documents.index import DocumentIndex
    from decisor.documents.passage import Embedder, Passage
    from decisor.documents.tool import PassagesTool
    from decisor.sandbox.process import Audit
    from decisor.session.config import Connection
    from decisor.session.request import AskRequest


T = TypeVar("T", bound=Tool)


def complete_request(request: AskRequest, config: Config) -> AskRequest:
    """Return a request with the data, technique, LLM and limits that are set here, where it names none."""
    return request.with_settings(config.value_of_key).model_copy(
        update={
            "db": request.db if request.names_data else config.default_places,
            "technique": request.technique or config.text("technique"),
            "llm": config.llm(request.llm or None) or "",
            "limits": config.limits(request.limits),
        }
    )


def sources_of_request(request: AskRequest, config: Config) -> Sources:
    """Return the data that a request names, as far as it lets them be read.

    Raises:
        SetupError: something that was named cannot be data, or a table or column is of none.
    """
    request = request.with_settings(config.value_of_key)
    tools = ToolSpecs(request.tools, request.methods, request.base_url, request.auth, request.row_values)
    sources = build_sources(
        config.places(request.db),
        config.places(request.graph),
        config.places(request.docs),
        tools,
        request.model or None,
        request.tables,
        request.deny_tables,
        request.definitions,
    )
    rows = tuple(parse_row_conditions(request.rows).items())
    seen = restrict_sources(sources, Reader("", rows, request.mask, request.reveal), request.audit or None)
    if not request.max_scan:
        return seen
    most = parse_max_scan(request.max_scan)
    places = [
        place if place.form == "passages" else replace(place, max_scans=(*place.max_scans, most))
        for place in seen.places
    ]
    return replace(seen, places=tuple(places))


def limit_tool_scans(tool: T, limits: Sequence[MaxScan]) -> T | SqlTool | CypherTool:
    """Return the tool, with queries that keep to the limits.

    Raises SetupError if it cannot tell beforehand how much a query reads.
    """
    if not limits:
        return tool
    if not isinstance(tool, SqlTool | CypherTool):
        raise SetupError(
            f"--max-scan is for databases and graphs, and {tool.name} is none: leave it out, or limit the "
            "others alone, by max_scan of their connections in decisor.toml."
        )
    return tool.limited(*limits)


def limit_database_scans(tools: Sequence[Database], max_scan: str | int) -> Sequence[Database]:
    """Add a limit on one query to each database; '' adds none. Raises SetupError if a database cannot keep to it."""
    return [limit_tool_scans(tool, [parse_max_scan(max_scan)]) for tool in tools] if max_scan else tools


async def open_source(source: Source, sources: Sources | None = None) -> Tool:
    """Open a source as a tool, restricted to its tables of ``sources`` that may be read.

    Raises SetupError if it cannot be opened, lacks a table that is named, or cannot keep to its limits.
    """
    connection = source.connection
    if re.search(r"\{user\}|\{group\}", source.role):
        raise SetupError(
            f"{source.name} is read in the role {source.role} of who asks. Serve it with decisor serve --users FILE, "
            "to people with a name, and for {group} with one group."
        )
    # Nobody can leave out the rules of a config file. Where there is a policy, restrict_sources has put them into it.
    if connection is not None and not source.policy:
        policy = build_policy({}, split_names(tuple(connection.mask)))
        policy = replace(policy, rows=tuple(split_row_conditions(connection.rows.items())))
        check_source_policy(source, policy)
        source = replace(source, policy=policy)
    tool = await open_source_by_form(source, sources or Sources())
    own = [parse_max_scan(connection.max_scan)] if connection and connection.max_scan else []
    try:
        return limit_tool_scans(tool, [*source.max_scans, *own])
    # The tool is ours until it is returned.
    except SetupError:
        await tool.close()
        raise


async def open_source_by_form(source: Source, sources: Sources) -> Tool:
    if source.role and source.form != "sql":
        raise SetupError(f"{source.name} is no database with roles: leave role out, or use an account of its own.")
    if source.form == "passages":
        conditions = [text for _, text in source.policy.rows]
        return await open_documents_for_reader(source.place, source.name, conditions, source.connection, source.audit)
    tables, denied = (tables_of_source(names, source, sources) for names in (sources.tables, sources.deny_tables))
    seconds = source.connection.seconds if source.connection else 0.0
    caps = Caps(seconds=seconds) if seconds else None
    if source.form == "cypher":
        caps = replace(caps or Caps(), policy=source.policy)
        return await CypherTool.open(source.place, source.name, caps, denied, tables, source.audit)
    store = await asyncio.to_thread(import_place, source.place) if names_files(source.place) else None
    place = store.url if store else source.place
    if source.role:
        caps = replace(caps or Caps(seconds=load_engine(parse_url(place)[0]).seconds), role=source.role)
    tool = await SqlTool.open(place, source.name, caps, denied, tables, source.policy, source.audit)
    if store is not None:
        # The tool reads a copy of the files, which does not know how they were read.
        tool.notes = (*store.notes, *tool.notes)
    return tool


async def open_places(sources: Sources, stack: AsyncExitStack) -> list[Tool]:
    """Open databases and documents, in their order; ``stack`` closes them.

    Raises SetupError if one cannot be opened.
    """

    async def tool_of(source: Source) -> Tool:
        tool = await open_source(source, sources)
        stack.push_async_callback(tool.close)
        logger.info("opened %s as %s", source.label, source.name)
        return tool

    await check_named_tables(sources)
    return await map_concurrently(tool_of, sources.places)


async def open_user_tools(specs: ToolSpecs, stack: AsyncExitStack) -> list[Tool]:
    """Open a person's own tools; a command of an MCP server is started. ``stack`` closes what is opened here.

    Raises SetupError if one cannot be used.
    """
    tools: list[Tool] = []
    for spec in specs.specs:
        if is_mcp_spec(spec):
            from decisor.tools.mcp_client import open_mcp_tools

            opened: Sequence[Tool] = await open_mcp_tools(str(spec), read_mcp_keys(specs.auth, os.environ))
        else:
            opened = open_tools_of_spec(spec, specs)
        # A tool that was given as an object stays open for its owner.
        own = [tool for tool in opened if tool is not spec]
        for tool in own:
            stack.push_async_callback(tool.close)
        check_reserved_names(tool.name for tool in own)
        tools += opened
    return tools


async def check_named_tables(sources: Sources) -> None:
    """Raise SetupError if no database has a denied table, or tables are named without a database."""
    if (named := (*sources.tables, *sources.deny_tables)) and not sources.databases:
        raise SetupError(
            f"There is no database with a table {named[0]}. Name one with --db or --graph, or leave out "
            "--tables and --deny-tables."
        )
    await check_denied_tables(sources)


async def open_first_database(db: Places = (), graph: Places = ()) -> Database:
    """Open one database or graph, as far as its connection lets it be read. The caller closes it.

    Raises:
        SetupError: none is named, or it cannot be opened.
    """
    return await open_first_of_sources(build_sources(db=db or (), graph=graph or ()))


async def open_first_of_sources(sources: Sources) -> Database:
    """Open the first database of sources. Raises SetupError as ``open_first_database``."""
    if not sources.databases:
        raise SetupError("No data source given. Use --db or --graph.")
    await check_named_tables(sources)
    tool = await open_source(sources.databases[0], sources)
    assert is_database_tool(tool)
    return tool


async def check_denied_tables(sources: Sources) -> None:
    """Check that each denied table exists. It looks at the databases once, without denying anything.

    Raises:
        SetupError: a name of ``deny_tables`` is in none of the databases that it is meant for, with near names.
    """
    if not sources.deny_tables:
        return
    names = dict(zip(sources.databases, await map_concurrently(read_table_names, sources.databases), strict=True))
    for denied in sources.deny_tables:
        # A name is meant for each source that it can be of; one of these must have it.
        here = [(source, own[0]) for source in names if (own := tables_of_source([denied], source, sources))]
        there = {name for source, _ in here for name in names[source]}
        # Only tables have a schema.
        if any(
            (normalize_graph_label(own) if source.form == "cypher" else bare_table_name(own)) in names[source]
            for source, own in here
        ):
            continue
        near = difflib.get_close_matches(bare_table_name(here[0][1] if here else denied), sorted(there), 3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise SetupError(f"There is no table {denied} to deny, so that would deny nothing.{hint}")


async def read_table_names(source: Source) -> frozenset[str]:
    """Read the names of tables, views, labels and relationship types, in lower case. They are without their schema."""
    tool = await open_source(source)
    try:
        names: list[str] = []
        if isinstance(tool, SqlTool):
            names = [table.bare for table in tool.tables]
        elif isinstance(tool, CypherTool):
            names = [*tool.schema.labels, *tool.schema.types]
        # Engines fold the case of names in different ways.
        return frozenset(map(str.lower, names))
    finally:
        await tool.close()


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
    place: str, name: str = PASSAGES, limit: int = 10, connection: Connection | None = None, titles: bool = True
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
