"""How a graph is described and searched: its labels and relationship types as tables, their properties as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.tools.databases.cypher_schema import GraphSchema, link_line, name_of, property_line, quoted
from decisor.tools.databases.lookup import MOST_HITS, SCANNED, Language
from decisor.tools.databases.sql_tables import ColumnInfo, TableInfo

MOST_LINKS = 8
"""Of one type, between different labels, that are searched for a value."""


def label_tables(schema: GraphSchema) -> list[TableInfo]:
    """Labels with their properties, and a column for each tie to another label, which its type names."""
    ties: dict[str, dict[str, str]] = {label: {} for label in schema.labels}
    for source, kind, target in schema.links:
        for here, there in ((source, target), (target, source)):
            if here in ties and there in ties:
                ties[here].setdefault(f"{kind} {there}", f"{there}.id")
    return [
        TableInfo(
            label,
            (
                *columns_of(schema, label),
                *(ColumnInfo(name, "", references=there) for name, there in ties[label].items()),
            ),
            rows=schema.labels[label],
        )
        for label in schema.labels
    ]


def type_tables(schema: GraphSchema) -> list[TableInfo]:
    """Relationship types with their properties, as ``[TYPE]``."""
    return [TableInfo(f"[{kind}]", columns_of(schema, f"[{kind}]")) for kind in schema.types]


def columns_of(schema: GraphSchema, home: str) -> tuple[ColumnInfo, ...]:
    return tuple(
        ColumnInfo(one.name, " or ".join(one.types), examples=one.samples) for one in schema.properties.get(home, ())
    )


def language_of(schema: GraphSchema) -> Language:
    def head(table: TableInfo) -> str:
        return place(table) if table.rows is None else f"{place(table)} {table.rows} nodes"

    def lines(table: TableInfo) -> Iterator[tuple[str, str]]:
        for info in schema.properties.get(table.name, ()):
            yield f"  {property_line(info)}", name_of(info.name)
        kind = table.name.strip("[]") if table.rows is None else ""
        for link in schema.links:
            if link[1] == kind or (not kind and table.name in (link[0], link[2])):
                yield f"  {link_line(schema, link)}", name_of(link[1])

    def search(table: TableInfo, columns: Sequence[ColumnInfo], wishes: Sequence[str]) -> str:
        kind = table.name[1:-1]
        return search_query(table, columns, wishes, [link for link in schema.links if link[1] == kind])

    return Language("label", "property", head, lines, place, name_of, texts, known=lambda column: None, search=search)


def place(table: TableInfo) -> str:
    """As a pattern has it.

    >>> place(TableInfo("City", (), rows=2)), place(TableInfo("[LIES IN]", ()))
    ('(:City)', '[:`LIES IN`]')
    """
    return f"(:{name_of(table.name)})" if table.rows is not None else f"[:{name_of(table.name[1:-1])}]"


def texts(table: TableInfo) -> list[ColumnInfo]:
    """The properties that hold texts."""
    return [column for column in table.columns if "string" in column.type.split(" or ")]


def search_query(
    table: TableInfo, columns: Sequence[ColumnInfo], wishes: Sequence[str], links: Sequence[tuple[str, str, str]] = ()
) -> str:
    """``links``: of a type that is searched; their ends are named, for a node without a label may be a denied one.

    >>> search_query(TableInfo("A", (), rows=2), [ColumnInfo("b", "string")], ["Oslo"])
    "MATCH (x:`A`) WITH x LIMIT 1000000 WHERE toLower(x.`b`) CONTAINS 'oslo' RETURN DISTINCT x.`b` AS `b` LIMIT 20"
    """
    keys = [f"x.{quoted(column.name)}" for column in columns]
    tests = [f"toLower({key if column.type == 'string' else f'toString({key})'}) CONTAINS {literal(wish)}"
             for key, column in zip(keys, columns, strict=True) for wish in wishes]  # fmt: skip
    some = ", ".join(f"{key} AS {quoted(column.name)}" for key, column in zip(keys, columns, strict=True))
    patterns = [f"(x:{quoted(table.name)})"] if table.rows is not None else [
        f"(:{quoted(source)})-[x:{quoted(kind)}]->(:{quoted(target)})" for source, kind, target in links[:MOST_LINKS]
    ]  # fmt: skip
    return " UNION ".join(f"MATCH {pattern} WITH x LIMIT {SCANNED} WHERE {' OR '.join(tests)} RETURN DISTINCT {some} "
                          f"LIMIT {MOST_HITS}" for pattern in patterns)  # fmt: skip


def literal(text: str) -> str:
    """In lower case, on one line."""
    return "'" + " ".join(text.lower().split()).replace("\\", "\\\\").replace("'", "\\'") + "'"
