"""Names of tables and columns in the SQL of SQLite and DuckDB."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name of a table or column in SQL.

    >>> quoted('od"d')
    '"od""d"'
    """
    return '"' + name.replace('"', '""') + '"'
