"""Statements beside queries that read only the schema or a query plan. Each is matched whole and written anew."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = r"""(?P<name>[^\W\d][\w$]*|"[^"]+"|`[^`]+`|'[^']+'|\[[^\]]+\])"""
END = r"\s*;?\s*$"
PRAGMA = r"table_info|table_xinfo|foreign_key_list|index_list|index_info|index_xinfo"
PG_OPTION = r"(FORMAT\s+(TEXT|JSON|YAML|XML)|(COSTS|VERBOSE)(\s+(ON|OFF|TRUE|FALSE))?)"

EXPLAIN = {
    "sqlite": r"EXPLAIN(\s+QUERY\s+PLAN)?(?=\s)",
    "duckdb": r"(EXPLAIN|DESCRIBE(?=\s+(SELECT|WITH|FROM)\b))(?=\s)",
    "postgres": rf"EXPLAIN(\s+\(\s*{PG_OPTION}(\s*,\s*{PG_OPTION})*\s*\)|(?=\s))",
    "mysql": r"(EXPLAIN|DESCRIBE|DESC)(\s+FORMAT\s*=\s*(JSON|TRADITIONAL|TREE))?(?=\s)",
}
SHOWING = {
    "sqlite": {
        rf"PRAGMA\s+(?P<verb>{PRAGMA})\s*\(\s*{NAME}\s*\)": "PRAGMA {verb}({name})",
        r"PRAGMA\s+table_list": "PRAGMA table_list",
    },
    "duckdb": {
        rf"(DESCRIBE|DESC)\s+(TABLE\s+)?{NAME}": "DESCRIBE {name}",
        rf"SUMMARIZE\s+{NAME}": "SUMMARIZE {name}",
        r"SHOW\s+TABLES": "SHOW TABLES",
        rf"SHOW\s+{NAME}": "DESCRIBE {name}",
    },
    "postgres": {r"SHOW\s+(?P<verb>server_version|search_path|timezone)": "SHOW {verb}"},
    "mysql": {
        rf"(DESCRIBE|DESC|EXPLAIN)\s+{NAME}": "DESCRIBE {name}",
        rf"SHOW\s+(FULL\s+)?(COLUMNS|FIELDS)\s+(FROM|IN)\s+{NAME}": "SHOW COLUMNS FROM {name}",
        rf"SHOW\s+(INDEX|INDEXES|KEYS)\s+(FROM|IN)\s+{NAME}": "SHOW INDEX FROM {name}",
        rf"SHOW\s+CREATE\s+TABLE\s+{NAME}": "SHOW CREATE TABLE {name}",
        r"SHOW\s+(FULL\s+)?TABLES": "SHOW TABLES",
    },
}
VERBS = re.compile(
    r"(SELECT|WITH|VALUES|FROM|INSERT|UPDATE|DELETE|REPLACE|MERGE|CREATE|DROP|ALTER|TABLE|ANALYZE|CALL|COPY|ALL|DATABASES|VARIABLES)$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Form:
    """``before`` is to be written before the checked ``query`` ('' = none); ``name`` is the table it is about."""

    before: str
    name: str = ""
    query: str = ""


def special(dialect: str, statement: str) -> Form | None:
    """The form of a statement, None where it should be a query.

    >>> special("sqlite", "pragma table_info([update log]);")
    Form(before='PRAGMA table_info("update log")', name='update log', query='')
    >>> special("postgres", "EXPLAIN (COSTS off) SELECT 1")
    Form(before='EXPLAIN (COSTS off) ', name='', query='SELECT 1')
    >>> special("sqlite", "SELECT 1")
    """
    text = statement.strip()
    for pattern, written in SHOWING[dialect].items():
        if found := re.match(pattern + END, text, re.I):
            groups = found.groupdict()
            name = bare(groups.get("name") or "")
            if VERBS.match(name) and groups.get("name") == name:
                continue
            mark = "`" if dialect == "mysql" else '"'
            quoted = mark + name.replace(mark, mark * 2) + mark
            return Form(written.format(verb=(groups.get("verb") or "").lower(), name=quoted), name)
    if found := re.match(EXPLAIN[dialect], text, re.I):
        return Form(found.group(0) + " ", query=text[found.end() :].strip())
    return None


def bare(name: str) -> str:
    """A name without its quotes."""
    return name[1:-1] if name[:1] in "\"`'[" else name
