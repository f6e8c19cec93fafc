"""From what is named to tools that are open."""

from __future__ import annotations

from contextlib import AsyncExitStack

from decisor.aio import each
from decisor.errors import SetupError
from decisor.log import logger
from decisor.session.source_tools import open_as_named
from decisor.session.sources import Places, Source, Sources, check_reserved, sources_of
from decisor.session.tools import ToolSpecs, open_with_servers
from decisor.tools.abilities import Database, is_database
from decisor.types import Tool


async def open_places(sources: Sources, stack: AsyncExitStack) -> list[Tool]:
    """Databases and documents, in their order. ``stack`` closes them. Raises SetupError where one cannot be opened."""

    async def tool_of(source: Source) -> Tool:
        tool = await open_as_named(source, sources)
        stack.push_async_callback(tool.close)
        logger.info("opened %s as %s", source.label, source.name)
        return tool

    await check_tables(sources)
    return await each(tool_of, sources.places)


async def open_functions(specs: ToolSpecs, stack: AsyncExitStack) -> list[Tool]:
    """A person's own tools. What they opened, they close. Raises SetupError where one cannot be used."""
    tools = await open_with_servers(specs)
    for tool in tools:
        if not any(tool is spec for spec in specs.specs):
            stack.push_async_callback(tool.close)
            check_reserved([tool.name])
    return tools


async def check_tables(sources: Sources) -> None:
    """Raises SetupError where a table that is denied is in none of the databases, or there is no database."""
    if (named := (*sources.tables, *sources.deny_tables)) and not sources.databases:
        raise SetupError(f"There is no database with a table {named[0]}. Name one with --db or --graph, or leave out "
                         "--tables and --deny-tables.")  # fmt: skip
    if sources.deny_tables:
        from decisor.session.denied import check_denied

        await check_denied(sources)


async def open_first(db: Places = (), graph: Places = ()) -> Database:
    """One database or graph, of which no more may be read than its connection says. The caller closes it.

    Raises:
        SetupError: none is named, or it cannot be opened.
    """
    return await open_first_of(sources_of(db=db or (), graph=graph or ()))


async def open_first_of(sources: Sources) -> Database:
    """The first of their databases. Raises SetupError as ``open_first``."""
    if not sources.databases:
        raise SetupError("Which data? Give --db or --graph.")
    await check_tables(sources)
    tool = await open_as_named(sources.databases[0], sources)
    assert is_database(tool)
    return tool
