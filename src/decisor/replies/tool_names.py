"""Which tool a model means by the name that it wrote."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from decisor.errors import ParseError
from decisor.replies.cleaning import INVISIBLE

ALIASES = {
    "relational_db": "sql",
    "relational_database": "sql",
    "rdb": "sql",
    "sql_query": "sql",
    "graph_db": "cypher",
    "graph_database": "cypher",
    "gdb": "cypher",
    "cypher_query": "cypher",
    "self_thinking": "think",
    "self_think": "think",
}
FILLERS = re.compile(r"(?:^|_)(?:an?|the|my|us(?:e|ing)|call|run|tool|function|database|db|quer(?:y|ies))(?=_|$)")


def match_tool(name: str, tools: Sequence[str], repairs: list[str]) -> str:
    """The tool that is meant: case, spaces and well-known other names are forgiven, look-alikes are not.

    >>> match_tool("Relational DB", ["sql", "think"], [])
    'sql'
    >>> match_tool("the SQL database", ["sql", "think"], [])
    'sql'
    >>> match_tool("sq", ["sql", "think"], [])
    Traceback (most recent call last):
    decisor.errors.ParseError: There is no tool 'sq'; there is sql, think. Did you mean sql?
    """
    if name in tools:
        return name
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", name):
        raise ParseError("The name of the tool holds a control character.", "control")
    visible = name.translate(INVISIBLE)
    if visible != name:
        repairs.append("invisible")
    by_plain_name = {tool.casefold(): tool for tool in tools}
    if visible in tools:
        return visible
    plain = re.sub(r"[\s-]+", "_", visible.strip().strip("`*'\"[]").strip()).casefold()
    if plain in by_plain_name:
        repairs.append("case")
        return by_plain_name[plain]
    if ALIASES.get(plain) in by_plain_name:
        repairs.append("tool_alias")
        return by_plain_name[ALIASES[plain]]
    bare = FILLERS.sub("", plain).strip("_")
    if re.fullmatch(r"[a-z_]+", plain) and bare in by_plain_name:
        repairs.append("tool_alias")
        return by_plain_name[bare]
    near = difflib.get_close_matches(plain, by_plain_name, 1)
    hint = f" Did you mean {by_plain_name[near[0]]}?" if near else ""
    ascii_name = name[:60].encode("ascii", "backslashreplace").decode()
    raise ParseError(f"There is no tool {ascii_name!r}; there is {', '.join(tools)}.{hint}", "unknown_tool")
