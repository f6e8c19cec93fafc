"""What a source holds, in one line."""

from __future__ import annotations

from decisor.outside import one_line
from decisor.tools.databases.cypher import CypherTool
from decisor.tools.databases.sql import SqlTool
from decisor.types import Tool

CHARS = 160


def holdings(tool: Tool) -> str:
    """Tables of a database, labels of a graph; '' for what has no list of what it holds."""
    match tool:
        case SqlTool():
            names = [table.name for table in tool.tables]
            what = f"{tool.worker.description.title}, {len(names)} table{'s' * (len(names) != 1)}"
        case CypherTool():
            names = list(tool.schema.labels)
            what = "a graph of"
        case _:
            return "passages of documents" if getattr(tool, "form", "") == "passages" else ""
    return one_line(f"{what}: {', '.join(names)}" if isinstance(tool, SqlTool) else f"{what} {', '.join(names)}", CHARS)
