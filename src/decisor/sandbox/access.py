"""What a query may use of a database, and how a checked query is rewritten for its reader.

The relations, functions and columns are read from the catalog at opening. Denied means neither read nor seen, by any
way: a denied table takes with it the views, macros, partitions and indexes that may read it, by name.

Each use of a table with hidden rows or masked columns becomes a subquery with its condition and its tokens; each use of
a view that reads one becomes the view's own query, rewritten too. All else in the query works on the rows of these
subqueries: what it filters, casts or joins by never meets a value that is not its reader's. A subquery ends with a
limit that cuts nothing, across which no engine moves a condition. ``reveal_tokens`` returns the values behind tokens,
for a reader who may see them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from sqlglot import Expr, exp

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import (
    NAME,
    Dialect,
    FullName,
    Naming,
    add_schemas_to_query,
    build_naming,
    parse_sql,
    sql_refusal,
)
from decisor.sandbox.engine import TOKEN, Caps, RestrictedTables, TableRule, bare_table_name, name_parts
from decisor.types import Table, Value

CREATE_VIEW = re.compile(
    rf"\s*CREATE\s+(TEMP(ORARY)?\s+)?VIEW\s+(IF\s+NOT\s+EXISTS\s+)?({NAME}\s*\.\s*)?{NAME.replace('name', 'own')}"
    r"\s*(\((?:[^()\"]|\"[^\"]*\")*\)\s*)?\bAS\b(?P<query>.*)",
    re.I | re.S,
)
Rows = Callable[[str], Iterable[Sequence[object]]]
"""The rows of a query of our own."""


@dataclass(frozen=True)
class Access:
    """The relations, functions and columns of a database that a query may use. All names are in lower case."""

    hidden: frozenset[FullName] = frozenset()
    """Relations that may be neither read nor seen."""
    only: frozenset[str] = frozenset()
    """Names of all relations that may be read; empty means any but the hidden ones."""
    closed: frozenset[FullName] = frozenset()
    """Views that do more than a query may."""
    functions: frozenset[str] = frozenset()
    """Further functions that may run (macros of the database)."""
    foreign: frozenset[str] = frozenset()
    """Functions made by users, which may not run."""
    columnlike: frozenset[str] = frozenset()
    """Foreign functions that a column's name calls."""
    operators: frozenset[str] = frozenset()
    """Operators that call a foreign function."""
    casts: frozenset[str] = frozenset()
    """Types to cast to that call a foreign function."""
    restricted: RestrictedTables = field(default_factory=RestrictedTables)
    """Rows and columns hidden from some readers."""
    naming: Naming = field(default_factory=Naming)

    @cached_property
    def hidden_names(self) -> frozenset[str]:
        """Names of ``hidden``, without names that alone mean other relations."""
        return frozenset(one.name for one in self.hidden if self.hides(one.name))

    def hides(self, name: str, schema: str = "") -> bool:
        return not self.hidden.isdisjoint(self.naming.of(name, schema))

    def closes(self, name: str, schema: str = "") -> bool:
        return not self.closed.isdisjoint(self.naming.of(name, schema))

    def seen_in_catalog(self) -> exp.Expr:
        """Return the condition for catalog rows about relations that may be seen."""
        name, schema = (exp.func("LOWER", exp.column(column)) for column in ("table_name", "table_schema"))
        if self.only:
            return name.isin(*sorted(self.only))
        # A name that another schema has too is hidden only together with its schema.
        others = [one for one in sorted(self.hidden) if one.name not in self.hidden_names]
        conditions = [exp.and_(name.eq(one.name), schema.eq(one.schema)).not_() for one in others]
        return exp.and_(name.isin(*sorted(self.hidden_names)).not_(), *conditions)

    @property
    def narrow(self) -> bool:
        return bool(self.hidden or self.only or self.restricted)

    def mentions(self, text: str) -> bool:
        """Return whether a text contains the name of a hidden relation."""
        return not {one.name for one in self.hidden}.isdisjoint(re.findall(r"\w+", text.lower()))

    def listing(self, table: Table) -> Table:
        """Return a list of tables without hidden ones, and its texts without the lines that name them."""

        def visible_lines(cell: Value) -> Value:
            if not isinstance(cell, str) or self.without_hidden(cell) == cell:
                return cell
            return "\n".join(line for line in cell.split("\n") if self.without_hidden(line) == line)

        texts = [(row, {cell.lower() for cell in row if isinstance(cell, str)}) for row in table.rows]
        rows = (row for row, words in texts if self.hidden_names.isdisjoint(words))
        return replace(table, rows=tuple(tuple(map(visible_lines, row)) for row in rows))

    def without_hidden(self, text: str, statement: str = "") -> str:
        """Return a complaint without hidden names, except names that the statement itself uses.

        >>> Access(frozenset({FullName("", "secrets")})).without_hidden('Did you mean "Secrets"?')
        'Did you mean "…"?'
        """
        text = self.restricted.without_key(text)
        # A name that the statement itself holds tells nothing new, and hiding it would make the complaint useless.
        unsaid = [name for name in self.hidden_names if name not in statement.lower()]
        if not unsaid:
            return text
        names = "|".join(map(re.escape, sorted(unsaid, key=len, reverse=True)))
        return re.sub(rf"(?<!\w)({names})(?!\w)", "…", text, flags=re.I)


class DefinitionPart(NamedTuple):
    """A row of the query ``definitions``; one relation may have several."""

    text: str | None
    kind: str


def read_access(dialect: Dialect, caps: Caps, rows: Rows, passes: Callable[[str], bool]) -> Access:
    """Read from the catalog which relations, functions and columns a query may use. passes: whether a query may run, as
    far as functions go; it is asked about the queries of views and macros.
    """
    definitions = list(rows(dialect.queries.definitions))
    # 1. Relations by name and schema, and the texts of those that read others.
    naming = build_naming(definitions, dialect.in_views)
    parts = group_definitions(definitions)
    unknown = {one for one, its in parts.items() if any(part.text is None for part in its)}
    joined = {one: " ".join(part.text or "" for part in its).strip() for one, its in parts.items()}
    texts = {one: text for one, text in joined.items() if text and one not in unknown}
    macros = {one for one, its in parts.items() if {part.kind for part in its} == {"macro"}}
    # 2. Names that a person wrote must exist: a misspelt one would hide nothing.
    check_schemas([*map(name_parts, (*caps.deny, *caps.only)), *caps.policy.places()], naming)
    denied, only = {bare_table_name(name) for name in caps.deny}, {bare_table_name(name) for name in caps.only}
    if only:
        # With their partitions, which hold nothing but rows of these tables.
        partitions = {
            one: part.text for one, its in parts.items() for part in its if part.kind == "partition" and part.text
        }
        only = {one.name for one in naming.reaching(naming.every(only), partitions)}
        denied |= {one.name for one in parts.keys() - macros} - only
    # 3. Whatever may read a denied table is hidden, and a view over restricted rows is followed if its query is known.
    columns = columns_by_table(rows(dialect.queries.columns)) if caps.policy else {}
    rules = read_table_rules(caps, naming, parts, columns)
    reached = naming.reaching(naming.every(rules), texts)
    reached = {one for one in reached if one.name not in rules or is_view(parts.get(one, ()))}
    views = {one: texts[one] for one in reached & texts.keys() if len(parts[one]) == 1 and is_view(parts[one])}
    hidden = naming.reaching(naming.every(denied), texts) | (reached - views.keys())
    # What a relation of unknown text reads cannot be told, so it is hidden as soon as anything is.
    if denied or rules:
        hidden |= unknown
    # 4. On some engines the guard alone bounds what a view does: the query of a view or macro must pass it too.
    failing = {
        one
        for one in texts
        for part in parts[one]
        if part.kind in ("view", "macro") and not passes(query_of_view(part.text or ""))
    }
    closed = naming.reaching(failing, texts)
    shut = hidden | (closed if denied else set())
    # 5. Functions, operators and casts that users made.
    queries = dialect.queries
    users = [(str(name).lower(), bool(row)) for name, row in rows(queries.functions)] if queries.functions else []
    calling = list(rows(queries.operators)) if queries.operators else []
    its_columns = {one: naming.entry(one, columns) or () for one in views}
    return Access(
        naming=naming,
        hidden=frozenset(hidden),
        only=frozenset(only),
        closed=frozenset(closed - macros),
        functions=frozenset({one.name for one in macros} - {one.name for one in shut}),
        foreign=frozenset(name for name, _ in users),
        columnlike=frozenset(name for name, row in users if row),
        operators=frozenset(str(name) for name, _ in calling if name),
        casts=frozenset(str(kind).lower() for _, kind in calling if kind),
        restricted=RestrictedTables(
            caps.policy.key, caps.policy.reveal, rules, views, its_columns, frozenset(hidden), naming
        ),
    )


def group_definitions(definitions: Iterable[Sequence[object]]) -> dict[FullName, list[DefinitionPart]]:
    parts: dict[FullName, list[DefinitionPart]] = {}
    for name, text, kind, schema, _ in definitions:
        one = FullName(str(schema or "").lower(), str(name).lower())
        parts.setdefault(one, []).append(DefinitionPart(None if text is None else str(text), str(kind)))
    return parts


def is_view(parts: Iterable[DefinitionPart]) -> bool:
    return any(part.kind == "view" for part in parts)


def check_schemas(names: Iterable[Sequence[str]], naming: Naming) -> None:
    """Raise SetupError if a name has a schema, or more, without a table of this name."""
    for *schema, table in names:
        known = naming.schemas.get(table)
        if schema and known and (len(schema) > 1 or schema[0] not in known):
            schemas = ", ".join(sorted(filter(None, known))) or "no schema"
            raise SetupError(
                f"There is no table {'.'.join((*schema, table))}: {table} is in {schemas}. Write TABLE, "
                "SCHEMA.TABLE, or with several sources SOURCE.TABLE."
            )


def read_table_rules(
    caps: Caps,
    naming: Naming,
    parts: Mapping[FullName, Sequence[DefinitionPart]],
    columns: Mapping[FullName, Sequence[str]],
) -> dict[str, TableRule]:
    """Return the policy's rules by table, with the columns of the table.

    Of several tables with one name, the columns of the one in the default schema count. Raises SetupError if a table or
    column is missing.
    """
    rules = caps.policy.tables()
    for name, rule in rules.items():
        there = next((columns[one] for one in sorted(columns) if one.name == name), ())
        if any(is_view(parts.get(one, ())) for one in naming.of(name)):
            raise SetupError(f"{name} is a view: name the tables that it reads, for rows and masks.")
        if name not in naming.schemas or (rule.masked and not there):
            raise SetupError(
                f"There is no table {name} whose rows or columns could be kept back. Where there are several "
                "sources, write SOURCE.TABLE."
            )
        if missing := sorted(rule.masked - {column.lower() for column in there}):
            raise SetupError(f"{name} has no column {missing[0]} to mask; it has {', '.join(there)}.")
        rules[name] = replace(rule, columns=tuple(there))
    return rules


def columns_by_table(rows: Iterable[Sequence[object]]) -> dict[FullName, list[str]]:
    """Return the columns by table and schema, '' for the default schema."""
    columns: dict[FullName, list[str]] = {}
    for table, _, column, _, _, *more in rows:
        schema = str(more[0]) if more else ""
        name = str(table)[len(schema) + bool(schema) :].lower()
        columns.setdefault(FullName(schema.lower(), name), []).append(str(column))
    return columns


def query_of_view(definition: str) -> str:
    """Return the query of a CREATE VIEW statement, or the text itself if it is no such statement.

    >>> query_of_view("CREATE VIEW cities AS SELECT city FROM plant").strip()
    'SELECT city FROM plant'
    """
    match = CREATE_VIEW.fullmatch(definition)
    return match["query"] if match else definition


PLAIN = {"this", "db", "catalog", "alias", "joins", "laterals", "pivots"}
"""What a use of a table may have around its name."""
DEEPEST = 20
RAW = "decisor_raw"
PLACEHOLDER = re.compile(r"%\((\w+)\)s|\$([A-Za-z]\w*)")
NOT_FOLLOWED = "a view over rows that are not all for this reader cannot be followed."
REFUSED = "some rows or columns are not for this reader, so what tells of all of them may not be read."


def restrict_query(tree: Expr, restricted: RestrictedTables, dialect: Dialect, depth: int = 0) -> Expr:
    """Restrict a tree, in place, to the rows and columns of its reader, and return it. Raises ToolError (refused)."""
    if depth > DEEPEST:
        raise sql_refusal("views are nested too deeply.")
    if dialect.prepare:
        tree = dialect.prepare(tree)
    replaced: set[str] = set()
    # A WITH named like a table that a rule or view reads would stand in for it within our subquery.
    ctes = list(tree.find_all(exp.CTE))
    reserved = restricted.names() | (tables_named_in_rules(restricted, dialect) if ctes else set())
    for cte in ctes:
        if cte.alias.lower() in reserved:
            raise sql_refusal(f"{cte.alias} is the name of a table: give the WITH another name.")
    for node in list(tree.find_all(exp.Table)):
        if node.meta.get(RAW):
            continue
        name, relations = node.name.lower(), restricted.naming.of(node.name, node.db)
        if not restricted.hidden.isdisjoint(relations):
            raise sql_refusal(f"the table {node.name} may not be read.")
        views = relations & restricted.views.keys()
        if not (views or name in restricted.tables) or not isinstance(node.this, exp.Identifier):
            continue
        # TABLESAMPLE, versions and the like would have to hold for the subquery too: refused rather than lost.
        if more := sorted(key for key, value in node.args.items() if value and key not in PLAIN):
            raise sql_refusal(f"{node.name} may not be read with {more[0]}: not all of it is for this reader.")
        # Of which of them the query would have to be written is not certain, and a guess could show another's rows.
        if views and len(relations) > 1:
            raise sql_refusal(f"{node.name} is in several schemas: name it with its own.")
        if views:
            query = restrict_query(view_query(min(views), restricted, dialect), restricted, dialect, depth + 1)
        else:
            query = query_of_visible_rows(node, restricted.tables[name], restricted.key, dialect)
        replaced.add(node.alias_or_name.lower())
        replace_by_subquery(node, query)
    for column in tree.find_all(exp.Column):
        if column.db and column.table.lower() in replaced:  # public.orders.total is one of its subquery, orders
            column.set("db", None)
            column.set("catalog", None)
    return tree


def tables_named_in_rules(restricted: RestrictedTables, dialect: Dialect) -> set[str]:
    """Return the tables that conditions and views name themselves.

    With a WITH of such a name, a statement would choose which table they read.
    """
    conditions = [parse_condition(one, dialect) for rule in restricted.tables.values() for one in rule.conditions]
    names = {table.name.lower() for tree in conditions for table in tree.find_all(exp.Table)}
    for view in restricted.views:
        with suppress(ToolError):  # a view that does not parse is not read at all
            query = view_query(view, restricted, dialect)
            # Names that the view itself defines by WITH are no tables.
            own = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
            names |= {table.name.lower() for table in query.find_all(exp.Table)} - own
    return names


def replace_by_subquery(node: Expr, query: Expr) -> None:
    """Replace the use of a table by a subquery with the same alias and joins."""
    alias = node.args.get("alias")
    if alias is None or not alias.this:
        alias = exp.TableAlias(this=exp.to_identifier(node.name, quoted=node.this.args.get("quoted")))
    # sqlglot hangs joins on the table node in a bracket: without these they would go with it.
    around = {key: node.args.get(key) for key in ("joins", "laterals", "pivots") if node.args.get(key)}
    node.replace(exp.Subquery(this=query, alias=alias, **around))


def query_of_visible_rows(node: Expr, rule: TableRule, key: str, dialect: Dialect) -> Expr:
    """Return a query of the rows of a table that the reader may see."""
    table = exp.Table(this=node.this.copy(), db=node.args.get("db"), catalog=node.args.get("catalog"))
    table.meta[RAW] = True
    columns = [
        exp.alias_(token_expression(name, key, dialect), name, quoted=True)
        if name.lower() in rule.masked
        else exp.column(exp.to_identifier(name, quoted=True))
        for name in rule.columns
    ]
    query = exp.select(*(columns if rule.masked else [exp.Star()]), copy=False).from_(table, copy=False)
    for condition in rule.conditions:
        query = query.where(exp.paren(parse_condition(condition, dialect)), copy=False)
    # Without the fence an engine may push a condition of the query below ours, and its errors tell of hidden rows.
    if rule.conditions:
        query.set(*fence(dialect))
    return query


def token_expression(column: str, key: str, dialect: Dialect) -> Expr:
    """Return the expression of a column's token. Equal values have equal tokens, also in other columns."""
    return parse_condition(dialect.token.format(value=dialect.quoted(column), key=key), dialect)


def fence(dialect: Dialect) -> tuple[str, Expr]:
    word, _, number = dialect.fence.partition(" ")
    value = exp.Neg(this=exp.Literal.number(number[1:])) if number.startswith("-") else exp.Literal.number(number)
    return ("limit", exp.Limit(expression=value)) if word == "LIMIT" else ("offset", exp.Offset(expression=value))


def parse_condition(text: str, dialect: Dialect) -> Expr:
    """Parse a condition of a person, or an expression of our own. Its tables are read without restriction."""
    if (tree := parse_sql(f"SELECT {text}", dialect.name)) is None:
        raise ToolError(f"The condition {text!r} does not parse as {dialect.name} SQL.")
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or tree.args.get("from_"):
        raise ToolError(f"The condition {text!r} is not one condition.")
    value = tree.expressions[0]
    for table in value.find_all(exp.Table):
        # A person's condition may look up other tables (a list of their customers): these are read as they are.
        table.meta[RAW] = True
    alone: Expr = value.pop()
    return alone


def view_query(view: FullName, restricted: RestrictedTables, dialect: Dialect) -> Expr:
    """Return the query of a view, with its columns named as the view's are."""
    tree = parse_sql(restricted.views[view].strip().rstrip(";"), dialect.name)
    columns = restricted.columns.get(view, ())
    if isinstance(tree, exp.Create):
        if isinstance(tree.this, exp.Schema):
            columns = [one.name for one in tree.this.expressions]
        tree = tree.expression
    query = add_schemas_to_query(tree, restricted.naming, view.schema) if isinstance(tree, exp.Query) else None
    if not isinstance(query, exp.Query):
        raise sql_refusal(NOT_FOLLOWED)
    # CREATE VIEW v (a, b) names columns that its query does not.
    same = [name.lower() for name in query.named_selects] == [name.lower() for name in columns]
    return rename_query_columns(query, columns) if columns and not same else query


def rename_query_columns(query: Expr, columns: Sequence[str]) -> Expr:
    """Return a query with other column names, as CREATE VIEW v (a, b) gives them."""
    names = [exp.to_identifier(name, quoted=True) for name in columns]
    alias = exp.TableAlias(this=exp.to_identifier("decisor_view"), columns=names)
    select = exp.select("*").from_("decisor_view")
    select.set("with_", exp.With(expressions=[exp.CTE(this=query, alias=alias)]))
    return select


def restrict_statement_text(statement: str, restricted: RestrictedTables, dialect: Dialect) -> str:
    """Rewrite one of our own statements for the reader; names of its parameters stay as they are.

    Raises:
        ToolError: it does not parse.
    """
    if (tree := parse_sql(statement, dialect.name)) is None:
        raise sql_refusal(REFUSED)
    text = restrict_query(tree, restricted, dialect).sql(dialect=dialect.name)
    return PLACEHOLDER.sub(lambda match: f":{match[1] or match[2]}", text)


Run = Callable[[str], Table]


def reveal_tokens(text: str, restricted: RestrictedTables, dialect: Dialect, run: Run) -> Table:
    """Return the value of each token in a text, within the reader's rows.

    Raises ToolError (refused) if the reader may not see it.
    """
    if not restricted.reveal:
        raise sql_refusal("this reader may not see masked values.")
    tokens = sorted(set(TOKEN.findall(text)))
    rows: list[tuple[Value, ...]] = []
    for query in reveal_queries(tokens, restricted, dialect) if tokens else ():
        rows += run(query).rows
    return Table(("token", "value"), tuple(dict.fromkeys(rows)))


def reveal_queries(tokens: list[str], restricted: RestrictedTables, dialect: Dialect) -> Iterator[str]:
    literals = ", ".join(f"'{token}'" for token in tokens)
    for name, rule in restricted.tables.items():
        own = query_of_visible_rows(
            exp.to_table(dialect.quoted(name), dialect=dialect.name),
            replace(rule, masked=frozenset()),
            restricted.key,
            dialect,
        )
        for column in rule.columns:
            if column.lower() in rule.masked:
                token = token_expression(column, restricted.key, dialect)
                query = exp.select(
                    exp.alias_(token, "token"), exp.alias_(parse_condition(dialect.quoted(column), dialect), "v")
                )
                inner = query.from_(exp.Subquery(this=own.copy(), alias=exp.TableAlias(this=exp.to_identifier("r"))))
                yield f"SELECT token, v FROM ({inner.sql(dialect=dialect.name)}) AS q WHERE token IN ({literals})"
