"""A checked query, rewritten so that it sees only its reader's rows, and tokens in place of masked values.

Each use of such a table becomes a subquery with its condition and its tokens; each use of a view that reads one becomes
the view's own query, rewritten too. All else in the query works on what these bring: what it filters, casts or joins by
never meets a value that is not its reader's. A subquery ends with a limit that cuts nothing, across which no engine
moves a condition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.naming import FullName, with_schemas
from decisor.tools.databases.sandbox.policy import Restricted, TableRule
from decisor.tools.databases.sandbox.statement_size import refuse

if TYPE_CHECKING:
    from sqlglot import Expr

PLAIN = {"this", "db", "catalog", "alias", "joins", "laterals", "pivots"}
"""What a use of a table may have around its name."""
DEEPEST = 20
RAW = "decisor_raw"
PLACEHOLDER = re.compile(r"%\((\w+)\)s|\$([A-Za-z]\w*)")
NOT_FOLLOWED = "a view over rows that are not all for this reader cannot be followed."
REFUSED = "some rows or columns are not for this reader, so what tells of all of them may not be read."


def restrict(tree: Expr, restricted: Restricted, dialect: Dialect, depth: int = 0) -> Expr:
    """Changes the tree, and returns it. Raises ToolError (refused)."""
    from sqlglot import exp

    if depth > DEEPEST:
        raise refuse("views are nested too deeply.")
    if dialect.prepare:
        tree = dialect.prepare(tree)
    replaced: set[str] = set()
    ctes = list(tree.find_all(exp.CTE))
    reserved = restricted.names() | (read_inside(restricted, dialect) if ctes else set())
    for cte in ctes:
        if cte.alias.lower() in reserved:
            raise refuse(f"{cte.alias} is the name of a table: give the WITH another name.")
    for node in list(tree.find_all(exp.Table)):
        if node.meta.get(RAW):
            continue
        name, relations = node.name.lower(), restricted.naming.of(node.name, node.db)
        if not restricted.hidden.isdisjoint(relations):
            raise refuse(f"the table {node.name} may not be read.")
        views = relations & restricted.views.keys()
        if not (views or name in restricted.tables) or not isinstance(node.this, exp.Identifier):
            continue
        if more := sorted(key for key, value in node.args.items() if value and key not in PLAIN):
            raise refuse(f"{node.name} may not be read with {more[0]}: not all of it is for this reader.")
        if views and len(relations) > 1:
            raise refuse(f"{node.name} is in several schemas: name it with its own.")
        if views:
            query = restrict(view_query(min(views), restricted, dialect), restricted, dialect, depth + 1)
        else:
            query = rows_of(node, restricted.tables[name], restricted.key, dialect)
        replaced.add(node.alias_or_name.lower())
        in_place_of(node, query)
    for column in tree.find_all(exp.Column):
        if column.db and column.table.lower() in replaced:  # public.orders.total is one of its subquery, orders
            column.set("db", None)
            column.set("catalog", None)
    return tree


def read_inside(restricted: Restricted, dialect: Dialect) -> set[str]:
    """Tables that conditions and views name themselves: with a WITH of such a name, a statement would choose what
    they read."""
    from sqlglot import exp

    conditions = [parsed(one, dialect) for rule in restricted.tables.values() for one in rule.conditions]
    names = {table.name.lower() for tree in conditions for table in tree.find_all(exp.Table)}
    for view in restricted.views:
        with suppress(ToolError):  # a view that does not parse is not read at all
            query = view_query(view, restricted, dialect)
            own = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
            names |= {table.name.lower() for table in query.find_all(exp.Table)} - own
    return names


def in_place_of(node: Expr, query: Expr) -> None:
    """A subquery with the alias and the joins of the table's use."""
    from sqlglot import exp

    alias = node.args.get("alias")
    if alias is None or not alias.this:
        alias = exp.TableAlias(this=exp.to_identifier(node.name, quoted=node.this.args.get("quoted")))
    around = {key: node.args.get(key) for key in ("joins", "laterals", "pivots") if node.args.get(key)}
    node.replace(exp.Subquery(this=query, alias=alias, **around))


def rows_of(node: Expr, rule: TableRule, key: str, dialect: Dialect) -> Expr:
    """The reader's rows of a table."""
    from sqlglot import exp

    table = exp.Table(this=node.this.copy(), db=node.args.get("db"), catalog=node.args.get("catalog"))
    table.meta[RAW] = True
    query = exp.select(*columns_of(rule, key, dialect), copy=False).from_(table, copy=False)
    for condition in rule.conditions:
        query = query.where(exp.paren(parsed(condition, dialect)), copy=False)
    if rule.conditions:
        query.set(*fence(dialect))
    return query


def columns_of(rule: TableRule, key: str, dialect: Dialect) -> list[Expr]:
    from sqlglot import exp

    if not rule.masked:
        return [exp.Star()]
    return [
        exp.alias_(token_of(name, key, dialect), name, quoted=True)
        if name.lower() in rule.masked
        else exp.column(exp.to_identifier(name, quoted=True))
        for name in rule.columns
    ]


def token_of(column: str, key: str, dialect: Dialect) -> Expr:
    """What stands for a column's value: the same for the same value, also in another column."""
    return parsed(dialect.token.format(value=dialect.quoted(column), key=key), dialect)


def fence(dialect: Dialect) -> tuple[str, Expr]:
    from sqlglot import exp

    word, _, number = dialect.fence.partition(" ")
    value = exp.Neg(this=exp.Literal.number(number[1:])) if number.startswith("-") else exp.Literal.number(number)
    return ("limit", exp.Limit(expression=value)) if word == "LIMIT" else ("offset", exp.Offset(expression=value))


def parsed(text: str, dialect: Dialect) -> Expr:
    """A condition, as a person wrote it, or an expression of our own. Its tables are read as they are."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect=dialect.name)
    except SqlglotError as error:
        raise ToolError(f"The condition {text!r} does not parse as {dialect.name} SQL.") from error
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or tree.args.get("from_"):
        raise ToolError(f"The condition {text!r} is not one condition.")
    value = tree.expressions[0]
    for table in value.find_all(exp.Table):
        table.meta[RAW] = True
    alone: Expr = value.pop()
    return alone


def view_query(view: FullName, restricted: Restricted, dialect: Dialect) -> Expr:
    """What makes a view, with its columns called as the view's are."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(restricted.views[view].strip().rstrip(";"), dialect=dialect.name)
    except SqlglotError as error:
        raise refuse(NOT_FOLLOWED) from error
    columns = restricted.columns.get(view, ())
    if isinstance(tree, exp.Create):
        if isinstance(tree.this, exp.Schema):
            columns = [one.name for one in tree.this.expressions]
        tree = tree.expression
    query = with_schemas(tree, restricted.naming, view.schema) if isinstance(tree, exp.Query) else None
    if not isinstance(query, exp.Query):
        raise refuse(NOT_FOLLOWED)
    same = [name.lower() for name in query.named_selects] == [name.lower() for name in columns]
    return with_names(query, columns) if columns and not same else query


def with_names(query: Expr, columns: Sequence[str]) -> Expr:
    """Of CREATE VIEW v (a, b): its columns have other names than those of its query."""
    from sqlglot import exp

    names = [exp.to_identifier(name, quoted=True) for name in columns]
    alias = exp.TableAlias(this=exp.to_identifier("decisor_view"), columns=names)
    select = exp.select("*").from_("decisor_view")
    select.set("with_", exp.With(expressions=[exp.CTE(this=query, alias=alias)]))
    return select


def restricted_text(statement: str, restricted: Restricted, dialect: Dialect) -> str:
    """A statement of our own, rewritten. Names of its parameters stay as they are.

    Raises:
        ToolError: it does not parse.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(statement, dialect=dialect.name)
    except SqlglotError as error:
        raise refuse(REFUSED) from error
    text = restrict(tree, restricted, dialect).sql(dialect=dialect.name)
    return PLACEHOLDER.sub(lambda match: f":{match[1] or match[2]}", text)
