"""What one query may read of each source, and that no limit is set where nothing would hold to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from decisor.errors import SetupError
from decisor.max_scan import MaxScan, parse_max_scan
from decisor.session.sources import Source, Sources
from decisor.tools.abilities import Database
from decisor.types import Tool

if TYPE_CHECKING:
    from decisor.tools.databases.cypher import CypherTool
    from decisor.tools.databases.sql import SqlTool

T = TypeVar("T", bound=Tool)


def with_max_scan(sources: Sources, text: str) -> Sources:
    """Each database and graph with this limit, '' for none. Raises SetupError where it is neither rows nor bytes."""
    if not text:
        return sources
    most = parse_max_scan(text)
    places = (
        one if one.form == "passages" else replace(one, max_scans=(*one.max_scans, most)) for one in sources.places
    )
    return replace(sources, places=tuple(places))


def limits_of(source: Source) -> tuple[MaxScan, ...]:
    """All of them, that of its connection too."""
    own = source.connection.max_scan if source.connection else ""
    return (*source.max_scans, *([parse_max_scan(own)] if own else []))


def within(tool: T, limits: Sequence[MaxScan]) -> T | SqlTool | CypherTool:
    """The tool, whose queries keep to the limits. Raises SetupError where it cannot tell ahead what a query reads."""
    from decisor.tools.databases.cypher import CypherTool
    from decisor.tools.databases.sql import SqlTool

    if not limits:
        return tool
    if not isinstance(tool, SqlTool | CypherTool):
        raise SetupError(f"--max-scan is for databases and graphs, and {tool.name} is none: leave it out, or limit the "
                         "others alone, by max_scan of their connections in decisor.toml.")  # fmt: skip
    return tool.limited(*limits)


def limited(tools: Sequence[Database], max_scan: str | int) -> Sequence[Database]:
    """Each with this limit, '' for none. Raises SetupError where nothing would hold to it."""
    return [within(tool, [parse_max_scan(max_scan)]) for tool in tools] if max_scan else tools
