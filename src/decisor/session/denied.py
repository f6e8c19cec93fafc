"""A table that may not be read is named as it is called: a slip would leave it open."""

from __future__ import annotations

import difflib

from decisor.aio import each
from decisor.errors import SetupError
from decisor.session.source_tools import open_source
from decisor.session.sources import Source, Sources, tables_of
from decisor.tools.databases.cypher import CypherTool, label_of
from decisor.tools.databases.sandbox.policy import bare
from decisor.tools.databases.sql import SqlTool

NEAR = 3


async def check_denied(sources: Sources) -> None:
    """Looks at the databases once, without denying anything.

    Raises:
        SetupError: a name of ``deny_tables`` is in none of the databases that it is meant for, with near names.
    """
    names = dict(zip(sources.databases, await each(names_in, sources.databases), strict=True))
    for denied in sources.deny_tables:
        here = [(source, own[0]) for source in names if (own := tables_of([denied], source, sources))]
        there = {name for source, _ in here for name in names[source]}
        if any(own_name(own, source) in names[source] for source, own in here):
            continue
        near = difflib.get_close_matches(bare(here[0][1] if here else denied), sorted(there), NEAR)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise SetupError(f"There is no table {denied} to deny, so that would deny nothing.{hint}")


async def names_in(source: Source) -> frozenset[str]:
    """Of tables, views, labels and relationship types, in lower case, without their schema."""
    tool = await open_source(source)
    try:
        names: list[str] = []
        if isinstance(tool, SqlTool):
            names = [table.bare for table in tool.tables]
        elif isinstance(tool, CypherTool):
            names = [*tool.schema.labels, *tool.schema.types]
        return frozenset(map(str.lower, names))
    finally:
        await tool.close()


def own_name(name: str, source: Source) -> str:
    """Return the name without its schema, which only tables have."""
    return label_of(name) if source.form == "cypher" else bare(name)
