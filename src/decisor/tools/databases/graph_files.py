"""A graph from files: a table with a source and a target holds relationships, any other nodes.

    nodes.csv    id, label, and whatever properties
    edges.csv    source, target, type, and whatever properties

Labels and types come from such a column, else from the name of the file. Headers of Neo4j's import are understood
(``personId:ID``, ``:LABEL``, ``:START_ID``, ``:END_ID``, ``:TYPE``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.tools.databases.files.header import unique
from decisor.tools.databases.graph_draft import Draft, Rows, key_of
from decisor.tools.databases.graph_write import Edge, Node, labels_of
from decisor.types import Value

ENDS = (("source", "target"), ("start_id", "end_id"), ("source_id", "target_id"), ("from", "to"),
        ("from_id", "to_id"), ("src", "dst"), ("subject", "object"))  # fmt: skip
IDS = ("id", "node_id", "nodeid")
LABELS = ("label", "labels")
TYPES = ("type", "relationship", "relation", "label")
END_LABELS = ("source_label", "target_label")
MOST_KINDS = 50
SHOWN = 3
Places: TypeAlias = dict[str, list[int]]
"""Where the nodes of an id stand."""


@dataclass(frozen=True, slots=True)
class Names:
    """Of columns, where a person says them; '' are the usual ones. ``label`` or ``type`` may be "none"."""

    id: str = ""
    source: str = ""
    target: str = ""
    label: str = ""
    type: str = ""


def draft_of_files(tables: Sequence[Rows], names: Names = Names()) -> Draft:
    """Raises SetupError where a column is not there, nothing holds nodes, or an id is of two nodes."""
    for option, name in (("id", names.id), ("source", names.source), ("target", names.target),
                         ("label", names.label), ("type", names.type)):  # fmt: skip
        if name not in ("", "none") and not any(name in table.columns for table in tables):
            raise SetupError(f"No file has a column {name}, which --{option} names.")
    ends = [ends_of(table, names) for table in tables]
    draft = Draft()
    places: Places = {}
    for table, pair in zip(tables, ends, strict=True):
        if pair is None:
            add_nodes(draft, table, names, places)
    if not draft.nodes:
        raise SetupError("No file holds nodes: each has a source and a target. Name one with the nodes and their ids.")
    for table, pair in zip(tables, ends, strict=True):
        if pair is not None:
            add_edges(draft, table, pair, names, places)
    return draft


def ends_of(table: Rows, names: Names) -> tuple[int, int] | None:
    """Where source and target stand; None where the table holds nodes."""
    if names.source or names.target:
        pair = (names.source or names.target, names.target or names.source)
        if pair[0] in table.columns and pair[1] in table.columns and pair[0] != pair[1]:
            return table.columns.index(pair[0]), table.columns.index(pair[1])
    words = [word(column) for column in table.columns]
    return next(
        ((words.index(one), words.index(other)) for one, other in ENDS if one in words and other in words), None
    )


def word(column: str) -> str:
    """What a column says that it is.

    >>> word("Source"), word("personId:ID(Person)"), word(":START_ID")
    ('source', 'id', 'start_id')
    """
    return (column.rpartition(":")[2] or column).partition("(")[0].strip().lower()


def property_names(columns: Sequence[str]) -> list[str]:
    """
    >>> property_names(["personId:ID(Person)", "name:string", ":ID", "age"])
    ['personId', 'name', 'id', 'age']
    """
    return unique([column.partition(":")[0].strip() or word(column) for column in columns])


def add_nodes(draft: Draft, table: Rows, names: Names, places: Places) -> None:
    at = id_of(table, names)
    kind = kind_of(table, LABELS, names.label)
    properties = property_names(table.columns)
    twice: list[str] = []
    lost = 0
    for row in table.rows:
        if row[at] is None:
            lost += 1
            continue
        key, stated = key_of(row[at]), row[kind] if kind is not None else None
        labels = tuple(filter(None, str(stated or "").split(";"))) or (table.name,)
        others = places.setdefault(key, [])
        if any(labels_of(draft.nodes[other])[0] == labels[0] for other in others):
            twice.append(key)
        others.append(len(draft.nodes))
        draft.nodes.append(Node(labels, filled(properties, row, {kind})))
    if twice:
        raise SetupError(
            f"{table.origin}: the id {twice[0]!r} (column {table.columns[at]}) is of two nodes with one label "
            f"({len(twice):,} such): no edge could tell them apart. Name another column by --id."
        )
    label = table.name if kind is None else f"by the column {table.columns[kind]}"
    draft.notes.append(f"{table.origin}: nodes; label {label}; id by the column {table.columns[at]}")
    if lost:
        draft.lost.append(f"{table.origin}: {counted(lost, 'node')} without an id")


def filled(names: Sequence[str], row: Sequence[Value], without: Collection[int | None]) -> dict[str, Value]:
    """What a row holds, but for these places."""
    return {
        name: value
        for at, (name, value) in enumerate(zip(names, row, strict=True))
        if value is not None and at not in without
    }


def id_of(table: Rows, names: Names) -> int:
    """Where the ids of nodes stand: in such a column, else in the first, if its values are unique."""
    if names.id in table.columns:
        return table.columns.index(names.id)
    words = [word(column) for column in table.columns]
    for name in (*IDS, f"{table.name.lower()}_id"):
        if name in words:
            return words.index(name)
    first = [row[0] for row in table.rows]
    if None in first or len(set(map(key_of, first))) < len(first):
        raise SetupError(
            f"{table.origin} has neither an id nor a source and a target; it has {', '.join(table.columns)}. "
            "Name columns by --id, or by --source and --target."
        )
    return 0


def kind_of(table: Rows, usual: Sequence[str], name: str) -> int | None:
    """Where labels or types stand; None where in no column. One that says something else of nearly every row is a
    name that people read."""
    if name:
        return table.columns.index(name) if name in table.columns else None
    words = [word(column) for column in table.columns]
    for at in (words.index(one) for one in usual if one in words):
        values = {row[at] for row in table.rows}
        if table.columns[at].startswith(":") or len(values) <= max(2, min(MOST_KINDS, len(table.rows) - 1)):
            return at
    return None


def add_edges(draft: Draft, table: Rows, ends: tuple[int, int], names: Names, places: Places) -> None:
    kind = kind_of(table, TYPES, names.type)
    words = [word(column) for column in table.columns]
    labels = [words.index(one) if one in words else None for one in END_LABELS]
    without = {*ends, *labels, kind}
    properties = property_names(table.columns)
    lost: list[str] = []
    for row in table.rows:
        both = [
            place(draft, places, row[end], row[label] if label is not None else None, table.origin)
            for end, label in zip(ends, labels, strict=True)
        ]
        source, target = both
        if source is None or target is None:
            at = ends[both.index(None)]
            lost.append("none" if row[at] is None else key_of(row[at]))
            continue
        name = row[kind] if kind is not None else None
        draft.edges.append(Edge(str(name or table.name), source, target, filled(properties, row, without)))
    label = table.name if kind is None else f"by the column {table.columns[kind]}"
    arrow = f"{table.columns[ends[0]]} -> {table.columns[ends[1]]}"
    draft.notes.append(f"{table.origin}: relationships {arrow}; type {label}")
    if lost:
        some = ", ".join(dict.fromkeys(lost[:SHOWN]))
        draft.lost.append(f"{table.origin}: {counted(len(lost), 'relationship')} to no node (such as id {some})")


def place(draft: Draft, places: Places, value: Value, label: Value, origin: str) -> int | None:
    """The node of an id, None where there is none. Raises SetupError where there are two."""
    nodes = places.get(key_of(value), []) if value is not None else []
    if label is not None:
        nodes = [node for node in nodes if str(label) in labels_of(draft.nodes[node])]
    if len(nodes) > 1:
        several = " and of a ".join(labels_of(draft.nodes[node])[0] for node in nodes[:SHOWN])
        raise SetupError(
            f"{origin}: the id {value} is of a {several}. Say which by the columns source_label and target_label."
        )
    return nodes[0] if nodes else None
