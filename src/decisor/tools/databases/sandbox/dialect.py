"""A dialect of SQL as the guard, the catalog and the prompt need it. Each engine's file has its own value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from decisor.tools.databases.sandbox.names import words
from decisor.tools.databases.sandbox.naming import InViews

if TYPE_CHECKING:
    from sqlglot import exp

NAME = r"""(?P<name>[^\W\d][\w$]*|"[^"]+"|`[^`]+`|'[^']+'|\[[^\]]+\])"""
INFORMATION_SCHEMA = {
    "information_schema": words(
        """tables columns views schemata key_column_usage table_constraints referential_constraints
        constraint_column_usage check_constraints statistics"""
    )
}
"""Its tables that hold no secrets."""


@dataclass(frozen=True)
class Queries:
    """What reads the catalog, each of all tables at once. A table outside the default schema is SCHEMA.TABLE.

    ``columns``: table, is a view, column, type, nullable; then, where the engine has them, its schema ('' for the
    default one) and the column's comment. ``keys``: table, column of the primary key, '', '', or table, column, table
    and column that it references. ``tables``: table, its comment, about how many rows it has (NULL or below 0 where
    that is not known). ``definitions``, of all schemas: relation or macro, what it reads as text ('' for a table, None
    where it is not known), its kind ('table', 'view' or 'macro'), its schema, and whether it is what its name means
    without a schema. ``unbound``, where the columns of some relations
    are told only by binding them one by one: their names; ``bound``: one's ``columns``, by the parameter ``name``.
    ``functions``: those made by users, and whether one argument of theirs is a row. ``operators``: those that call such
    a function, and the types that one casts to, or from by itself ('' for the other of the two). ``fingerprint``: rows
    that are others when a table, a column, a key, a comment or what may be seen is; '' where there is no such query.
    """

    columns: str
    keys: str
    definitions: str
    tables: str = ""
    unbound: str = ""
    bound: str = ""
    functions: str = ""
    operators: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class Forms:
    """Statements beside queries, as patterns that are matched whole. ``explain`` stands before a query. ``about``: one
    table is looked at, ``whole``: the database is; each maps to what is run, with ``{name}`` quoted and ``{verb}``.
    ``linked``: the beginning of what is run to look at a table and names those that it references too."""

    explain: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, str] = field(default_factory=dict)
    linked: str = ""


@dataclass(frozen=True)
class Dialect:
    """``name`` as sqlglot has it. What is not on an allow list of it is refused.

    ``functions``: those that sqlglot has no class for. ``refused_functions``: those it has a class for and that fail or
    do harm here. ``catalogs``: schemas of catalogs with the tables that may be read; ``closed``: schemas that may not.
    ``reserved``: beginnings of names of catalog tables, of which only those in ``readable`` may be read.
    ``catalog_functions`` tell of tables: refused where some are denied. ``odd_name``: a table's name that the engine
    may take for a file. ``odd_text``: a pattern of statements to refuse, with the reason.
    ``checks_views``: nothing but the guard bounds what a view does, so only a view that it lets through may be read.
    ``folds``: in which letters names without quotes are, where the engine tells letters apart. ``bare``: a name that
    needs no quotes. ``names_by_text``: a column without an alias is named by the text of its expression. ``schemas``:
    the catalog tells of tables outside the default schema too. ``prepare``: shows what is a table in a tree as a table,
    under the name that the engine reads, before it is checked. ``rewrite``: changes a tree that sqlglot would write in
    words that this engine does not have, or that mean something else here. ``other_catalogs``: a query may name tables
    of other catalogs, of which nothing is known. ``misspelt``: what stands before a name in a complaint about it, by
    the kind of name. ``token``: an expression of ``{value}`` and ``{key}`` that stands for a masked value. ``fence``: a
    limit that cuts nothing, across which no condition is moved. ``plain_forms``: beginnings of what ``forms`` runs that
    tells of no row. ``plan``: what stands before a query to have its plan, '' where the engine does not tell
    ahead what a query reads. ``in_views``: what a name without a schema is there.
    """

    name: str
    queries: Queries
    functions: frozenset[str]
    refused_functions: frozenset[str] = frozenset()
    forms: Forms = Forms()
    catalogs: Mapping[str, frozenset[str]] = field(default_factory=lambda: INFORMATION_SCHEMA)
    closed: frozenset[str] = frozenset()
    reserved: tuple[str, ...] = ()
    readable: frozenset[str] = frozenset()
    catalog_functions: frozenset[str] = frozenset()
    function_schemas: frozenset[str] = frozenset()
    odd_name: re.Pattern[str] | None = None
    odd_text: tuple[str, str] | None = None
    checks_views: bool = False
    quote: str = '"'
    folds: Literal["", "lower", "upper"] = ""
    bare: str = r"[A-Za-z_][A-Za-z0-9_]*"
    names_by_text: bool = False
    schemas: bool = False
    prepare: Callable[[exp.Expr], exp.Expr] | None = None
    rewrite: Callable[[exp.Expr], exp.Expr] | None = None
    misspelt: tuple[tuple[str, str], ...] = ()
    token: str = ""
    fence: str = ""
    other_catalogs: bool = False
    plain_forms: tuple[str, ...] = ()
    in_views: InViews = "either"
    plan: str = ""

    def quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def folded(self, name: str) -> str:
        """A name without quotes, as the engine takes it: of English letters, those of ``folds``."""
        if self.folds == "lower":
            return re.sub("[A-Z]+", lambda match: match[0].lower(), name)
        return re.sub("[a-z]+", lambda match: match[0].upper(), name) if self.folds else name
