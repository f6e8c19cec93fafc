"""What tokens stand for, for a reader who may see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.policy import TOKEN, Restricted
from decisor.tools.databases.sandbox.restricting import parsed, rows_of, token_of
from decisor.tools.databases.sandbox.statement_size import refuse
from decisor.types import Table, Value

Run = Callable[[str], Table]


def revealed(text: str, restricted: Restricted, dialect: Dialect, run: Run) -> Table:
    """Of each token in a text its value, within the reader's rows. Raises ToolError (refused) where it may not be."""
    if not restricted.reveal:
        raise refuse("this reader may not see masked values.")
    tokens = sorted(set(TOKEN.findall(text)))
    rows: list[tuple[Value, ...]] = []
    for query in queries(tokens, restricted, dialect) if tokens else ():
        rows += run(query).rows
    return Table(("token", "value"), tuple(dict.fromkeys(rows)))


def queries(tokens: list[str], restricted: Restricted, dialect: Dialect) -> Iterator[str]:
    from sqlglot import exp

    literals = ", ".join(f"'{token}'" for token in tokens)
    for name, rule in restricted.tables.items():
        own = rows_of(exp.to_table(dialect.quoted(name), dialect=dialect.name), replace(rule, masked=frozenset()),
                      restricted.key, dialect)  # fmt: skip
        for column in rule.columns:
            if column.lower() in rule.masked:
                token = token_of(column, restricted.key, dialect)
                query = exp.select(exp.alias_(token, "token"), exp.alias_(parsed(dialect.quoted(column), dialect), "v"))
                inner = query.from_(exp.Subquery(this=own.copy(), alias=exp.TableAlias(this=exp.to_identifier("r"))))
                yield f"SELECT token, v FROM ({inner.sql(dialect=dialect.name)}) AS q WHERE token IN ({literals})"
