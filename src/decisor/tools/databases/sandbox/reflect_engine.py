"""The schema of a database, through SQLAlchemy's reflection. Runs in a worker of its own, which then ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.urls import parse_url
from decisor.tools.databases.sandbox.values import table
from decisor.types import Table, Value

COLUMNS = ("table", "view", "column", "type", "nullable", "key", "references")


@dataclass(eq=False)
class Reflection:
    """``run`` gives one row per column of each table and view; its statement is not looked at."""

    alchemy: Any

    def check(self, statement: str) -> str:
        raise ToolError("Refused: this worker only reflects.", refused=True)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import sqlalchemy

        return table(COLUMNS, rows_of(sqlalchemy.inspect(self.alchemy)), caps)

    def close(self) -> None:
        self.alchemy.dispose()


def rows_of(inspector: Any) -> Iterator[tuple[Any, ...]]:
    tables = inspector.get_table_names()
    for name in [*tables, *inspector.get_view_names()]:
        view = name not in tables
        keys = set() if view else set(inspector.get_pk_constraint(name).get("constrained_columns") or ())
        foreign = {} if view else _references(inspector, name)
        for column in inspector.get_columns(name):
            kind = "" if str(column["type"]) == "NULL" else str(column["type"])
            named = column["name"]
            yield name, view, named, kind, bool(column.get("nullable", True)), named in keys, foreign.get(named, "")


def _references(inspector: Any, name: str) -> dict[str, str]:
    found = {}
    for key in inspector.get_foreign_keys(name):
        for here, there in zip(key["constrained_columns"], key["referred_columns"], strict=False):
            found[here] = f"{key['referred_table']}.{there}"
    return found


def connect(url: str, caps: Caps) -> Reflection:
    import sqlalchemy

    name, url = parse_url(url)
    rest = url.partition("://")[2]
    if name in ("sqlite", "duckdb") and not Path(rest.removeprefix("/")).is_file():
        raise SetupError(f"There is no database file {rest.removeprefix('/')}.")
    match name:
        case "sqlite":
            address = Path(rest.removeprefix("/")).resolve().as_uri()
            alchemy = sqlalchemy.create_engine(f"sqlite:///{address}?mode=ro&uri=true")
        case "duckdb":
            alchemy = sqlalchemy.create_engine(url, connect_args={"read_only": True})
        case "postgres":
            alchemy = sqlalchemy.create_engine(f"postgresql+psycopg://{rest}", connect_args={"client_encoding": "UTF8"})
        case "mysql":
            alchemy = sqlalchemy.create_engine(f"mysql+pymysql://{rest}")
        case _:
            raise SetupError(f"{name} has no tables to reflect.")
    return Reflection(alchemy)
