"""Data with the rows and masks that held when a decision was made, as its trace or its record names them.

Such a file may be a stranger's, and a condition is a piece of each statement that runs: so it may only compare columns
with values.
"""

from __future__ import annotations

from collections.abc import Sequence

from decisor.errors import SetupError
from decisor.session.readers import for_reader
from decisor.session.sources import Sources
from decisor.trace.provenance import DataSource, RowPolicy

NAME_THEM = "name the rows with --rows TABLE=CONDITION, and the masks with --mask TABLE.COLUMN"


def as_it_was(sources: Sources, origin: Sequence[DataSource]) -> Sources:
    """``origin``: the data as the decision names them; where there is one of a form on both sides, by whatever name.
    What the config file says of a connection holds anyway.

    Raises:
        SetupError: which rows they were is not known, or not for a file to say.
    """
    holds = {text for one in sources.places if one.connection for text in one.connection.rows.values()}
    rows: dict[str, str] = {}
    mask: list[str] = []
    for one in origin:
        name = name_of(one, origin, sources)
        for row in one.rows if name else ():
            if row.condition not in holds:
                table = f"{name}.{row.table}"
                rows[table] = " AND ".join([*([rows[table]] if table in rows else []), f"({condition_of(row)})"])
        mask += [f"{name}.{column}" for column in one.mask if name]
    return for_reader(sources, rows, mask) if rows or mask else sources


def name_of(one: DataSource, origin: Sequence[DataSource], sources: Sources) -> str:
    """What it is called among these; '' where it is not there."""
    was = [other for other in origin if other.form == one.form]
    here = [place.name for place in sources.places if place.form == one.form]
    return here[0] if len(was) == len(here) == 1 else one.name if one.name in here else ""


def condition_of(row: RowPolicy) -> str:
    """Raises SetupError where it is not known, or does more than compare."""
    if not is_plain(row.condition):
        raise SetupError(f"Which rows of {row.table} were for who asked cannot be taken from this file: {NAME_THEM}.")
    return row.condition


def is_plain(condition: str) -> bool:
    """Whether it compares columns with values, and nothing else.

    >>> is_plain("region = 'EU' AND total >= 5"), is_plain("id IN (1, 2)"), is_plain("email <> ?")
    (True, True, False)
    >>> is_plain("pg_read_file('x') = 'y'"), is_plain("id IN (SELECT id FROM other)"), is_plain("a = '\\\\'")
    (False, False, False)
    """
    import sqlglot
    from sqlglot import exp

    plain = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Paren, exp.And, exp.Or,
             exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like,
             exp.Is)  # fmt: skip
    if any(sign in condition for sign in ("\\", "--", "/*", "#", "$", ";")):  # what engines read in several ways
        return False
    try:
        tree = sqlglot.parse_one(condition)
    except sqlglot.errors.SqlglotError:
        return False
    return all(type(node) in plain for node in tree.walk())
