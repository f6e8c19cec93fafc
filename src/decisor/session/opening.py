"""From what is named to data that are open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from decisor.aio import each
from decisor.log import logger
from decisor.session.data import Data
from decisor.session.lms import LMs
from decisor.session.sources import Source, Sources, check_names
from decisor.session.tools import open_tools
from decisor.types import Tool


@asynccontextmanager
async def opened(sources: Sources) -> AsyncIterator[Data]:
    """The data, until the block ends.

    Raises:
        SetupError: something cannot be opened, or two tools have one name.
    """
    async with AsyncExitStack() as stack:

        async def tool_of(source: Source) -> Tool:
            tool = await open_source(source)
            stack.push_async_callback(tool.close)
            logger.info("opened %s as %s", source.label, source.name)
            return tool

        lms = LMs()
        stack.push_async_callback(lms.close)
        places = await each(tool_of, sources.places)
        databases = places[: len(sources.databases)]
        tools = [*places]
        if sources.model is not None:
            from decisor.session.whatif import from_file

            model = await from_file(sources.model, databases, stack)
            tools[len(databases) : len(databases)] = [model] if model else []
        for tool in open_tools(sources.tools):
            if not any(tool is spec for spec in sources.tools.specs):  # what a person opened, they close
                stack.push_async_callback(tool.close)
            tools.append(tool)
        check_names([tool.name for tool in tools])
        yield Data(sources, tools, databases, lms)


async def open_source(source: Source) -> Tool:
    """Raises SetupError where it cannot be opened."""
    if source.form == "passages":
        from decisor.session.documents import open_documents

        return await open_documents(source.place, source.name)
    if source.form == "cypher":
        from decisor.tools.databases.cypher import CypherTool

        return await CypherTool.open(source.place, source.name)
    from decisor.tools.databases.sql import SqlTool

    return await SqlTool.open(source.place, source.name)
