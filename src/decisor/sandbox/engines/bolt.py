"""A graph server over Bolt (Neo4j, or one that speaks its protocol): READ access, rolled back, with a time limit.

Not every server enforces the access mode or the time limit. The guard and the kill of the worker do not depend on it.
"""

from __future__ import annotations

import contextlib
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from decisor.errors import SetupError, ToolError
from decisor.sandbox import cypher_guard
from decisor.sandbox import wire as graph_values
from decisor.sandbox.cypher_scope import remove_label, restrict_to_label
from decisor.sandbox.engine import Caps, ConnectionLost, Engine
from decisor.sandbox.engines import parse_url_options
from decisor.sandbox.wire import build_capped_table
from decisor.types import Table, Value

if TYPE_CHECKING:
    import neo4j

CONNECT_SECONDS = 10.0
CANCEL_SECONDS = 3.0
OPTIONS = frozenset({"label"})
END = """SHOW TRANSACTIONS YIELD transactionId AS id, metaData WHERE metaData.decisor = $mark
TERMINATE TRANSACTIONS id YIELD message RETURN message"""


@dataclass(eq=False)
class Bolt:
    """A graph database behind the Bolt protocol."""

    url: str
    driver: neo4j.Driver
    database: str | None
    """None means the server's default."""
    deny: frozenset[str] = frozenset()
    label: str = ""
    """If not '', the database consists of the nodes with this label."""
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    """Metadata of every transaction, by which ``cancel`` finds it."""

    def check(self, statement: str) -> str:
        return cypher_guard.check_cypher(statement, self.deny)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        def read(result: neo4j.Result) -> Table:
            return build_capped_table(
                [self.plain(name) for name in list(result.keys())], read_bolt_rows(result, self.label), caps
            )

        return self.answer(statement, parameters, caps, read)

    def plan(self, statement: str, caps: Caps) -> Table:
        def read(result: neo4j.Result) -> Table:
            return build_capped_table(["operator", "rows"], plan_operators(result.consume().plan), caps)

        return self.answer(statement, {}, caps, read, "EXPLAIN ")

    def answer(
        self,
        statement: str,
        parameters: Mapping[str, Value],
        caps: Caps,
        read: Callable[[neo4j.Result], Table],
        prefix: str = "",
    ) -> Table:
        import neo4j
        from neo4j._exceptions import BoltError
        from neo4j.exceptions import DriverError, Neo4jError

        statement = restrict_to_label(statement, self.label) if self.label else statement
        try:
            with (
                self.driver.session(database=self.database, default_access_mode=neo4j.READ_ACCESS) as session,
                session.begin_transaction(timeout=caps.seconds, metadata={"decisor": self.mark}) as transaction,
            ):
                result = transaction.run(prefix + statement, dict(parameters))
                try:
                    return read(result)
                finally:
                    # Nothing to keep, whatever a server made of the access mode.
                    transaction.rollback()
        except Neo4jError as error:
            raise ToolError(self.plain(error.message or str(error))) from error
        # A garbled reply makes the driver raise whatever its parser stumbled over.
        except (DriverError, BoltError, OSError, ValueError, LookupError, struct.error) as error:
            with contextlib.suppress(Exception):
                self.driver.close()
            self.driver, _ = open_bolt_driver(self.url)
            raise ConnectionLost(f"The connection broke off: {' '.join(str(error).split())}") from error

    def plain(self, text: str) -> str:
        """Return a message of the server in the words of the original statement."""
        return remove_label(text, self.label) if self.label else text

    def close(self) -> None:
        self.driver.close()

    def cancel(self) -> None:
        other, _ = open_bolt_driver(self.url, CANCEL_SECONDS)
        with other, other.session(database=self.database) as session:
            session.run(END, mark=self.mark).consume()


def plan_operators(plan: Mapping[str, Any] | None) -> Iterator[list[object]]:
    """Yield the name and estimated rows of each operator; nothing if the server tells no plan."""
    if plan is not None:
        yield [str(plan["operatorType"]), plan.get("args", {}).get("EstimatedRows")]
        for one in plan.get("children", ()):
            yield from plan_operators(one)


def read_bolt_rows(result: neo4j.Result, label: str = "") -> Iterator[list[object]]:
    for record in result:
        yield [bolt_value(value, label) for value in record.values()]


def bolt_value(value: object, label: str = "") -> object:
    """Convert nodes (without ``label``), relationships, paths and dates of the driver to plain values."""
    from neo4j.graph import Node, Path, Relationship
    from neo4j.spatial import Point

    match value:
        case Node():
            properties = bolt_value(dict(value.items()))
            return graph_values.node_value(sorted(value.labels - {label}), cast("Mapping[str, object]", properties))
        case Relationship():
            properties = bolt_value(dict(value.items()))
            return graph_values.relationship(value.type, cast("Mapping[str, object]", properties))
        case Point():  # a tuple, which would be a list of numbers
            axes = "".join(f", {axis}: {number!r}" for axis, number in zip("xyz", value, strict=False))
            return f"point({{srid: {value.srid}{axes}}})"
        case Path():
            nodes = (bolt_value(node, label) for node in value.nodes)
            return graph_values.path_value(nodes, (bolt_value(link, label) for link in value.relationships))
        case dict():
            return {key: bolt_value(item, label) for key, item in value.items()}
        case list():
            return [bolt_value(item, label) for item in value]
        case _:
            return value.iso_format() if hasattr(value, "iso_format") else value


def open_bolt_driver(url: str, seconds: float = CONNECT_SECONDS) -> tuple[neo4j.Driver, str | None]:
    """Open a driver, and return it with the database that the path of the URL names.

    The URL is ``bolt://user:password@host:7687/database``, with ``?label=LABEL`` if the graph is the nodes of a label.
    """
    import neo4j

    parse_url_options(url, OPTIONS)
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


def connect_bolt(url: str, caps: Caps) -> Bolt:
    """Open a graph on a Bolt server.

    Raises SetupError, without the password, if the server does not answer or refuses the account.
    """
    driver, database = open_bolt_driver(url)
    try:
        with driver.session(database=database) as session:
            session.run("RETURN 1").consume()
    except Exception as error:
        driver.close()
        raise SetupError(f"The graph server at {url.split('@')[-1]} cannot be used: {error}") from error
    return Bolt(url, driver, database, frozenset(caps.deny), parse_url_options(url, OPTIONS).get("label", ""))


ENGINE = Engine(
    name="bolt",
    title="Neo4j",
    schemes=("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"),
    form="cypher",
    connect=connect_bolt,
    server=True,
    probe="RETURN 1",
    extra="neo4j",
    plans=True,
)
