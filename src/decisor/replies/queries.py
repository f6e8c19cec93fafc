"""A query that came without a label: whether a text is one, and which tool it is for."""

from __future__ import annotations

import re
from collections.abc import Sequence

LANGUAGES = {"select": "sql", "match": "cypher", "optional": "cypher", "unwind": "cypher"}
START = re.compile(r"\s*(select|with|match|optional\s+match|unwind)\b\s", re.I)
TABLE = re.compile(r"\s*with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\s*\(", re.I)
ENGINES = ("sqlite", "postgresql", "postgres", "mysql", "mariadb", "duckdb", "tsql")


def tool_for(query: str, tools: Sequence[str]) -> str:
    """The tool that a query is for, by its first word; '' where it is no query, or there is no such tool.

    >>> tool_for("SELECT 1", ["sql", "cypher"]), tool_for("MATCH (n) RETURN n", ["sql"]), tool_for("Selection", ["sql"])
    ('sql', '', '')
    """
    start = START.match(f"{query} ")
    if start is None:
        return ""
    word = start[1].split()[0].casefold()
    if word == "with":
        word = "select" if TABLE.match(query) else "match"
    if word != "select" and "(" not in query:
        return ""
    return LANGUAGES[word] if LANGUAGES[word] in tools else ""


def lone_query(text: str, tools: Sequence[str]) -> tuple[str, str] | None:
    """Tool and query where a text is one query and nothing else, or holds exactly one fence and that holds a query.

    >>> lone_query("I look:\\n```sql\\nSELECT 1\\n```", ["sql"]), lone_query("SELECT a FROM b", ["sql"])
    (('sql', 'SELECT 1'), ('sql', 'SELECT a FROM b'))
    >>> lone_query("```sql\\nSELECT 1\\n```\\nor\\n```sql\\nSELECT 2\\n```", ["sql"])
    >>> lone_query("Select the best one from the list.", ["sql"])
    """
    if "```" in text or "~~~" in text:
        fences = fences_in(text)
        if len(fences) != 1:
            return None
        language, inside = fences[0]
        language = "sql" if language in ENGINES else language
        tool = tool_for(inside, tools)
        return (tool, inside) if tool and language in ("", tool) else None
    word = next(iter(text.split(maxsplit=1)), "")
    tool = tool_for(text, tools) if word in (word.upper(), word.lower()) else ""
    return (tool, text.strip()) if tool and "\n\n" not in text.strip() else None


def fences_in(text: str) -> list[tuple[str, str]]:
    """The language and the inside of each fence."""
    fences: list[tuple[str, str]] = []
    mark, language, lines = "", "", list[str]()
    for line in text.splitlines():
        bare = line.strip()
        if mark and bare == mark:
            fences.append((language, "\n".join(lines).strip()))
            mark = ""
        elif mark:
            lines.append(line)
        elif fence := re.fullmatch(r"(`{3,}|~{3,})\s*([\w+-]*)", bare):
            mark, language, lines = fence[1], fence[2].casefold(), []
    return fences
