"""A graph server over Bolt (Neo4j, or one that speaks its protocol): READ access, rolled back, with a time limit.

Not every server enforces the access mode or the time limit. The guard and the kill of the worker do not depend on it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox import cypher_guard, graph_values
from decisor.tools.databases.sandbox.cypher_restricting import Rewritten, rewritten
from decisor.tools.databases.sandbox.cypher_tokens import quoted, tokens
from decisor.tools.databases.sandbox.cypher_within import undone, within
from decisor.tools.databases.sandbox.engine import Caps, ConnectionLost, Engine
from decisor.tools.databases.sandbox.graph_policy import (
    NO_RULES,
    GraphRules,
    check_statement,
    condition_of,
    rules_of,
    wrong,
)
from decisor.tools.databases.sandbox.urls import options
from decisor.tools.databases.sandbox.values import table
from decisor.types import Table, Value

if TYPE_CHECKING:
    import neo4j

CONNECT_SECONDS = 10.0
CANCEL_SECONDS = 3.0
OPEN_SECONDS = 60.0
MOST_VALUES = 100_000
"""Of one masked property: their tokens go with each statement that reads it."""
AROUND = re.compile(r"\s*\(line \d+, column .*", re.S)
"""The place in the statement, as the server quotes it."""
OPTIONS = frozenset({"label"})
END = """SHOW TRANSACTIONS YIELD transactionId AS id, metaData WHERE metaData.decisor = $mark
TERMINATE TRANSACTIONS id YIELD message RETURN message"""


@dataclass(eq=False)
class Bolt:
    """``database``: None is the server's own default. ``label``: where it is not '', the nodes of this label are all
    that there is. ``mark``: stands on every transaction, to find it again. ``rules``: what is not for its reader."""

    url: str
    driver: neo4j.Driver
    database: str | None
    deny: frozenset[str] = frozenset()
    label: str = ""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    rules: GraphRules = field(default_factory=GraphRules)

    def check(self, statement: str) -> str:
        checked = cypher_guard.check(statement, self.deny)
        if self.rules:
            check_statement(tokens(statement))
            rewritten(checked, self.rules, self.parameter)
        return checked

    @property
    def parameter(self) -> str:
        """The name of what holds the tokens, which nobody guesses."""
        return f"decisor_{self.mark}"

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        def read(result: neo4j.Result, new: Rewritten) -> Table:
            columns = [self.plain(new.plain(name)) for name in list(result.keys())]
            return table(columns, rows(result, self.label, self.rules), caps)

        return self.answer(statement, parameters, caps, read)

    def plan(self, statement: str, caps: Caps) -> Table:
        def read(result: neo4j.Result, new: Rewritten) -> Table:
            return table(["operator", "rows"], operators(result.consume().plan), caps)

        return self.answer(statement, {}, caps, read, "EXPLAIN ")

    def answer(
        self, statement: str, parameters: Mapping[str, Value], caps: Caps,
        read: Callable[[neo4j.Result, Rewritten], Table], prefix: str = "",
    ) -> Table:  # fmt: skip
        import neo4j
        from neo4j._exceptions import BoltError
        from neo4j.exceptions import DriverError, Neo4jError

        new = rewritten(statement, self.rules, self.parameter) if self.rules else Rewritten(statement)
        statement = within(new.text, self.label) if self.label else new.text
        values = {**parameters, self.parameter: self.rules.tokens} if new.tokens else dict(parameters)
        try:
            with (
                self.driver.session(database=self.database, default_access_mode=neo4j.READ_ACCESS) as session,
                session.begin_transaction(timeout=caps.seconds, metadata={"decisor": self.mark}) as transaction,
            ):
                result = transaction.run(prefix + statement, values)
                try:
                    return read(result, new)
                finally:
                    transaction.rollback()
        except Neo4jError as error:
            raise ToolError(new.plain(self.plain(self.complaint(error)))) from error
        except (DriverError, BoltError, OSError, ValueError, LookupError, struct.error) as error:
            with contextlib.suppress(Exception):
                self.driver.close()
            self.driver, _ = driver_of(self.url)
            raise ConnectionLost(f"The connection broke off: {' '.join(str(error).split())}") from error

    def plain(self, text: str) -> str:
        """What the server says, in the words of the statement as it was."""
        return undone(text, self.label) if self.label else text

    def complaint(self, error: neo4j.exceptions.Neo4jError) -> str:
        """What the server says; where something is not for the reader, of the statement alone: what it says of values
        may quote them."""
        text = error.message or str(error)
        if not self.rules:
            return text
        if not (error.code or "").startswith("Neo.ClientError.Statement.Syntax"):
            return f"It failed as it ran ({(error.code or '').rpartition('.')[2]})."
        return AROUND.sub("", text)

    def close(self) -> None:
        self.driver.close()

    def cancel(self) -> None:
        other, _ = driver_of(self.url, CANCEL_SECONDS)
        with other, other.session(database=self.database) as session:
            session.run(END, mark=self.mark).consume()


def operators(plan: Mapping[str, Any] | None) -> Iterator[list[object]]:
    """None of a server that tells no plan."""
    if plan is not None:
        yield [str(plan["operatorType"]), plan.get("args", {}).get("EstimatedRows")]
        for one in plan.get("children", ()):
            yield from operators(one)


def rows(result: neo4j.Result, label: str = "", rules: GraphRules = NO_RULES) -> Iterator[list[object]]:
    for record in result:
        yield [plain(value, label, rules) for value in record.values()]


def plain(value: object, label: str = "", rules: GraphRules = NO_RULES) -> object:
    """Nodes (without ``label``), relationships, paths and dates of the driver as plain values."""
    from neo4j.graph import Node, Path, Relationship
    from neo4j.spatial import Point

    match value:
        case Node():
            properties = plain(rules.visible(value.labels, dict(value.items())))
            return graph_values.node(sorted(value.labels - {label}), cast("Mapping[str, object]", properties))
        case Relationship():
            properties = plain(rules.visible({value.type}, dict(value.items())))
            return graph_values.relationship(value.type, cast("Mapping[str, object]", properties))
        case Point():  # a tuple, which would be a list of numbers
            axes = "".join(f", {axis}: {number!r}" for axis, number in zip("xyz", value, strict=False))
            return f"point({{srid: {value.srid}{axes}}})"
        case Path():
            nodes = (plain(node, label, rules) for node in value.nodes)
            return graph_values.path(nodes, (plain(link, label, rules) for link in value.relationships))
        case dict():
            return {key: plain(item, label, rules) for key, item in value.items()}
        case list():
            return [plain(item, label, rules) for item in value]
        case _:
            return value.iso_format() if hasattr(value, "iso_format") else value


def driver_of(url: str, seconds: float = CONNECT_SECONDS) -> tuple[neo4j.Driver, str | None]:
    """A driver, and the database that the path of the URL names: ``bolt://user:password@host:7687/database``, with
    ``?label=LABEL`` where the graph is the nodes of a label."""
    import neo4j

    options(url, OPTIONS)
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or "127.0.0.1"
    address = f"{parts.scheme}://{host}:{parts.port or 7687}"
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    driver = neo4j.GraphDatabase.driver(
        address,
        auth=auth,
        connection_timeout=seconds,
        max_connection_pool_size=1,
        notifications_min_severity="OFF",
        telemetry_disabled=True,
        user_agent="decisor",
    )
    return driver, parts.path.strip("/") or None


def connect(url: str, caps: Caps) -> Bolt:
    """Raises SetupError where the server does not answer or does not let us in; the password is not in it."""
    driver, database = driver_of(url)
    try:
        with driver.session(database=database) as session:
            session.run("RETURN 1").consume()
    except Exception as error:
        driver.close()
        raise SetupError(f"The graph server at {url.split('@')[-1]} cannot be used: {error}") from error
    graph = Bolt(url, driver, database, frozenset(caps.deny), options(url, OPTIONS).get("label", ""))
    if caps.policy:
        try:
            graph.rules = read_rules(graph, caps)
        except ToolError as error:
            driver.close()
            raise SetupError(f"The rows and masks of this graph cannot be kept to: {error}") from error
    return graph


def read_rules(graph: Bolt, caps: Caps) -> GraphRules:
    """What the policy says of this graph, with the token of each masked value as it is now.

    Raises:
        SetupError: the graph has not what the policy names, or too many values.
        ToolError: it cannot be read.
    """
    wide = replace(caps, rows=MOST_VALUES + 1, bytes=10**9, cell_chars=10**6, seconds=OPEN_SECONDS)

    def lists(query: str) -> list[str]:
        return [str(name) for (names,) in graph.run(query, {}, wide).rows if isinstance(names, list) for name in names]

    names = caps.policy.tables()
    labels = set(lists("MATCH (n) RETURN DISTINCT labels(n) AS l"))
    types = set(lists("MATCH ()-[r]->() RETURN DISTINCT [type(r)] AS l"))
    places = {one: f"(n:{quoted(one)})" if one in labels else f"()-[n:{quoted(one)}]->()" for one in labels | types}
    properties = {one: lists(f"MATCH {place} RETURN DISTINCT keys(n) AS l")
                  for one, place in places.items() if one.lower() in names}  # fmt: skip
    rules = rules_of(caps.policy, labels, properties)
    for label, conditions in rules.rows.items():
        for one in conditions:
            try:
                graph.run(f"EXPLAIN MATCH (n:{quoted(label)}) WHERE {condition_of(one, 'n')} RETURN 1", {}, caps)
            except ToolError as error:
                raise wrong(one, str(error)) from error
    for home, masked in rules.masked.items():
        for name in masked:
            value = f"toStringOrNull(n.{quoted(name)})"
            table = graph.run(f"MATCH {places[home]} RETURN DISTINCT {value} AS v", {}, wide)
            if len(table.rows) > MOST_VALUES:
                raise SetupError(f"{home}.{name} has more than {MOST_VALUES:,} values: too many to mask in a graph.")
            for (text,) in table.rows:
                rules.token(text)
    return rules


ENGINE = Engine(
    name="bolt",
    title="Neo4j",
    schemes=("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"),
    form="cypher",
    connect=connect,
    server=True,
    probe="RETURN 1",
    extra="neo4j",
    plans=True,
)
