"""Rewrites a checked query so that it sees only its reader's rows, and tokens in place of masked values.

Each use of a restricted table becomes a subquery with its condition and its tokens; each use of a view that reads one
becomes the view's own query, rewritten too. All else in the query works on the rows of these subqueries: what it
filters, casts or joins by never meets a value that is not its reader's. A subquery ends with a limit that cuts
nothing, across which no engine moves a condition. ``reveal_tokens`` returns the values behind tokens, for a reader who
may see them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from sqlglot import Expr, exp

from decisor.errors import ToolError
from decisor.sandbox.dialect import Dialect, FullName, add_schemas_to_query, parse_sql, sql_refusal
from decisor.sandbox.engine import TOKEN, RestrictedTables, TableRule
from decisor.types import Table, Value

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
