"""DuckDB: read_only, no external access, no extensions, configuration locked. Time is the parent's to watch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.guard import Guard, refuse
from decisor.tools.databases.sandbox.values import bind, table
from decisor.types import Table, Value

ROWS_AT_ONCE = 64


@dataclass(eq=False)
class DuckEngine:
    db: Any
    guard: Guard

    def check(self, statement: str) -> str:
        checked = self.guard.check(statement)
        if self.guard.deny and not checked.startswith(("DESCRIBE", "SHOW", "SUMMARIZE", "EXPLAIN")):
            self._tables(checked)
        return checked

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        cursor = self.db.cursor()
        try:
            cursor.execute(bind(statement, parameters, "${}"), dict(parameters) or None)
            columns = [column[0] for column in cursor.description or ()]
            return table(columns, rows_of(cursor), caps)
        except duckdb.Error as error:
            raise ToolError(str(error)) from error
        finally:
            cursor.close()

    def close(self) -> None:
        self.db.close()

    def _tables(self, statement: str) -> None:
        """Refuse denied tables behind views too. DuckDB resolves the views; what it cannot resolve is refused."""
        try:
            names = self.db.get_table_names(statement)
        except duckdb.CatalogException:
            return  # a misspelt name: running it gives the better message
        except duckdb.Error as error:
            raise refuse(f"the tables it reads cannot be told: {error}") from error
        if denied := self.guard.deny & {name.lower().split(".")[-1].strip('"') for name in names}:
            raise refuse(f"the table {', '.join(sorted(denied))} may not be read.")


def rows_of(cursor: Any) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(ROWS_AT_ONCE):
        yield from rows


def open_functions(db: Any) -> frozenset[str]:
    """The database's own scalar macros and the catalog: only where no table is denied, for they may read any."""
    macros = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'macro' AND NOT internal"
    catalog = {"duckdb_tables", "duckdb_columns", "duckdb_views", "duckdb_constraints"}
    return frozenset({str(name).lower() for (name,) in db.execute(macros).fetchall()} | catalog)


def settings(memory_mb: int) -> dict[str, Any]:
    return {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "memory_limit": f"{max(64, memory_mb // 2)}MB",
        "temp_directory": "",
    }


def connect(url: str, caps: Caps) -> DuckEngine:
    """Raises SetupError where there is no such file, or it is not a database. Never makes a file."""
    path = Path(url.removeprefix("duckdb:///"))
    if not path.is_file():
        raise SetupError(f"There is no database file {path}. Check the path of --db (duckdb:///PATH).")
    try:
        db = duckdb.connect(str(path), read_only=True, config=settings(caps.memory_mb))
        db.execute("SET python_enable_replacements = false")  # no option of connect
        db.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        raise SetupError(f"{path} cannot be read as a DuckDB database: {' '.join(str(error).split())}") from error
    import sqlglot.dialects.duckdb  # noqa: F401  warm: the first query should not pay for it

    return DuckEngine(db, Guard("duckdb", frozenset(caps.deny), frozenset() if caps.deny else open_functions(db)))
