"""Statements beside queries that read only the schema or a query plan. Each is matched whole and written anew."""

from __future__ import annotations

import re
from dataclasses import dataclass

from decisor.tools.databases.sandbox.dialect import Dialect

END = r"\s*;?\s*$"
VERBS = re.compile(
    r"(SELECT|WITH|VALUES|FROM|INSERT|UPDATE|DELETE|REPLACE|MERGE|CREATE|DROP|ALTER|TABLE|ANALYZE|CALL|COPY|ALL|DATABASES|VARIABLES)$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class SchemaStatement:
    """``before`` is to be written before the checked ``query`` ('' = none); ``name`` is the table it is about, '' where
    it is about all of them."""

    before: str
    name: str = ""
    query: str = ""

    @property
    def reads_rows(self) -> bool:
        return self.before.startswith("SUMMARIZE ")


def special(dialect: Dialect, statement: str) -> SchemaStatement | None:
    """The form of a statement, None where it should be a query.

    >>> from decisor.tools.databases.sandbox.engines import sqlite, postgres
    >>> special(sqlite.DIALECT, "pragma table_info([update log]);")
    SchemaStatement(before='PRAGMA table_info("update log")', name='update log', query='')
    >>> special(postgres.DIALECT, "EXPLAIN (COSTS off) SELECT 1")
    SchemaStatement(before='EXPLAIN (COSTS off) ', name='', query='SELECT 1')
    >>> special(sqlite.DIALECT, "SELECT 1")
    """
    text = statement.strip()
    for pattern, template in (*dialect.forms.whole.items(), *dialect.forms.about.items()):
        if match := re.match(pattern + END, text, re.I):
            groups = match.groupdict()
            name = bare(groups.get("name") or "")
            if VERBS.match(name) and groups.get("name") == name:
                continue
            return SchemaStatement(
                template.format(verb=(groups.get("verb") or "").lower(), name=dialect.quoted(name)), name
            )
    if dialect.forms.explain and (match := re.match(dialect.forms.explain, text, re.I)):
        return SchemaStatement(match[0] + " ", query=text[match.end() :].strip())
    return None


def bare(name: str) -> str:
    """A name without its quotes."""
    return name[1:-1] if name[:1] in "\"`'[" else name
