"""The SQL guard: one statement, of a reading kind, made of allowed nodes, functions and tables.

Only SQL written anew from the tree is run, so what the parser took for a comment is not run as code either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.forms import special
from decisor.tools.databases.sandbox.names import (
    CATALOGS,
    FORMATTING,
    FUNCTION_CLASSES_REFUSED,
    FUNCTIONS,
    NODES,
    READABLE,
)

MAX_CHARS = 20_000
MAX_BRACKETS = 60
MAX_OPERATORS = 2_000
UNSAFE_NAME = re.compile(
    r"[/\\:*?]|^\.|\.(csv|tsv|json|jsonl|ndjson|parquet|db|duckdb|sqlite|txt|gz|zst|xlsx|arrow)$", re.I
)


BRACKET = re.compile(r"[(){}\[\]]")


def refuse(reason: str) -> ToolError:
    return ToolError(f"Refused: {reason}", refused=True)


@dataclass(frozen=True)
class Guard:
    """``dialect`` as sqlglot names it. ``deny``: tables not to be read. ``extra``: more functions that may run."""

    dialect: str
    deny: frozenset[str] = frozenset()
    extra: frozenset[str] = field(default=frozenset())

    def check(self, statement: str) -> str:
        """The statement to run. Raises ToolError(refused=True) with the reason."""
        within_size(statement)
        if self.dialect == "mysql" and re.search(r"/\*\s*M?!", statement, re.I):
            raise refuse("comments that MySQL executes (/*! ... */) are not allowed.")
        if form := special(self.dialect, statement):
            if form.name.lower() in self.deny:
                raise refuse(f"the table {form.name} may not be read.")
            return form.before + (self.query(form.query) if form.query else "")
        return self.query(statement)

    def query(self, text: str) -> str:
        tree = self._parse(text)
        if not isinstance(tree, _kinds().queries):
            raise refuse(
                f"{type(tree).__name__.upper()} is not a query. Only reading is possible (SELECT, WITH, VALUES)."
            )
        for node in tree.walk():
            self._node(node)
        return str(tree.sql(dialect=_dialect(self.dialect), comments=False, copy=False))

    def _parse(self, text: str) -> Any:
        import sqlglot
        from sqlglot.errors import ErrorLevel, SqlglotError

        try:
            if self.dialect == "mysql" and re.match(r"\s*VALUES\b", text, re.I):
                return _values(text)
            found = sqlglot.parse(text, dialect=_dialect(self.dialect), error_level=ErrorLevel.RAISE)
        except SqlglotError as error:
            raise refuse(f"this does not parse as {self.dialect} SQL: {_plain(error)}") from error
        trees = [tree for tree in found if tree and not isinstance(tree, _kinds().semicolon)]
        if len(trees) != 1:
            raise refuse(f"one statement at a time, please; this holds {len(trees)}.")
        return trees[0]

    def _node(self, node: Any) -> None:
        kinds, kind = _kinds(), type(node).__name__
        if isinstance(node, kinds.table):
            self._table(node)
        elif isinstance(node, kinds.anonymous):
            name = node.this if isinstance(node.this, str) else node.name
            self._function(str(name), node)
        elif isinstance(node, kinds.function):
            if kind in FUNCTION_CLASSES_REFUSED:
                raise refuse(f"the function {node.sql_name()} is not allowed.")
            if isinstance(node, kinds.format):
                within_width(node.this)
        elif not (isinstance(node, kinds.operator) or kind in NODES):
            raise refuse(f"{kind} is not allowed in a query.")
        if (node.args.get("into") and kind != "Pivot") or node.args.get("locks") or node.args.get("hint"):
            raise refuse("INTO, locks and hints are not allowed in a query.")
        if isinstance(node, kinds.dot) and isinstance(node.expression, kinds.function):
            schema = node.this.sql().strip('"`').lower()
            if schema not in ("pg_catalog", "main", "public") and not self.dialect == "duckdb":
                raise refuse(f"functions of {schema} are not allowed.")

    def _function(self, name: str, node: Any) -> None:
        known = name.lower()
        if known in FORMATTING:
            within_width(node.expressions[0] if node.expressions else node)
        elif known not in FUNCTIONS[self.dialect] | known_functions() | self.extra:
            raise refuse(f"the function {name} is not on the list of allowed functions.")

    def _table(self, node: Any) -> None:
        kinds = _kinds()
        if isinstance(node.this, kinds.function):
            return  # its node is visited by itself
        if not isinstance(node.this, kinds.identifier):
            raise refuse("a table is named by an identifier, not by a text or an expression.")
        name, schema, catalog = node.name.lower(), node.db.lower(), node.catalog.lower()
        if UNSAFE_NAME.search(node.name) and self.dialect == "duckdb":
            raise refuse(f"{node.name} looks like a file, not a table.")
        if name in self.deny or (self.deny and name in ("sqlite_master", "sqlite_schema", "duckdb_tables")):
            raise refuse(f"the table {node.name} may not be read.")
        if not _readable(self.dialect, name, schema) or (catalog and not _readable(self.dialect, schema, catalog)):
            raise refuse(f"the catalog table {node.name} may not be read.")


@cache
def known_functions() -> frozenset[str]:
    """Names that sqlglot has a class for, less the refused classes."""
    from sqlglot.expressions import ALL_FUNCTIONS

    kept = [kind for kind in ALL_FUNCTIONS if kind.__name__ not in FUNCTION_CLASSES_REFUSED]
    return frozenset(name.lower() for kind in kept for name in kind.sql_names()) - FORMATTING


def within_width(pattern: Any) -> None:
    """A format may not ask for a width of its own choosing: one such cell can be a gigabyte."""
    if not getattr(pattern, "is_string", False) or re.search(r"%[^a-zA-Z%]*(\*|\d{4})|\{[^}]*(\d{4}|\{)", pattern.name):
        raise refuse("a format must be a text without * and with widths below 1000.")


def _values(text: str) -> Any:
    """MySQL's VALUES as a statement of its own, which sqlglot reads only inside a FROM."""
    import sqlglot

    tree = sqlglot.parse_one(f"INSERT INTO t {text}", dialect="mysql")
    values = tree.expression
    if type(values).__name__ != "Values" or {key for key, value in tree.args.items() if value} != {
        "this",
        "expression",
    }:
        raise refuse("only plain rows may follow VALUES.")
    return values


def _readable(dialect: str, name: str, schema: str) -> bool:
    """Whether a table may be read as far as catalogs go.

    >>> _readable("postgres", "pg_authid", ""), _readable("postgres", "pg_class", "pg_catalog")
    (False, True)
    """
    if schema in CATALOGS[dialect] or name in CATALOGS[dialect]:
        return False
    if schema in READABLE:
        return name in READABLE[schema]
    if dialect == "postgres" and name.startswith("pg_"):
        return name in READABLE["pg_catalog"]
    if dialect == "sqlite" and name.startswith(("pragma_", "sqlite_", "dbstat", "fts3tokenize")):
        return name in ("sqlite_master", "sqlite_schema", "sqlite_sequence") or name in FUNCTIONS["sqlite"]
    if dialect == "duckdb" and name.startswith(("duckdb_", "pragma_")):
        return name in ("duckdb_tables", "duckdb_columns", "duckdb_views", "duckdb_constraints")
    return True


def within_size(statement: str) -> None:
    """Size and nesting, before any parser sees it: a parser that recurses too deep takes its process down."""
    if not statement.strip():
        raise refuse("there is no statement.")
    if len(statement) > MAX_CHARS:
        raise refuse(f"the statement is longer than {MAX_CHARS} characters.")
    if odd := re.search("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\x85\\u2028\\u2029]", statement):
        raise refuse(f"the statement holds the character U+{ord(odd[0]):04X}.")
    depth = deepest = 0
    for char in BRACKET.findall(statement):
        depth += 1 if char in "([{" else -1
        deepest = max(deepest, depth)
    operators = sum(map(statement.count, "+-*/%|&")) + len(
        re.findall(r"(?i)\b(and|or|not|union|case|except)\b", statement)
    )
    if deepest > MAX_BRACKETS or operators > MAX_OPERATORS:
        raise refuse("the statement is nested too deeply or has too many operators.")


def _plain(error: Exception) -> str:
    """The parser's complaint without terminal colours, on one line."""
    return " ".join(re.sub(r"\x1b\[\d+m", "", str(error)).split())[:300]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Classes of the parse tree, for isinstance: they are looked up once, for every node of every statement."""

    queries: Any
    semicolon: Any
    table: Any
    anonymous: Any
    function: Any
    format: Any
    operator: Any
    dot: Any
    identifier: Any


@cache
def _kinds() -> Kinds:
    from sqlglot import exp

    return Kinds((exp.Query, exp.Values, exp.Pivot), exp.Semicolon, exp.Table, (exp.Anonymous, exp.AnonymousAggFunc),
                 exp.Func, exp.Format, (exp.Binary, exp.Unary), exp.Dot, exp.Identifier)  # fmt: skip


@cache
def _dialect(name: str) -> Any:
    from sqlglot.dialects.dialect import Dialect

    return Dialect.get_or_raise(name)
