"""A graph from a relational database, by its foreign keys.

    a row of a table                       a node; the table's name is its label
    a foreign key customer_id of orders    (:orders)-[:CUSTOMER]->(:customers)
    a table of two foreign keys            a relationship between the two, with its other columns

Where the database declares no foreign key at all, columns whose values are the keys of another table stand in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from decisor.plurals import counted
from decisor.tools.databases.graph_draft import Draft, Rows, key_of
from decisor.tools.databases.graph_write import Edge, Node
from decisor.tools.databases.sql_tables import TableInfo
from decisor.tools.databases.sql_tables import key_of as primary_key
from decisor.types import Value

ENDING = re.compile(r"(?<=[a-z0-9])(?:[ _-]?(?:id|ID|Id|key|no))$|(?<=[A-Z])_?(?:ID|KEY|NO)$")


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key: columns of one table, and those of the table ``there``, in this order."""

    columns: tuple[str, ...]
    there: str
    keys: tuple[str, ...]


def draft_of_database(tables: Sequence[TableInfo], rows: Mapping[str, Rows]) -> Draft:
    """``rows``: of each table, by its name."""
    by_name = {table.name.lower(): table for table in tables}
    guess = not any(column.references for table in tables for column in table.columns)
    links = {table.name: tuple(links_of(table, by_name, guess)) for table in tables}
    targets = {link.there for some in links.values() for link in some}
    joins = {table.name for table in tables if is_join(table, links[table.name]) and table.name not in targets}
    labels = labels_for(tables)
    draft = Draft()
    first: dict[str, int] = {}
    for table in tables:
        if table.name not in joins:
            first[table.name] = len(draft.nodes)
            hidden = set() if guess else hidden_columns(table, links[table.name])
            draft.nodes += [Node(labels[table.name], filled(rows[table.name], row, hidden))
                            for row in rows[table.name].rows]  # fmt: skip
    ends = Ends(rows, first)
    for table in tables:
        add = add_join if table.name in joins else add_links
        add(draft, rows[table.name], links[table.name], ends, labels)
    if guess and draft.edges:
        draft.notes.append("The database declares no foreign key: these are guessed from the values of columns.")
    return draft


def links_of(table: TableInfo, tables: Mapping[str, TableInfo], guess: bool) -> Iterator[Link]:
    """Columns that refer to all the columns of a key of several are one."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for column in table.columns:
        name, _, key = (column.joins if guess else column.references).rpartition(".")
        if there := tables.get(name.lower()):
            groups.setdefault(there.name, []).append((column.name, stated(there, key)))
    for name, pairs in groups.items():
        keys = [key for _, key in pairs]
        if len(pairs) > 1 and len(set(keys)) == len(keys):
            yield Link(tuple(column for column, _ in pairs), name, tuple(keys))
        else:
            yield from (Link((column,), name, (key,)) for column, key in pairs)


def stated(table: TableInfo, key: str) -> str:
    """A column as its table spells it; the primary key where a foreign key names none."""
    names = {column.name.lower(): column.name for column in table.columns}
    own = primary_key(table)
    return names.get(key.lower()) or (own[0].name if len(own) == 1 else key)


def is_join(table: TableInfo, links: Sequence[Link]) -> bool:
    """Two foreign keys, and no key of its own beside them."""
    own = {column.name for column in primary_key(table)}
    return len(links) == 2 and (not own or own >= {*links[0].columns, *links[1].columns})


def labels_for(tables: Sequence[TableInfo]) -> dict[str, str]:
    """A table's own name, with its schema where another has that name too."""
    bare = [table.bare.lower() for table in tables]
    return {table.name: table.bare if bare.count(table.bare.lower()) == 1 else table.name for table in tables}


def hidden_columns(table: TableInfo, links: Iterable[Link]) -> set[str]:
    """Those that a relationship says."""
    own = {column.name for column in primary_key(table)}
    return {column for link in links for column in link.columns} - own


def filled(rows: Rows, row: Sequence[Value], hidden: set[str]) -> dict[str, Value]:
    pairs = zip(rows.columns, row, strict=True)
    return {name: value for name, value in pairs if value is not None and name not in hidden}


class Ends:
    """Finds the nodes that foreign keys mean."""

    def __init__(self, rows: Mapping[str, Rows], first: Mapping[str, int]) -> None:
        self.rows, self.first = rows, first
        self.places: dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], int]] = {}

    def node(self, link: Link, values: Sequence[Value]) -> int | None:
        """None where there is none."""
        index = self.places.get((link.there, link.keys))
        if index is None:
            rows = self.rows[link.there]
            keys = keys_in(rows, link.keys)
            index = {key: self.first[link.there] + at for at, key in enumerate(keys) if key is not None}
            self.places[link.there, link.keys] = index
        return index.get(tuple(map(key_of, values)))


def keys_in(rows: Rows, columns: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Of each row its values there, None where one is missing."""
    places = [rows.columns.index(column) for column in columns]
    return [
        None if any(row[at] is None for at in places) else tuple(key_of(row[at]) for at in places) for row in rows.rows
    ]


def add_links(draft: Draft, rows: Rows, links: Sequence[Link], ends: Ends, labels: Mapping[str, str]) -> None:
    for link in links:
        kind = type_of(link, labels)
        lost = before = 0
        before = len(draft.edges)
        for at, key in enumerate(keys_in(rows, link.columns)):
            if key is None:
                continue
            node = ends.node(link, key)
            if node is None:
                lost += 1
            else:
                draft.edges.append(Edge(kind, ends.first[rows.name] + at, node))
        say(draft, rows, f"{', '.join(link.columns)}: (:{labels[rows.name]})-[:{kind}]->(:{labels[link.there]})",
            len(draft.edges) - before, lost)  # fmt: skip


def add_join(draft: Draft, rows: Rows, links: Sequence[Link], ends: Ends, labels: Mapping[str, str]) -> None:
    source, target = links
    kind = upper(labels[rows.name])
    hidden = {*source.columns, *target.columns}
    lost, before = 0, len(draft.edges)
    for row, one, other in zip(rows.rows, keys_in(rows, source.columns), keys_in(rows, target.columns), strict=True):
        first = ends.node(source, one) if one else None
        second = ends.node(target, other) if other else None
        if first is None or second is None:
            lost += 1
        else:
            draft.edges.append(Edge(kind, first, second, filled(rows, row, hidden)))
    say(draft, rows, f"its rows: (:{labels[source.there]})-[:{kind}]->(:{labels[target.there]})",
        len(draft.edges) - before, lost)  # fmt: skip


def say(draft: Draft, rows: Rows, what: str, count: int, lost: int) -> None:
    draft.notes.append(f"{rows.name}, {what}, {count:,}")
    if lost:
        draft.lost.append(f"{rows.name}: {counted(lost, 'relationship')} to no node ({what})")


def type_of(link: Link, labels: Mapping[str, str]) -> str:
    """By its column, without the ending that says key; of several columns, by the table that they lead to."""
    name = ENDING.sub("", link.columns[0]) if len(link.columns) == 1 else ""
    return upper(name or labels[link.there])


def upper(name: str) -> str:
    """
    >>> upper("homeNode"), upper("order lines")
    ('HOME_NODE', 'ORDER_LINES')
    """
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).strip("_").upper() or "REFERS_TO"
