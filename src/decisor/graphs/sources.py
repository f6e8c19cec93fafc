"""Make a graph from files or a relational database; the draft lists everything read and left out.

Of files, a table with a source and a target holds relationships, any other nodes.

    nodes.csv    id, label, and whatever properties
    edges.csv    source, target, type, and whatever properties

Labels and types come from such a column, else from the name of the file. Headers of Neo4j's import are understood
(``personId:ID``, ``:LABEL``, ``:START_ID``, ``:END_ID``, ``:TYPE``).

Of a relational database, foreign keys become relationships.

    a row of a table                       a node; the table's name is its label
    a foreign key customer_id of orders    (:orders)-[:CUSTOMER]->(:customers)
    a table of two foreign keys            a relationship between the two, with its other columns

If the database declares no foreign key at all, columns whose values are the keys of another table stand in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

from decisor.databases.files.delimited import unique_column_names
from decisor.databases.schema import TableInfo
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError
from decisor.graphs.load import GraphEdge, GraphNode, labels_of
from decisor.system.wording import format_count
from decisor.types import Value

MOST_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table, with all of its rows, to make a graph of."""

    name: str
    origin: str
    """The file or database, for people."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(eq=False)
class GraphDraft:
    """Nodes and relationships that are to be loaded."""

    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """How the rows were read."""
    lost: list[str] = field(default_factory=list)
    """What is not in the graph, and why."""

    def labels(self) -> Counter[str]:
        """Count the nodes by their main label."""
        return Counter(labels_of(node)[0] for node in self.nodes)

    def kinds(self) -> Counter[str]:
        """Count the relationships of each kind, as ``(:City)-[:LIES_IN]->(:Country)``."""
        ends = [labels_of(node)[0] for node in self.nodes]
        return Counter(f"(:{ends[edge.source]})-[:{edge.type}]->(:{ends[edge.target]})" for edge in self.edges)


async def read_source_table(tool: SqlTool, table: TableInfo, origin: str) -> SourceTable:
    """Read all rows of a table.

    Raises SetupError if there are more than ``MOST_ROWS`` or 1 GB, ToolError if they cannot be read.
    """
    rows = await tool.fetch(f"SELECT * FROM {tool.quoted(table.name)}", MOST_ROWS, trusted=True)
    if rows.truncated:
        raise SetupError(f"{table.name} is too large to be loaded: at most {MOST_ROWS:,} rows and 1 GB are read.")
    return SourceTable(table.name, origin, tuple(rows.columns), tuple(rows.rows))


def node_key(value: Value) -> str:
    """Return an id as text, equal for 7, 7.0 and '7'.

    >>> node_key(7), node_key(7.0), node_key(" a7 ")
    ('7', '7', 'a7')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


ENDS = (
    ("source", "target"),
    ("start_id", "end_id"),
    ("source_id", "target_id"),
    ("from", "to"),
    ("from_id", "to_id"),
    ("src", "dst"),
    ("subject", "object"),
)
IDS = ("id", "node_id", "nodeid")
LABELS = ("label", "labels")
TYPES = ("type", "relationship", "relation", "label")
END_LABELS = ("source_label", "target_label")
MOST_KINDS = 50
SHOWN = 3
Places: TypeAlias = dict[str, list[int]]
"""Where the nodes of an id stand."""


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Column names that a person chooses; '' means the usual names. ``label`` or ``type`` may be "none"."""

    id: str = ""
    source: str = ""
    target: str = ""
    label: str = ""
    type: str = ""


def draft_graph_of_files(tables: Sequence[SourceTable], names: ColumnChoice = ColumnChoice()) -> GraphDraft:
    """Build a graph of tables from files.

    Raises SetupError if a named column is missing, no table holds nodes, or an id is of two nodes with one label.
    """
    for option, name in asdict(names).items():
        if name not in ("", "none") and not any(name in table.columns for table in tables):
            raise SetupError(f"No file has a column {name}, which --{option} names.")
    ends = [find_end_columns(table, names) for table in tables]
    draft = GraphDraft()
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


def find_end_columns(table: SourceTable, names: ColumnChoice) -> tuple[int, int] | None:
    """Return the positions of the source and target columns; None if the table holds nodes."""
    if names.source or names.target:
        pair = (names.source or names.target, names.target or names.source)
        if pair[0] in table.columns and pair[1] in table.columns and pair[0] != pair[1]:
            return table.columns.index(pair[0]), table.columns.index(pair[1])
    words = [header_word(column) for column in table.columns]
    return next(
        ((words.index(source), words.index(target)) for source, target in ENDS if {source, target} <= set(words)), None
    )


def header_word(column: str) -> str:
    """Return the meaning of a column by its header, such as "id".

    >>> header_word("Source"), header_word("personId:ID(Person)"), header_word(":START_ID")
    ('source', 'id', 'start_id')
    """
    return (column.rpartition(":")[2] or column).partition("(")[0].strip().lower()


def node_property_names(columns: Sequence[str]) -> list[str]:
    """Return unique property names for the columns, without the hints of Neo4j's import.

    >>> node_property_names(["personId:ID(Person)", "name:string", ":ID", "age"])
    ['personId', 'name', 'id', 'age']
    """
    return unique_column_names([column.partition(":")[0].strip() or header_word(column) for column in columns])


def add_nodes(draft: GraphDraft, table: SourceTable, names: ColumnChoice, places: Places) -> None:
    at = find_id_column(table, names)
    kind = find_kind_column(table, LABELS, names.label)
    properties = node_property_names(table.columns)
    twice: list[str] = []
    lost = 0
    for row in table.rows:
        if row[at] is None:
            lost += 1
            continue
        key, stated = node_key(row[at]), row[kind] if kind is not None else None
        # Neo4j's import writes several labels with ; between them.
        labels = tuple(filter(None, str(stated or "").split(";"))) or (table.name,)
        others = places.setdefault(key, [])
        if any(labels_of(draft.nodes[other])[0] == labels[0] for other in others):
            twice.append(key)
        others.append(len(draft.nodes))
        draft.nodes.append(GraphNode(labels, properties_without(properties, row, {kind})))
    if twice:
        raise SetupError(
            f"{table.origin}: the id {twice[0]!r} (column {table.columns[at]}) is of two nodes with one label "
            f"({len(twice):,} such): no edge could tell them apart. Name another column by --id."
        )
    label = table.name if kind is None else f"by the column {table.columns[kind]}"
    draft.notes.append(f"{table.origin}: nodes; label {label}; id by the column {table.columns[at]}")
    if lost:
        draft.lost.append(f"{table.origin}: {format_count(lost, 'node')} without an id")


def properties_without(names: Sequence[str], row: Sequence[Value], without: Collection[int | None]) -> dict[str, Value]:
    """Return the non-empty values of a row by name, except at these positions."""
    return {
        name: value
        for at, (name, value) in enumerate(zip(names, row, strict=True))
        if value is not None and at not in without
    }


def find_id_column(table: SourceTable, names: ColumnChoice) -> int:
    """Return the position of the node ids. It is a column named for ids, else the first if its values are unique."""
    if names.id in table.columns:
        return table.columns.index(names.id)
    words = [header_word(column) for column in table.columns]
    for name in (*IDS, f"{table.name.lower()}_id"):
        if name in words:
            return words.index(name)
    first = [row[0] for row in table.rows]
    if None in first or len(set(map(node_key, first))) < len(first):
        raise SetupError(
            f"{table.origin} has neither an id nor a source and a target; it has {', '.join(table.columns)}. "
            "Name columns by --id, or by --source and --target."
        )
    return 0


def find_kind_column(table: SourceTable, usual: Sequence[str], name: str) -> int | None:
    """Return the position of labels or types; None if no column holds them.

    A column with another value in nearly every row is a name for people instead.
    """
    if name:
        return table.columns.index(name) if name in table.columns else None
    words = [header_word(column) for column in table.columns]
    for at in (words.index(word) for word in usual if word in words):
        values = {row[at] for row in table.rows}
        # Headers of Neo4j's import, :LABEL and :TYPE, leave no doubt.
        if table.columns[at].startswith(":") or len(values) <= max(2, min(MOST_KINDS, len(table.rows) - 1)):
            return at
    return None


def add_edges(
    draft: GraphDraft, table: SourceTable, ends: tuple[int, int], names: ColumnChoice, places: Places
) -> None:
    kind = find_kind_column(table, TYPES, names.type)
    words = [header_word(column) for column in table.columns]
    labels = [words.index(word) if word in words else None for word in END_LABELS]
    without = {*ends, *labels, kind}
    properties = node_property_names(table.columns)
    lost: list[str] = []
    for row in table.rows:
        both = [
            find_node(draft, places, row[end], row[label] if label is not None else None, table.origin)
            for end, label in zip(ends, labels, strict=True)
        ]
        source, target = both
        if source is None or target is None:
            at = ends[both.index(None)]
            lost.append("none" if row[at] is None else node_key(row[at]))
            continue
        name = row[kind] if kind is not None else None
        draft.edges.append(
            GraphEdge(str(name or table.name), source, target, properties_without(properties, row, without))
        )
    label = table.name if kind is None else f"by the column {table.columns[kind]}"
    arrow = f"{table.columns[ends[0]]} -> {table.columns[ends[1]]}"
    draft.notes.append(f"{table.origin}: relationships {arrow}; type {label}")
    if lost:
        some = ", ".join(dict.fromkeys(lost[:SHOWN]))
        draft.lost.append(f"{table.origin}: {format_count(len(lost), 'relationship')} to no node (such as id {some})")


def find_node(draft: GraphDraft, places: Places, value: Value, label: Value, origin: str) -> int | None:
    """Return the position of the node with an id, None if there is none. Raises SetupError if there are two."""
    nodes = places.get(node_key(value), []) if value is not None else []
    if label is not None:
        nodes = [node for node in nodes if str(label) in labels_of(draft.nodes[node])]
    if len(nodes) > 1:
        several = " and of a ".join(labels_of(draft.nodes[node])[0] for node in nodes[:SHOWN])
        raise SetupError(
            f"{origin}: the id {value} is of a {several}. Say which by the columns source_label and target_label."
        )
    return nodes[0] if nodes else None


ENDING = re.compile(r"(?<=[a-z0-9])(?:[ _-]?(?:id|ID|Id|key|no))$|(?<=[A-Z])_?(?:ID|KEY|NO)$")


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key of one or more columns."""

    columns: tuple[str, ...]
    table: str
    """The referenced table."""
    keys: tuple[str, ...]
    """Its referenced columns, in the order of ``columns``."""


def draft_graph_of_database(tables: Sequence[TableInfo], rows: Mapping[str, SourceTable]) -> GraphDraft:
    """Build a graph from the rows and foreign keys of a database. rows: of each table, by its name."""
    by_name = {table.name.lower(): table for table in tables}
    guess = not any(column.references for table in tables for column in table.columns)
    links = {table.name: tuple(find_foreign_keys(table, by_name, guess)) for table in tables}
    targets = {link.table for some in links.values() for link in some}
    # A join table that others refer to has to be a node.
    joins = {table.name for table in tables if is_join_table(table, links[table.name]) and table.name not in targets}
    # A table is labelled by its name without the schema, unless another table has the same name.
    names = Counter(table.bare.lower() for table in tables)
    labels = {table.name: table.bare if names[table.bare.lower()] == 1 else table.name for table in tables}
    draft = GraphDraft()
    first: dict[str, int] = {}
    for table in tables:
        if table.name not in joins:
            first[table.name] = len(draft.nodes)
            # A relationship replaces these columns, so that nodes need not have them.
            # A guess may be wrong, so its columns stay as properties.
            hidden = {column for link in links[table.name] for column in link.columns} if not guess else set()
            hidden -= {column.name for column in table.key_columns}
            draft.nodes += [
                GraphNode(labels[table.name], properties_of_row(rows[table.name], row, hidden))
                for row in rows[table.name].rows
            ]
    ends = NodeFinder(rows, first)
    for table in tables:
        add = add_join if table.name in joins else add_links
        add(draft, rows[table.name], links[table.name], ends, labels)
    if guess and draft.edges:
        draft.notes.append("The database declares no foreign key: these are guessed from the values of columns.")
    return draft


def find_foreign_keys(table: TableInfo, tables: Mapping[str, TableInfo], guess: bool) -> Iterator[ForeignKey]:
    """Yield the foreign keys of a table.

    Columns that together refer to a key of several columns are one foreign key.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for column in table.columns:
        name, _, key = (column.joins if guess else column.references).rpartition(".")
        if target := tables.get(name.lower()):
            # As its table spells it; its primary key if the foreign key names none.
            primary, names = target.key_columns, {known.name.lower(): known.name for known in target.columns}
            referenced = names.get(key.lower()) or (primary[0].name if len(primary) == 1 else key)
            groups.setdefault(target.name, []).append((column.name, referenced))
    for name, pairs in groups.items():
        keys = [key for _, key in pairs]
        # Two columns that refer to the same key, such as home and away team, are two foreign keys.
        if len(pairs) > 1 and len(set(keys)) == len(keys):
            yield ForeignKey(tuple(column for column, _ in pairs), name, tuple(keys))
        else:
            yield from (ForeignKey((column,), name, (key,)) for column, key in pairs)


def is_join_table(table: TableInfo, links: Sequence[ForeignKey]) -> bool:
    """Return whether a table has two foreign keys, and no primary key apart from their columns."""
    return len(links) == 2 and {column.name for column in table.key_columns} <= {*links[0].columns, *links[1].columns}


def properties_of_row(rows: SourceTable, row: Sequence[Value], hidden: set[str]) -> dict[str, Value]:
    pairs = zip(rows.columns, row, strict=True)
    return {name: value for name, value in pairs if value is not None and name not in hidden}


class NodeFinder:
    """An index that finds the nodes that foreign keys refer to."""

    def __init__(self, rows: Mapping[str, SourceTable], first: Mapping[str, int]) -> None:
        self.rows, self.first = rows, first
        """The rows of each table, and the position of the first of its nodes."""
        self.places: dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], int]] = {}

    def find_nodes(self, rows: SourceTable, link: ForeignKey) -> Iterator[tuple[bool, int | None]]:
        """Yield for each row whether it has the key, and the position of the node that it refers to, None if none."""
        if (link.table, link.keys) not in self.places:
            keys = read_row_keys(self.rows[link.table], link.keys)
            first = self.first[link.table]
            # The nodes of a table stand in the order of its rows.
            self.places[link.table, link.keys] = {key: first + at for at, key in enumerate(keys) if key is not None}
        index = self.places[link.table, link.keys]
        for key in read_row_keys(rows, link.columns):
            yield key is not None, index.get(key) if key is not None else None


def read_row_keys(rows: SourceTable, columns: Sequence[str]) -> Iterator[tuple[str, ...] | None]:
    """Yield the key of each row in these columns, None if one of its values is missing."""
    places = [rows.columns.index(column) for column in columns]
    for row in rows.rows:
        values = [row[at] for at in places]
        yield None if None in values else tuple(map(node_key, values))


def add_links(
    draft: GraphDraft, rows: SourceTable, links: Sequence[ForeignKey], finder: NodeFinder, labels: Mapping[str, str]
) -> None:
    """Add a relationship for each foreign key of each row."""
    for link in links:
        # It is called by its column without an ending such as _id; by several columns, as the table that they refer to.
        name = ENDING.sub("", link.columns[0]) if len(link.columns) == 1 else ""
        kind = upper_snake_case(name or labels[link.table])
        edges = []
        lost = 0
        for at, (has_key, node) in enumerate(finder.find_nodes(rows, link)):
            if node is not None:
                edges.append(GraphEdge(kind, finder.first[rows.name] + at, node))
            lost += has_key and node is None
        what = f"{', '.join(link.columns)}: (:{labels[rows.name]})-[:{kind}]->(:{labels[link.table]})"
        note_relationships(draft, rows, what, edges, lost)


def add_join(
    draft: GraphDraft, rows: SourceTable, links: Sequence[ForeignKey], finder: NodeFinder, labels: Mapping[str, str]
) -> None:
    """Add a relationship for each row of a join table."""
    source, target = links
    kind = upper_snake_case(labels[rows.name])
    hidden = {*source.columns, *target.columns}
    edges = []
    ends = zip(finder.find_nodes(rows, source), finder.find_nodes(rows, target), strict=True)
    for row, ((_, start), (_, end)) in zip(rows.rows, ends, strict=True):
        if start is not None and end is not None:
            edges.append(GraphEdge(kind, start, end, properties_of_row(rows, row, hidden)))
    what = f"its rows: (:{labels[source.table]})-[:{kind}]->(:{labels[target.table]})"
    note_relationships(draft, rows, what, edges, len(rows.rows) - len(edges))


def note_relationships(draft: GraphDraft, rows: SourceTable, what: str, edges: Sequence[GraphEdge], lost: int) -> None:
    draft.edges += edges
    draft.notes.append(f"{rows.name}, {what}, {len(edges):,}")
    if lost:
        draft.lost.append(f"{rows.name}: {format_count(lost, 'relationship')} to no node ({what})")


def upper_snake_case(name: str) -> str:
    """Convert a name to upper case with underscores between its words.

    >>> upper_snake_case("homeNode"), upper_snake_case("order lines")
    ('HOME_NODE', 'ORDER_LINES')
    """
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).strip("_").upper() or "REFERS_TO"
