"""From one source that is named to its tool, open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from decisor.errors import SetupError
from decisor.session.readers import check_policy, split_rows
from decisor.session.scan_limits import limits_of, within
from decisor.session.sources import Source, Sources, split_names, tables_of
from decisor.tools.databases.sandbox.policy import policy_of
from decisor.types import Tool


async def open_as_named(source: Source, sources: Sources) -> Tool:
    """With what may be read of it. Raises SetupError as ``open_source``."""
    tables, denied = (tables_of(names, source, sources) for names in (sources.tables, sources.deny_tables))
    return await open_source(source, tables, denied)


async def open_source(source: Source, tables: Sequence[str] = (), deny_tables: Sequence[str] = ()) -> Tool:
    """Raises SetupError where it cannot be opened, has not what ``tables`` names, or cannot keep to its limits."""
    source = as_configured(source)
    tool = await open_form(source, tables, deny_tables)
    try:
        return within(tool, limits_of(source))
    except SetupError:
        await tool.close()
        raise


async def open_form(source: Source, tables: Sequence[str], deny_tables: Sequence[str]) -> Tool:
    """As its form is opened."""
    if source.form == "passages":
        from decisor.session.documents import open_for_reader

        conditions = [text for _, text in source.policy.rows]
        return await open_for_reader(source.place, source.name, conditions, source.connection, source.audit)
    from decisor.tools.databases.sandbox.engine import Caps

    seconds = source.connection.seconds if source.connection else 0.0
    caps = Caps(seconds=seconds) if seconds else None
    if source.form == "cypher":
        from decisor.tools.databases.cypher import CypherTool

        caps = replace(caps or Caps(), policy=source.policy)
        return await CypherTool.open(source.place, source.name, caps, deny_tables, tables, source.audit)
    from decisor.tools.databases.files.places import names_files
    from decisor.tools.databases.sql import SqlTool

    if not names_files(source.place):
        return await SqlTool.open(source.place, source.name, caps, deny_tables, tables, source.policy, source.audit)
    from decisor.tools.databases.files.store import store_of

    store = await asyncio.to_thread(store_of, source.place)
    tool = await SqlTool.open(store.url, source.name, caps, deny_tables, tables, source.policy, source.audit)
    tool.notes = (*store.notes, *tool.notes)
    return tool


def as_configured(source: Source) -> Source:
    """With the rows and masks that a config file says of it, which nobody can leave out. Raises SetupError as
    ``check_policy``."""
    if source.connection is None or not (source.connection.mask or source.connection.rows) or source.policy:
        return source
    policy = policy_of({}, split_names(tuple(source.connection.mask)))
    policy = replace(policy, rows=tuple(split_rows(source.connection.rows)))
    check_policy(source, policy)
    return replace(source, policy=policy)
