"""From what is named to data that are open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from decisor.aio import each
from decisor.errors import SetupError
from decisor.lms.spec import LMSpec
from decisor.log import logger
from decisor.session.data import Data
from decisor.session.definitions_file import read_definitions
from decisor.session.lms import LMs
from decisor.session.options import Options, check_options
from decisor.session.result import Result
from decisor.session.source_tools import open_as_named
from decisor.session.sources import Places, Source, Sources, check_names, check_reserved, sources_of
from decisor.session.tools import open_with_servers
from decisor.trace.events import Entry
from decisor.types import Question, Tool


@asynccontextmanager
async def opened(sources: Sources) -> AsyncIterator[Data]:
    """The data, until the block ends.

    Raises:
        SetupError: something cannot be opened, or two tools have one name.
    """
    async with AsyncExitStack() as stack:

        async def tool_of(source: Source) -> Tool:
            tool = await open_as_named(source, sources)
            stack.push_async_callback(tool.close)
            logger.info("opened %s as %s", source.label, source.name)
            return tool

        if sources.deny_tables and sources.databases:
            from decisor.session.denied import check_denied

            await check_denied(sources)
        lms = LMs()
        stack.push_async_callback(lms.close)
        places = await each(tool_of, sources.places)
        databases = places[: len(sources.databases)]
        tools = [*places]
        definitions = read_definitions(sources.definitions, [tool.name for tool in databases])
        if sources.model is not None:
            from decisor.session.whatif import from_file

            model = await from_file(sources.model, databases, stack, definitions)
            tools[len(databases) : len(databases)] = [model] if model else []
        for tool in await open_with_servers(sources.tools):
            if not any(tool is spec for spec in sources.tools.specs):  # what a person opened, they close
                stack.push_async_callback(tool.close)
                check_reserved([tool.name])
            tools.append(tool)
        check_names([tool.name for tool in tools])
        data = Data(tools, databases, lms, partial(ask_once, sources), sources, definitions, asyncio.get_running_loop())
        data.ask_anew = partial(ask_again, data)
        stack.callback(setattr, data, "loop", None)
        yield data


async def open_first(db: Places = (), graph: Places = ()) -> Tool:
    """One database or graph, of which no more may be read than its connection says. The caller closes it.

    Raises:
        SetupError: none is named, or it cannot be opened.
    """
    return await open_first_of(sources_of(db=db or (), graph=graph or ()))


async def open_first_of(sources: Sources) -> Tool:
    """The first of their databases. Raises SetupError as ``open_first``."""
    from decisor.session.denied import check_denied

    if not sources.databases:
        raise SetupError("Which data? Give --db or --graph.")
    if sources.deny_tables:
        await check_denied(sources)
    return await open_as_named(sources.databases[0], sources)


async def ask_again(data: Data, question: str | Question, options: Options) -> Result:
    """Of data that are open; in another loop, or where they are closed, they are opened anew."""
    if data.loop is asyncio.get_running_loop():
        return await data.ask(question, **options)
    return await ask_once(data.sources, question, options)


async def ask_once(sources: Sources, question: str | Question, options: Options, past: Sequence[Entry] = ()) -> Result:
    """Open, ask, close. ``past``: a run of it that did not come to its end. Connections of LMs that
    were given as objects are closed too: this loop may end here."""
    from decisor.lms.closing import close_lm

    check_options(options)
    settings: Mapping[str, Any] = options.get("settings", {})
    lms = [options.get("lm"), *(value for key, value in settings.items() if key.endswith("_lm"))]
    try:
        async with opened(sources) as data:
            return await data.ask(question, past=past, **options)
    finally:
        for lm in lms:
            if lm is not None and not isinstance(lm, str | LMSpec):
                await close_lm(lm)
