"""The catalog of any database, by SQLAlchemy's inspector: in bulk where its dialect has that, else table by table.

The rows are those that ``Queries`` tells of. They are asked for by a word that no checked statement can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from decisor.tools.databases.sandbox.dialect import Queries
from decisor.tools.databases.sandbox.names import words

if TYPE_CHECKING:
    from sqlalchemy import Connection, Inspector

Row = tuple[object, ...]
INSPECTED = Queries(
    columns="decisor_inspects_columns", keys="decisor_inspects_keys", tables="decisor_inspects_tables",
    definitions="decisor_inspects_definitions",
)  # fmt: skip
SYSTEM = words(
    """information_schema pg_catalog pg_toast mysql performance_schema sys system temp ndbinfo sysibm syscat sysstat
    guest xdb ctxsys mdsys outln wmsys"""
)
"""Schemas that hold no data of their own."""
ONE_SCHEMA = ("mysql", "mariadb", "doris", "starrocks", "singlestoredb", "clickhouse", "hive", "impala")
"""Where a schema is a database, and others are somebody else's."""


def inspected(statement: str, connection: Connection) -> tuple[Sequence[str], Iterator[Row]] | None:
    """The columns and rows of one of these words; None for a statement."""
    from sqlalchemy import inspect

    readers = {
        INSPECTED.columns: (7, columns), INSPECTED.keys: (4, keys), INSPECTED.tables: (3, comments),
        INSPECTED.definitions: (5, definitions),
    }  # fmt: skip
    if statement not in readers:
        return None
    width, read = readers[statement]
    return [f"c{number}" for number in range(width)], read(inspect(connection))


def columns(inspector: Inspector) -> Iterator[Row]:
    views: list[Row] = []
    for schema, name in shown_schemas(inspector):
        kinds = views_in(inspector, schema)
        for (_, table), its_columns in read_in(inspector, "get_multi_columns", schema):
            rows = [
                (f"{name}.{table}" if name else table, table in kinds, column["name"], type_of(column, inspector),
                 column.get("nullable", True), name, column.get("comment") or "")
                for column in its_columns
            ]  # fmt: skip
            if table in kinds:
                views += rows
            else:
                yield from rows
    yield from views


def keys(inspector: Inspector) -> Iterator[Row]:
    for schema, name in shown_schemas(inspector):
        before = f"{name}." if name else ""
        for (_, table), key in read_in(inspector, "get_multi_pk_constraint", schema):
            for column in (key or {}).get("constrained_columns") or ():
                yield before + table, column, "", ""
        for (_, table), foreign in read_in(inspector, "get_multi_foreign_keys", schema):
            for one in foreign:
                there = one.get("referred_schema")
                there = f"{there}." if there and there != inspector.default_schema_name else before * (not there)
                for column, to in zip(one["constrained_columns"], one["referred_columns"], strict=False):
                    yield before + table, column, there + one["referred_table"], to


def comments(inspector: Inspector) -> Iterator[Row]:
    for schema, name in shown_schemas(inspector):
        for (_, table), comment in read_in(inspector, "get_multi_table_comment", schema):
            if (comment or {}).get("text"):
                yield f"{name}.{table}" if name else table, comment["text"], None


def definitions(inspector: Inspector) -> Iterator[Row]:
    """Of all schemas, for a view of another one may read what is denied here."""
    for number, schema in enumerate(schemas(inspector)):
        place = str(schema or "").rpartition(".")[2], number == 0
        for table in names_in(inspector, "get_table_names", schema):
            yield table, "", "table", *place
        for view in views_in(inspector, schema):
            text = None
            with suppress(Exception):  # what the account may not see
                text = inspector.get_view_definition(view, schema)
            yield view, text, "view", *place


def schemas(inspector: Inspector) -> list[str | None]:
    """None is the default one where it has no name."""
    names: list[str | None] = []
    with suppress(NotImplementedError):
        names += [name for name in inspector.get_schema_names() if name.lower() not in SYSTEM]
    default = inspector.default_schema_name
    return [default, *(name for name in names if name != default)]


def shown_schemas(inspector: Inspector) -> list[tuple[str | None, str]]:
    """Each with what it is called: '' for the default one."""
    default, *others = schemas(inspector)
    named = [] if inspector.dialect.name in ONE_SCHEMA and default else others
    return [(default, ""), *((name, str(name).rpartition(".")[2]) for name in named)]


def views_in(inspector: Inspector, schema: str | None) -> set[str]:
    return {
        *names_in(inspector, "get_view_names", schema), *names_in(inspector, "get_materialized_view_names", schema)
    }  # fmt: skip


def names_in(inspector: Inspector, method: str, schema: str | None) -> list[str]:
    with suppress(NotImplementedError):
        return list(getattr(inspector, method)(schema=schema))
    return []


def read_in(inspector: Inspector, method: str, schema: str | None) -> list[tuple[tuple[str | None, str], Any]]:
    """Of every table and view of a schema; nothing where the dialect does not tell."""
    from sqlalchemy.engine.reflection import ObjectKind

    with suppress(NotImplementedError):
        return list(getattr(inspector, method)(schema=schema, kind=ObjectKind.ANY).items())
    return []


def type_of(column: Any, inspector: Inspector) -> str:
    """As the database calls it."""
    try:
        return str(column["type"].compile(dialect=inspector.dialect))
    except Exception:  # a type without a name in this dialect
        return str(column["type"])
