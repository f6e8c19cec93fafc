"""The SQL guard: one statement, of a reading kind, made of allowed nodes, functions and tables.

Only SQL written anew from the tree is run, with every name in quotes. So what the parser took for a comment, a letter
or a name is not run as something else. Statements beside queries that read only the schema or a plan are matched whole
and written anew too. Before the parse, comments are removed (sqlglot takes ``GROUP BY`` for one word, in which no
comment may stand), ``LIMIT 5 % 2`` gets brackets (sqlglot takes the sign % in a limit for per cent), and MySQL's
VALUES statement becomes selects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.expressions import ALL_FUNCTIONS

from decisor.errors import ToolError
from decisor.sandbox.access import REFUSED, Access, Rows, read_access, restrict_query, restrict_statement_text
from decisor.sandbox.dialect import (
    FORMATTING,
    FUNCTION_CLASSES_REFUSED,
    NODES,
    Dialect,
    check_statement_size,
    check_word_characters,
    sql_refusal,
)
from decisor.sandbox.engine import Caps
from decisor.types import Table

if TYPE_CHECKING:
    from sqlglot import Expr


END = r"\s*;?\s*$"
VERBS = re.compile(
    r"(SELECT|WITH|VALUES|FROM|INSERT|UPDATE|DELETE|REPLACE|MERGE|CREATE|DROP|ALTER|TABLE|ANALYZE|CALL|COPY|ALL|DATABASES|VARIABLES)$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class SchemaStatement:
    """A statement about the schema or a plan."""

    before: str
    """Text to write before the checked ``query``, or the whole statement."""
    name: str = ""
    """Table that it is about; '' for all of them."""
    query: str = ""
    """Query whose plan or columns are asked for; '' for none."""

    @property
    def reads_rows(self) -> bool:
        return self.before.startswith("SUMMARIZE ")


def match_schema_statement(dialect: Dialect, statement: str) -> SchemaStatement | None:
    """Return the form of a statement about the schema or a plan, None if it should be a query.

    >>> from decisor.sandbox.engines import sqlite, postgres
    >>> match_schema_statement(sqlite.DIALECT, "pragma table_info([update log]);")
    SchemaStatement(before='PRAGMA table_info("update log")', name='update log', query='')
    >>> match_schema_statement(postgres.DIALECT, "EXPLAIN (COSTS off) SELECT 1")
    SchemaStatement(before='EXPLAIN (COSTS off) ', name='', query='SELECT 1')
    >>> match_schema_statement(sqlite.DIALECT, "SELECT 1")
    """
    text = statement.strip()
    for pattern, template in (*dialect.forms.whole.items(), *dialect.forms.about.items()):
        if match := re.match(pattern + END, text, re.I):
            groups = match.groupdict()
            name = strip_sql_quotes(groups.get("name") or "")
            # DESCRIBE SELECT ... begins a query: a keyword counts as a table's name only in quotes.
            if VERBS.match(name) and groups.get("name") == name:
                continue
            return SchemaStatement(
                template.format(verb=(groups.get("verb") or "").lower(), name=dialect.quoted(name)), name
            )
    if dialect.forms.explain and (match := re.match(dialect.forms.explain, text, re.I)):
        return SchemaStatement(match[0] + " ", query=text[match.end() :].strip())
    return None


def strip_sql_quotes(name: str) -> str:
    """Return a name without its quotes."""
    return name[1:-1] if name[:1] in "\"`'[" else name


MARKS = re.compile(r"--|/\*|#|//")


def remove_comments(text: str, dialect: str) -> str:
    """Return SQL with a space for each comment, by sqlglot's tokens.

    A text without tokens stays as it is: its parse complains.

    >>> remove_comments("SELECT 'a -- b' /* c */ FROM t ORDER /**/ BY 1 -- d", "sqlite")
    "SELECT 'a -- b' FROM t ORDER BY 1"
    """
    # Most statements hold no comment, and are spared being tokenized twice.
    if not MARKS.search(text):
        return text
    try:
        tokens = sqlglot.tokenize(text, dialect=dialect)
    except SqlglotError:
        return text
    parts: list[str] = []
    end = 0
    for token in tokens:
        between = text[end : token.start]
        parts += [" " if between.strip() else between, text[token.start : token.end + 1]]
        end = token.end + 1
        if token.token_type == TokenType.COMMAND:  # what follows it is one token to sqlglot, with its comments
            rest = text[end:]
            parts += [rest[: len(rest) - len(rest.lstrip())] or " ", remove_comments(rest, dialect)]
            break
    return "".join(parts).strip()


def parse_mysql_values(text: str) -> Expr:
    """Parse MySQL's statement VALUES as selects. sqlglot reads it only inside a FROM, and MySQL and MariaDB do not
    write it alike.
    """
    tree = sqlglot.parse_one(f"INSERT INTO t {text}", dialect="mysql")
    values = tree.expression
    if not isinstance(values, exp.Values) or {key for key, value in tree.args.items() if value} != {
        "this",
        "expression",
    }:
        raise sql_refusal("only plain rows may follow VALUES.")
    selects = [exp.select(*cells_of_values_row(row)) for row in values.expressions]
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False, copy=False)


def cells_of_values_row(row: Expr) -> list[Expr]:
    """Return the cells of ``(1, 2)`` or of ``ROW(1, 2)``, with names."""
    # MySQL writes VALUES ROW(1, 2), MariaDB VALUES (1, 2): sqlglot reads ROW as a function in a tuple of one.
    inner = row.expressions[0] if len(row.expressions) == 1 else row
    cells = inner.expressions if isinstance(inner, exp.Func) and inner.name.upper() == "ROW" else row.expressions
    return [exp.alias_(cell, f"column_{number}") for number, cell in enumerate(cells)]


WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(\*|\d{4})|\{[^}]*(\d{4}|\{)")
FILTERED = ("tables", "columns")
STAR_AFTER = ("(", ",", ".", "SELECT", "DISTINCT")
OPERATOR_WORDS = {"LIKE": "~~", "ILIKE": "~~*", "IN": "=", "BETWEEN": ">="}
"""What PostgreSQL calls by another name."""
NARROW = "some tables may not be read or seen, so what tells of all tables may not be read either."


@dataclass(frozen=True)
class SqlGuard:
    """A check of SQL statements against a dialect and the access rules of a database."""

    dialect: Dialect
    access: Access = field(default_factory=Access)

    def check(self, statement: str) -> str:
        """Return the statement to run. Raises ToolError(refused=True) with the reason."""
        # Before any parser: one that recurses too deeply takes the process down.
        check_statement_size(statement)
        if self.dialect.odd_text and re.search(self.dialect.odd_text[0], statement, re.I):
            raise sql_refusal(self.dialect.odd_text[1])
        statement = remove_comments(statement, self.dialect.name)
        if form := match_schema_statement(self.dialect, statement):
            return self._form(form)
        return self.query(statement)

    def query(self, text: str) -> str:
        """Check a query and return it, written anew from its tree."""
        # Parse: exactly one statement, of a kind that only reads.
        tree = self._parse(text)
        if not isinstance(tree, exp.Query | exp.Values | exp.Pivot):
            raise sql_refusal(
                f"{type(tree).__name__.upper()} is not a query. Only reading is possible (SELECT, WITH, VALUES)."
            )
        if self.dialect.prepare:
            tree = self.dialect.prepare(tree)
        # Check each node, then write the query anew: only what was checked is run.
        self.nodes(tree)
        return self._write(tree)

    def nodes(self, tree: Expr, changing: bool = False) -> None:
        """Check that every node of a tree is allowed. changing: the first node is not checked; it is an UPDATE, DELETE
        or INSERT on a copy.

        Raises:
            ToolError: refused, with the reason.
        """
        # All names of WITH, whatever their scope: _relation still checks what is hidden by name.
        own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for node in tree.walk():
            if not changing or node is not tree:
                self._node(node, own)

    def _form(self, form: SchemaStatement) -> str:
        if self.access.restricted and not form.before.startswith(self.dialect.plain_forms or ("\0",)):
            raise sql_refusal(REFUSED)
        if form.query:
            query = self.query(form.query)
            if self.access.narrow and "information_schema" in query.lower():
                raise sql_refusal(NARROW)  # a plan tells the names that are left out
            return form.before + query
        check_word_characters(form.before)
        if form.name:
            self._relation(form.name)
        return form.before

    def without_hidden(self, table: Table, statement: str, text: str) -> Table:
        """Return the result of a checked statement without hidden tables.

        Lists of tables lose the hidden ones, and a column that is named by its expression does not name them. text: the
        statement as it was before the check.
        """
        forms, access = self.dialect.forms, self.access
        if not access.narrow:
            return table
        if statement in forms.whole.values() or statement.startswith(forms.linked or "\0"):
            return access.listing(table)
        if "information_schema" in statement.lower():
            return replace(table, columns=tuple(access.without_hidden(name, text) for name in table.columns))
        return table

    def own(self, statement: str) -> str:
        """Return one of our own statements, restricted to the rows and columns that the reader may see."""
        restricted = self.access.restricted
        if not restricted or not restricted.mentions(statement):
            return statement
        return restrict_statement_text(statement, restricted, self.dialect)

    def _parse(self, text: str) -> Expr:
        name = self.dialect.name
        try:
            # Engines do not agree on what white space is: such a character is refused outside texts and quotes.
            for token in () if text.isascii() else sqlglot.tokenize(text, dialect=name):
                if token.token_type not in (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.IDENTIFIER):
                    check_word_characters(token.text)
            if name == "mysql" and re.match(r"\s*VALUES\b", text, re.I):
                return parse_mysql_values(text)
            try:
                trees = sqlglot.parse(text, dialect=name, error_level=ErrorLevel.RAISE)
            except SqlglotError:
                # Second try: sqlglot takes LIMIT 5 % 2 for a limit of five per cent and does not parse the rest.
                if (bracketed := bracket_limits(text, name)) == text:
                    raise
                trees = sqlglot.parse(bracketed, dialect=name, error_level=ErrorLevel.RAISE)
        except SqlglotError as error:
            raise sql_refusal(f"this does not parse as {name} SQL: {_parser_complaint(error)}") from error
        statements = [tree for tree in trees if tree and not isinstance(tree, exp.Semicolon)]
        if len(statements) != 1:
            raise sql_refusal(f"one statement at a time, please; this holds {len(statements)}.")
        return statements[0]

    def _node(self, node: Expr, own: set[str]) -> None:
        """Check one node. own: the names that the statement itself gives to parts (WITH)."""
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
            raise sql_refusal(f"{kind} is not allowed in a query.")
        # Arguments of allowed nodes, which the list does not catch: SELECT INTO writes, FOR UPDATE locks.
        if (node.args.get("into") and kind != "Pivot") or node.args.get("locks") or node.args.get("hint"):
            raise sql_refusal("INTO, locks and hints are not allowed in a query.")
        if isinstance(node, exp.Query) and (node.args.get("settings") or node.args.get("format")):
            raise sql_refusal("SETTINGS and FORMAT are not allowed in a query.")
        # A function may be called with its schema, which could hold a user's function of an allowed name.
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            schema = node.this.sql().strip('"`').lower()
            if "" not in self.dialect.function_schemas and schema not in self.dialect.function_schemas:
                raise sql_refusal(f"functions of {schema} are not allowed.")

    def _known_function(self, node: Expr) -> None:
        names = {name.lower() for name in type(node).sql_names()} if isinstance(node, exp.Func) else set()
        if type(node).__name__ in FUNCTION_CLASSES_REFUSED or names & self.dialect.refused_functions:
            raise sql_refusal(f"the function {min(names, default='')} is not allowed.")
        if isinstance(node, exp.Format):
            check_format_width(node.this)

    def _function(self, name: str, node: Expr) -> None:
        lower = name.lower()
        if self.access.narrow and lower in self.dialect.catalog_functions:
            raise sql_refusal(NARROW)
        if lower in FORMATTING:
            check_format_width(node.expressions[0] if node.expressions else node)
        elif lower in self.dialect.refused_functions or lower not in (
            self.dialect.functions | known_function_names() | self.access.functions
        ):
            raise sql_refusal(f"the function {name} is not on the list of allowed functions.")

    def _type(self, node: Expr) -> None:
        """Check a type in a cast. The name of a table is also the type of its rows."""
        text = node.sql(dialect=self.dialect.name)
        plain = text.replace('"', "").lower().rpartition(".")[2]
        if any(
            plain == name or node == exp.DataType.build(name, dialect=self.dialect.name, udt=True)
            for name in self.access.casts
        ):
            raise sql_refusal(f"a cast to or from {text} calls a function of this database.")
        # PostgreSQL's regclass and its kin turn the number of an object into its name.
        if self.access.narrow and (self.access.mentions(text) or re.search(r"\breg[a-z]+\b", text, re.I)):
            raise sql_refusal("a type that tells of tables is not allowed where some may not be read.")

    def _table(self, node: Expr, own: set[str]) -> None:
        if isinstance(node.this, exp.Func):
            return  # its node is visited by itself
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise sql_refusal("a table is named by an identifier, not by a text or an expression.")
        name, schema, catalog = node.name.lower(), node.db.lower(), node.catalog.lower()
        # DuckDB reads FROM "x.csv" as a file, even where the name is in quotes.
        if self.dialect.odd_name and self.dialect.odd_name.search(node.name):
            raise sql_refusal(f"{node.name} looks like a file, not a table.")
        catalogs = schema in self.dialect.catalogs or name.startswith(self.dialect.reserved or ("\0",))
        if not self._readable(name, schema) or (catalog and not self._readable(schema, catalog)):
            raise sql_refusal(f"the catalog table {node.name} may not be read.")
        # The relations of other catalogs are not read at opening, so a denied one could be reached under such a name.
        if self.access.narrow and self.dialect.other_catalogs and (catalog or "*" in name):
            raise sql_refusal("some tables may not be read, so none may be named with its catalog or by a pattern.")
        if self.access.narrow and catalogs:
            self._only_filtered(node, name, schema)
            return
        self._relation(node.name, schema, is_own=not schema and name in own)

    def _only_filtered(self, node: Expr, name: str, schema: str) -> None:
        """Refuse a catalog table unless its rows can be filtered by the name of a table."""
        plain = {key for key, value in node.args.items() if value} <= {"this", "db", "alias"}
        if self.access.restricted:
            raise sql_refusal(REFUSED)
        if schema != "information_schema" or name not in FILTERED or not plain:
            raise sql_refusal(NARROW)

    def _filtered(self, tree: Expr) -> None:
        """Replace catalog tables by a query without the hidden rows."""
        for node in list(tree.find_all(exp.Table)):
            if node.db.lower() == "information_schema":
                rows = exp.select("*").from_(exp.table_(node.name, db=node.db)).where(self.access.seen_in_catalog())
                node.replace(rows.subquery(node.alias or node.name))

    def _relation(self, name: str, schema: str = "", is_own: bool = False) -> None:
        """Check that a relation may be read. is_own: a WITH of the statement has this name; elsewhere in the statement
        the name can still be the database's.
        """
        outside = self.access.only and name.lower() not in self.access.only and not is_own
        if self.access.hides(name, schema) or outside:
            raise sql_refusal(f"the table {name} may not be read.")
        if self.dialect.checks_views and self.access.closes(name, schema):
            raise sql_refusal(f"{name} does what a query may not do.")

    def _readable(self, name: str, schema: str) -> bool:
        """Return whether the rules about catalogs let a table be read."""
        dialect = self.dialect
        if schema in dialect.closed or name in dialect.closed:
            return False
        if schema in dialect.catalogs:
            return name in dialect.catalogs[schema]
        return name in dialect.readable or not name.startswith(dialect.reserved or ("\0",))

    def _write(self, tree: Expr) -> str:
        name = self.dialect.name
        # 1. Rows of the catalog that name hidden tables go, while its tables still bear their own names.
        if self.access.narrow:
            self._filtered(tree)
        # 2. Columns without an alias keep the name that the engine would have given them: quotes would change it.
        if self.dialect.names_by_text:
            for select in list(tree.find_all(exp.Select)):
                select.set("expressions", [add_alias_of_text(one, name) for one in select.expressions])
        # 3. Rows and masks come after the check: the subqueries are ours and hold what a query may not.
        if self.access.restricted:
            tree = restrict_query(tree, self.access.restricted, self.dialect)
        if self.dialect.rewrite:
            tree = self.dialect.rewrite(tree)
        # 4. Quotes around every name: engines do not agree on what a letter is, and quotes leave one reading.
        for identifier in tree.find_all(exp.Identifier):
            if not identifier.args.get("quoted"):
                identifier.set("this", self.dialect.folded(identifier.name))
                identifier.set("quoted", True)
        text = tree.sql(dialect=name, comments=False, copy=False)
        # 5. Functions of users are looked for in the written text, as an operator or a column's name may call one too.
        if self.access.foreign or self.access.operators:
            self._no_foreign_function(text)
        return text

    def _no_foreign_function(self, text: str) -> None:
        tokens = sqlglot.tokenize(text, dialect=self.dialect.name)
        for before, token in pairwise(tokens):
            # The star of SELECT * or count(*) is no multiplication.
            star = token.text == "*" and before.text.upper() in STAR_AFTER
            symbol = OPERATOR_WORDS.get(token.text.upper(), token.text)
            plain = token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
            if symbol in self.access.operators and plain and not star:
                raise sql_refusal(f"the operator {token.text} calls a function of this database.")
        for token, after in zip(tokens, [*tokens[1:], None], strict=True):
            lower = token.text.lower()
            if token.token_type == TokenType.STRING or lower not in self.access.foreign:
                continue
            # PostgreSQL reads row.name as name(row) where a function takes one row, so there the mere name is a call.
            called = after is not None and after.token_type == TokenType.L_PAREN
            if called or lower in self.access.columnlike:
                raise sql_refusal(f"{token.text} is a function of this database, and may not be called or named.")


def build_guard(dialect: Dialect, caps: Caps, rows: Rows) -> SqlGuard:
    """Build the guard of a database that is open, from its catalog. rows: runs a query of our own."""

    def passes(text: str) -> bool:
        try:
            SqlGuard(dialect).query(text)
        except ToolError:
            return False
        return True

    return SqlGuard(dialect, read_access(dialect, caps, rows, passes))


@cache
def known_function_names() -> frozenset[str]:
    """Return the names of the functions that sqlglot has a class for, except the refused classes."""
    kinds = [kind for kind in ALL_FUNCTIONS if kind.__name__ not in FUNCTION_CLASSES_REFUSED]
    return frozenset(name.lower() for kind in kinds for name in kind.sql_names()) - FORMATTING


def check_format_width(pattern: Expr) -> None:
    """Raise ToolError (refused) if a format may choose a large width: one such cell can be a gigabyte."""
    if not pattern.is_string or WIDE_FORMAT.search(pattern.name):
        raise sql_refusal("a format must be a text without * and with widths below 1000.")


def add_alias_of_text(column: Expr, dialect: str) -> Expr:
    """Return a column with an alias, if quotes around names would change the column's own name."""
    plain = isinstance(column, exp.Alias | exp.Aliases | exp.Column | exp.Star | exp.Identifier)
    if plain or not column.find(exp.Identifier):
        return column
    text = column.sql(dialect=dialect, comments=False)
    return column if len(text) > LONGEST_NAME else exp.alias_(column, text, quoted=True, copy=False)


LONGEST_NAME = 200


def _parser_complaint(error: Exception) -> str:
    """Return the parser's complaint without terminal colours, on one line."""
    return " ".join(re.sub(r"\x1b\[\d+m", "", str(error)).split())[:300]


ENDS = (TokenType.OFFSET, TokenType.COMMA, TokenType.SEMICOLON, TokenType.FETCH, TokenType.FOR)
OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
SHUT = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def bracket_limits(text: str, dialect: str) -> str:
    """Put brackets around each limit with a remainder.

    A sign % at the end of a limit means per cent (DuckDB), and stays.

    >>> bracket_limits("SELECT 1 LIMIT 5 % 2 OFFSET 1", "sqlite")
    'SELECT 1 LIMIT (5 % 2) OFFSET 1'
    >>> bracket_limits("SELECT a % 2 FROM t LIMIT 5 %", "duckdb")
    'SELECT a % 2 FROM t LIMIT 5 %'
    """
    tokens = sqlglot.tokenize(text, dialect=dialect)
    places: list[tuple[int, str]] = []
    for at, token in enumerate(tokens):
        limit = expression_tokens(tokens, at + 1) if token.token_type == TokenType.LIMIT else ()
        if any(one.token_type == TokenType.MOD for one in limit[:-1]):
            places += [(limit[0].start, "("), (limit[-1].end + 1, ")")]
    for place, bracket in sorted(places, reverse=True):
        text = text[:place] + bracket + text[place:]
    return text


def expression_tokens(tokens: Sequence[Token], at: int) -> Sequence[Token]:
    """Return the tokens of the expression that begins at this position."""
    depth = 0
    for end in range(at, len(tokens)):
        kind = tokens[end].token_type
        depth += (kind in OPEN) - (kind in SHUT)
        if depth < 0 or (not depth and kind in ENDS):
            return tokens[at:end]
    return tokens[at:]
