"""Open the sources that a person named as tools, with their limits.

The rows, masks and tables of a config file hold for a connection whatever a person names. A denied table must be named
exactly, for a slip of spelling would leave it open: so its name is looked up in the databases first. No limit on one
query is set where the source could not keep to it.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from decisor.databases.files.store import import_place, names_files
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError
from decisor.graphs.cypher import CypherTool, normalize_graph_label
from decisor.runtime.budget import MaxScan, parse_max_scan
from decisor.sandbox.engine import Caps, bare_table_name, build_policy
from decisor.sandbox.engines import load_engine, parse_url
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
from decisor.system.extras import logger
from decisor.system.tasks import map_concurrently
from decisor.tools.abilities import Database, is_database_tool
from decisor.types import Tool

if TYPE_CHECKING:
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
        from decisor.session.documents import open_documents_for_reader

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
