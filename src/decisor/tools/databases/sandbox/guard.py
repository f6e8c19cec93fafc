"""The SQL guard: one statement, of a reading kind, made of allowed nodes, functions and tables.

Only SQL written anew from the tree is run, with every name in quotes. So what the parser took for a comment, a letter
or a name is not run as something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from decisor.tools.databases.sandbox.access import Access
from decisor.tools.databases.sandbox.comments import without_comments
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.forms import SchemaStatement, special
from decisor.tools.databases.sandbox.mysql_values import values_of
from decisor.tools.databases.sandbox.names import FORMATTING, FUNCTION_CLASSES_REFUSED, NODES
from decisor.tools.databases.sandbox.restricting import REFUSED, restrict, restricted_text
from decisor.tools.databases.sandbox.statement_size import only_letters, refuse, within_size
from decisor.types import Table

if TYPE_CHECKING:
    from sqlglot import Expr

WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(\*|\d{4})|\{[^}]*(\d{4}|\{)")
FILTERED = ("tables", "columns")
STAR_AFTER = ("(", ",", ".", "SELECT", "DISTINCT")
OPERATOR_WORDS = {"LIKE": "~~", "ILIKE": "~~*", "IN": "=", "BETWEEN": ">="}
"""What PostgreSQL calls by another name."""
NARROW = "some tables may not be read or seen, so what tells of all tables may not be read either."


@dataclass(frozen=True)
class Guard:
    """Checks the statements of a model against a dialect and what may be read."""

    dialect: Dialect
    access: Access = field(default_factory=Access)

    def check(self, statement: str) -> str:
        """The statement to run. Raises ToolError(refused=True) with the reason."""
        within_size(statement)
        if self.dialect.odd_text and re.search(self.dialect.odd_text[0], statement, re.I):
            raise refuse(self.dialect.odd_text[1])
        statement = without_comments(statement, self.dialect.name)
        if form := special(self.dialect, statement):
            return self._form(form)
        return self.query(statement)

    def query(self, text: str) -> str:
        """A query, written anew."""
        from sqlglot import exp

        tree = self._parse(text)
        if not isinstance(tree, exp.Query | exp.Values | exp.Pivot):
            raise refuse(
                f"{type(tree).__name__.upper()} is not a query. Only reading is possible (SELECT, WITH, VALUES)."
            )
        if self.dialect.prepare:
            tree = self.dialect.prepare(tree)
        self.nodes(tree)
        return self._write(tree)

    def nodes(self, tree: Expr, changing: bool = False) -> None:
        """Every node is allowed. ``changing``: but for the first, which is an UPDATE, DELETE or INSERT of a copy.

        Raises:
            ToolError: refused, with the reason.
        """
        from sqlglot import exp

        own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for node in tree.walk():
            if not changing or node is not tree:
                self._node(node, own)

    def _form(self, form: SchemaStatement) -> str:
        if self.access.restricted and not form.before.startswith(self.dialect.plain_forms or ("\0",)):
            raise refuse(REFUSED)
        if form.query:
            query = self.query(form.query)
            if self.access.narrow and "information_schema" in query.lower():
                raise refuse(NARROW)  # a plan tells the names that are left out
            return form.before + query
        only_letters(form.before)
        if form.name:
            self._relation(form.name)
        return form.before

    def without_hidden(self, table: Table, statement: str, text: str) -> Table:
        """The result of a checked statement, whose own text is ``text``: what tells of other tables leaves the hidden
        ones out, and a column that is named by its expression does not name them."""
        forms, access = self.dialect.forms, self.access
        if not access.narrow:
            return table
        if statement in forms.whole.values() or statement.startswith(forms.linked or "\0"):
            return access.listing(table)
        if "information_schema" in statement.lower():
            return replace(table, columns=tuple(access.without_hidden(name, text) for name in table.columns))
        return table

    def own(self, statement: str) -> str:
        """A statement of our own, which sees no more than its reader."""
        restricted = self.access.restricted
        if not restricted or not restricted.mentions(statement):
            return statement
        return restricted_text(statement, restricted, self.dialect)

    def _parse(self, text: str) -> Expr:
        import sqlglot
        from sqlglot import TokenType, exp
        from sqlglot.errors import ErrorLevel, SqlglotError

        from decisor.tools.databases.sandbox.limits import bracket_limits

        name = self.dialect.name
        try:
            for token in () if text.isascii() else sqlglot.tokenize(text, dialect=name):
                if token.token_type not in (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.IDENTIFIER):
                    only_letters(token.text)
            if name == "mysql" and re.match(r"\s*VALUES\b", text, re.I):
                return values_of(text)
            try:
                trees = sqlglot.parse(text, dialect=name, error_level=ErrorLevel.RAISE)
            except SqlglotError:
                if (bracketed := bracket_limits(text, name)) == text:
                    raise
                trees = sqlglot.parse(bracketed, dialect=name, error_level=ErrorLevel.RAISE)
        except SqlglotError as error:
            raise refuse(f"this does not parse as {name} SQL: {_plain(error)}") from error
        statements = [tree for tree in trees if tree and not isinstance(tree, exp.Semicolon)]
        if len(statements) != 1:
            raise refuse(f"one statement at a time, please; this holds {len(statements)}.")
        return statements[0]

    def _node(self, node: Expr, own: set[str]) -> None:
        """``own``: names that the statement itself gives to parts of it (WITH)."""
        from sqlglot import exp

        kind = type(node).__name__
        if isinstance(node, exp.Table):
            self._table(node, own)
        elif isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
            self._function(str(node.this if isinstance(node.this, str) else node.name), node)
        elif isinstance(node, exp.Func):
            self._known_function(node)
        elif isinstance(node, exp.DataType):
            self._type(node)
        elif not (isinstance(node, exp.Binary | exp.Unary) or kind in NODES):
            raise refuse(f"{kind} is not allowed in a query.")
        if (node.args.get("into") and kind != "Pivot") or node.args.get("locks") or node.args.get("hint"):
            raise refuse("INTO, locks and hints are not allowed in a query.")
        if isinstance(node, exp.Query) and (node.args.get("settings") or node.args.get("format")):
            raise refuse("SETTINGS and FORMAT are not allowed in a query.")
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            schema = node.this.sql().strip('"`').lower()
            if "" not in self.dialect.function_schemas and schema not in self.dialect.function_schemas:
                raise refuse(f"functions of {schema} are not allowed.")

    def _known_function(self, node: Expr) -> None:
        from sqlglot import exp

        names = {name.lower() for name in type(node).sql_names()} if isinstance(node, exp.Func) else set()
        if type(node).__name__ in FUNCTION_CLASSES_REFUSED or names & self.dialect.refused_functions:
            raise refuse(f"the function {min(names, default='')} is not allowed.")
        if isinstance(node, exp.Format):
            within_width(node.this)

    def _function(self, name: str, node: Expr) -> None:
        lower = name.lower()
        if self.access.narrow and lower in self.dialect.catalog_functions:
            raise refuse(NARROW)
        if lower in FORMATTING:
            within_width(node.expressions[0] if node.expressions else node)
        elif lower in self.dialect.refused_functions or lower not in (
            self.dialect.functions | known_functions() | self.access.functions
        ):
            raise refuse(f"the function {name} is not on the list of allowed functions.")

    def _type(self, node: Expr) -> None:
        """A table's name is the name of its rows' type too."""
        from sqlglot import exp

        text = node.sql(dialect=self.dialect.name)
        plain = text.replace('"', "").lower().rpartition(".")[2]
        if any(
            plain == name or node == exp.DataType.build(name, dialect=self.dialect.name, udt=True)
            for name in self.access.casts
        ):
            raise refuse(f"a cast to or from {text} calls a function of this database.")
        if self.access.narrow and (self.access.mentions(text) or re.search(r"\breg[a-z]+\b", text, re.I)):
            raise refuse("a type that tells of tables is not allowed where some may not be read.")

    def _table(self, node: Expr, own: set[str]) -> None:
        from sqlglot import exp

        if isinstance(node.this, exp.Func):
            return  # its node is visited by itself
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise refuse("a table is named by an identifier, not by a text or an expression.")
        name, schema, catalog = node.name.lower(), node.db.lower(), node.catalog.lower()
        if self.dialect.odd_name and self.dialect.odd_name.search(node.name):
            raise refuse(f"{node.name} looks like a file, not a table.")
        catalogs = self._is_catalog(name, schema)
        if not self._readable(name, schema) or (catalog and not self._readable(schema, catalog)):
            raise refuse(f"the catalog table {node.name} may not be read.")
        if self.access.narrow and self.dialect.other_catalogs and (catalog or "*" in name):
            raise refuse("some tables may not be read, so none may be named with its catalog or by a pattern.")
        if self.access.narrow and catalogs:
            self._only_filtered(node, name, schema)
            return
        self._relation(node.name, schema, is_own=not schema and name in own)

    def _only_filtered(self, node: Expr, name: str, schema: str) -> None:
        """Of the catalog, those tables whose rows can be left out by a table's name."""
        plain = {key for key, value in node.args.items() if value} <= {"this", "db", "alias"}
        if self.access.restricted:
            raise refuse(REFUSED)
        if schema != "information_schema" or name not in FILTERED or not plain:
            raise refuse(NARROW)

    def _filtered(self, tree: Expr) -> None:
        """Puts a query without the hidden rows in the place of such a table."""
        from sqlglot import exp

        for node in list(tree.find_all(exp.Table)):
            if node.db.lower() == "information_schema":
                rows = exp.select("*").from_(exp.table_(node.name, db=node.db)).where(self.access.seen_in_catalog())
                node.replace(rows.subquery(node.alias or node.name))

    def _relation(self, name: str, schema: str = "", is_own: bool = False) -> None:
        """``is_own``: a WITH of the statement has this name. Elsewhere in it the name can still be the database's."""
        outside = self.access.only and name.lower() not in self.access.only and not is_own
        if self.access.hides(name, schema) or outside:
            raise refuse(f"the table {name} may not be read.")
        if self.dialect.checks_views and self.access.closes(name, schema):
            raise refuse(f"{name} does what a query may not do.")

    def _is_catalog(self, name: str, schema: str) -> bool:
        return schema in self.dialect.catalogs or name.startswith(self.dialect.reserved or ("\0",))

    def _readable(self, name: str, schema: str) -> bool:
        """As far as catalogs go."""
        dialect = self.dialect
        if schema in dialect.closed or name in dialect.closed:
            return False
        if schema in dialect.catalogs:
            return name in dialect.catalogs[schema]
        return name in dialect.readable or not name.startswith(dialect.reserved or ("\0",))

    def _write(self, tree: Expr) -> str:
        from sqlglot import exp

        name = self.dialect.name
        if self.access.narrow:
            self._filtered(tree)
        if self.dialect.names_by_text:
            for select in list(tree.find_all(exp.Select)):
                select.set("expressions", [named_by_text(one, name) for one in select.expressions])
        if self.access.restricted:
            tree = restrict(tree, self.access.restricted, self.dialect)
        if self.dialect.rewrite:
            tree = self.dialect.rewrite(tree)
        for identifier in tree.find_all(exp.Identifier):
            if not identifier.args.get("quoted"):
                identifier.set("this", self.dialect.folded(identifier.name))
                identifier.set("quoted", True)
        text = tree.sql(dialect=name, comments=False, copy=False)
        if self.access.foreign or self.access.operators:
            self._no_foreign_function(text)
        return text

    def _no_foreign_function(self, text: str) -> None:
        import sqlglot
        from sqlglot import TokenType

        tokens = sqlglot.tokenize(text, dialect=self.dialect.name)
        for before, token in pairwise(tokens):
            star = token.text == "*" and before.text.upper() in STAR_AFTER
            symbol = OPERATOR_WORDS.get(token.text.upper(), token.text)
            plain = token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
            if symbol in self.access.operators and plain and not star:
                raise refuse(f"the operator {token.text} calls a function of this database.")
        for token, after in zip(tokens, [*tokens[1:], None], strict=True):
            lower = token.text.lower()
            if token.token_type == TokenType.STRING or lower not in self.access.foreign:
                continue
            called = after is not None and after.token_type == TokenType.L_PAREN
            if called or lower in self.access.columnlike:
                raise refuse(f"{token.text} is a function of this database, and may not be called or named.")


@cache
def known_functions() -> frozenset[str]:
    """Names that sqlglot has a class for, less the refused classes."""
    from sqlglot.expressions import ALL_FUNCTIONS

    kinds = [kind for kind in ALL_FUNCTIONS if kind.__name__ not in FUNCTION_CLASSES_REFUSED]
    return frozenset(name.lower() for kind in kinds for name in kind.sql_names()) - FORMATTING


def within_width(pattern: Expr) -> None:
    """A format may not ask for a width of its own choosing: one such cell can be a gigabyte."""
    if not pattern.is_string or WIDE_FORMAT.search(pattern.name):
        raise refuse("a format must be a text without * and with widths below 1000.")


def named_by_text(column: Expr, dialect: str) -> Expr:
    """With an alias where quotes around names would change the column's own name."""
    from sqlglot import exp

    plain = isinstance(column, exp.Alias | exp.Aliases | exp.Column | exp.Star | exp.Identifier)
    if plain or not column.find(exp.Identifier):
        return column
    text = column.sql(dialect=dialect, comments=False)
    return column if len(text) > LONGEST_NAME else exp.alias_(column, text, quoted=True, copy=False)


LONGEST_NAME = 200


def _plain(error: Exception) -> str:
    """The parser's complaint without terminal colours, on one line."""
    return " ".join(re.sub(r"\x1b\[\d+m", "", str(error)).split())[:300]
