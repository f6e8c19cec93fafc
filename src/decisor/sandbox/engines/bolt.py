"""A graph server over Bolt (Neo4j, or one that speaks its protocol): READ access, rolled back, with a time limit.

Not every server enforces the access mode or the time limit. The guard and the kill of the worker do not depend on it.

A statement may be kept within the nodes of one label: a part of a graph, in a database that holds several. Each node
of a pattern gets the label, and ``labels(n)`` loses it again. Relationships between nodes of the label stay within it,
so paths of any length do. Procedures and SHOW tell of the whole database, and are refused.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from decisor.errors import SetupError, ToolError
from decisor.sandbox.cypher_guard import (
    CLAUSES,
    CLOSING,
    NOTHING,
    SUBQUERIES,
    CypherToken,
    check_cypher,
    cypher_refusal,
    is_call_bracket,
    join_cypher_tokens,
    quote_cypher_name,
    token_at,
    tokenize_cypher,
)
from decisor.sandbox.engine import Caps, ConnectionLost, Engine
from decisor.sandbox.engines import parse_url_options
from decisor.sandbox.wire import build_capped_table, node_value, path_value, relationship
from decisor.types import Table, Value

if TYPE_CHECKING:
    import neo4j


def restrict_to_label(statement: str, label: str) -> str:
    """Return the statement, restricted to the nodes of ``label``. Raises ToolError (refused).

    >>> restrict_to_label("MATCH (n:City {name: 'Oslo'})--() WHERE n.pop - (1) > 2 RETURN n", "w1")
    "MATCH (n:City:`w1` {name: 'Oslo'})--(:`w1`) WHERE n.pop - (1) > 2 RETURN n"
    >>> restrict_to_label("MATCH (n:City|Town) RETURN labels(n)[0]", "w1")
    "MATCH (n:(City|Town)&`w1`) RETURN [decisor_label IN labels(n) WHERE decisor_label <> 'w1'][0]"
    """
    return join_cypher_tokens(_LabelWalk(tokenize_cypher(statement), label).whole())


@dataclass
class _LabelWalk:
    """A walk through a statement that adds a label to its nodes."""

    words: tuple[CypherToken, ...]
    label: str
    closes: dict[int, int] = field(default_factory=dict)
    """Position of each closing bracket, by that of its opening one."""
    opens: dict[int, int] = field(default_factory=dict)
    """Position of each opening bracket, by that of its closing one."""
    matching: list[bool] = field(default_factory=lambda: [False])
    """For each open bracket, whether a node of a pattern may stand in it alone."""
    more: dict[int, list[CypherToken]] = field(default_factory=dict)
    """Tokens to insert, by the position that they go before."""

    def near(self, at: int) -> CypherToken:
        return token_at(self.words, at)

    def whole(self) -> tuple[CypherToken, ...]:
        self.pair()
        for at, token in enumerate(self.words):
            self.token(at, token)
        result: list[CypherToken] = []
        for at, token in enumerate((*self.words, NOTHING)):
            result += self.more.get(at, [])
            result.append(token)
        return tuple(result)

    def pair(self) -> None:
        stack: list[int] = []
        for at, token in enumerate(self.words):
            if token.kind == "symbol" and token.text in CLOSING:
                stack.append(at)
            elif token.kind == "symbol" and token.text in CLOSING.values() and stack:
                self.closes[stack[-1]] = at
                self.opens[at] = stack.pop()

    def token(self, at: int, token: CypherToken) -> None:
        if token.kind == "symbol" and token.text in CLOSING:
            self.open(at, token.text)
        elif token.kind == "symbol" and token.text in CLOSING.values():
            if len(self.matching) > 1:
                self.matching.pop()
        elif token.kind == "word" and self.near(at - 1).text not in (".", ":", "&", "|"):
            self.word(at, token.key)

    def word(self, at: int, key: str) -> None:
        after = self.near(at + 1).text
        if key == "MATCH":
            self.matching[-1] = True
        elif key in CLAUSES:
            self.matching[-1] = False
        # A procedure reads the whole database, whatever label the nodes of the statement have.
        if key == "SHOW" or (key == "CALL" and after not in ("(", "{")):
            raise cypher_refusal("this is a part of a database: no procedure and no SHOW, which tell of all of it")
        # The label is ours, not the data's: labels(n) is written as a list without it.
        if key == "LABELS" and after == "(" and at + 1 in self.closes:
            spaced = self.words[at].spaced
            self.insert(at, "[decisor_label IN" + " " * (not spaced), spaced)
            text = "'" + self.label.replace("\\", "\\\\").replace("'", "\\'") + "'"
            self.insert(self.closes[at + 1] + 1, f" WHERE decisor_label <> {text}]")

    def open(self, at: int, bracket: str) -> None:
        if bracket == "(" and self.is_node(at):
            self.node(at)
            self.matching.append(False)
        elif bracket == "{":
            before = self.near(at - 1)
            self.matching.append(before.kind == "word" and before.key in SUBQUERIES and before.key != "CALL")
        else:
            self.matching.append(bracket == "(" and self.matching[-1] and not is_call_bracket(self.words, at))

    def is_node(self, at: int) -> bool:
        """Return whether a bracket has the shape of a node, in a pattern of MATCH or beside an arrow."""
        end = self.closes.get(at)
        if end is None or is_call_bracket(self.words, at) or self.after_name(at) is None:
            return False
        return self.matching[-1] or self.arrow_after(end) or self.arrow_before(at)

    def after_name(self, at: int) -> int | None:
        """Return the position after the variable of a node, None if the bracket holds no node."""
        first = self.near(at + 1)
        place = at + 2 if first.kind in ("word", "name") and first.key != "WHERE" else at + 1
        after = self.near(place)
        fits = after.text in (")", ":", "{") or after.kind == "parameter" or after.key in ("WHERE", "IS")
        return place if fits else None

    def arrow_after(self, end: int) -> bool:
        first, second, third = (self.near(end + step).text for step in (1, 2, 3))
        return (first == "-" and second in ("-", "[")) or (first == "<" and second == "-" and third in ("-", "["))

    def arrow_before(self, at: int) -> bool:
        first, second = self.near(at - 1).text, at - 2
        if first == ">" and self.near(second).text == "-":
            return True
        # -[...]- before the bracket, found by the opening one of its pair.
        link = self.near(second).text == "]" and self.near(self.opens.get(second, 0) - 1).text == "-"
        return first == "-" and (self.near(second).text == "-" or link)

    def node(self, at: int) -> None:
        place = self.after_name(at)
        assert place is not None
        named, label = self.near(place), quote_cypher_name(self.label)
        if named.text != ":" and named.key != "IS":
            self.insert(place, f":{label}")
            return
        rest = self.words[place + 1 : self.closes[at]]
        ends = (
            step
            for step, word in enumerate(rest)
            if word.text == "{" or word.kind == "parameter" or word.key == "WHERE"
        )
        end = place + 1 + next(ends, len(rest))
        # Names joined by colons take one more; an expression with | or ! is bracketed, as & binds tighter than |.
        if named.text == ":" and all(
            word.kind in ("word", "name") or word.text == ":" for word in self.words[place + 1 : end]
        ):
            self.insert(end, f":{label}")
        else:
            self.insert(place + 1, "(", spaced=self.near(place + 1).spaced)
            self.insert(end, f")&{label}")

    def insert(self, at: int, text: str, spaced: bool = False) -> None:
        self.more.setdefault(at, []).append(CypherToken("symbol", text, text, spaced))


def remove_label(text: str, label: str) -> str:
    """Return a column name or complaint as it would be without the added label.

    >>> remove_label(restrict_to_label("MATCH (n:City) RETURN labels(n)", "w1"), "w1")
    'MATCH (n:City) RETURN labels(n)'
    """
    name = re.escape(f"`{label}`")
    text = re.sub(r"\[decisor_label IN (.*?) WHERE decisor_label <> '.*?'\]", r"\1", text)
    return re.sub(rf"\(([^()]*)\)&{name}", r"\1", re.sub(f":{name}", "", text))


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
        return check_cypher(statement, self.deny)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        def read(result: neo4j.Result) -> Table:
            rows = ([bolt_value(value, self.label) for value in record.values()] for record in result)
            return build_capped_table([self.plain(name) for name in list(result.keys())], rows, caps)

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


def bolt_value(value: object, label: str = "") -> object:
    """Convert nodes (without ``label``), relationships, paths and dates of the driver to plain values."""
    from neo4j.graph import Node, Path, Relationship
    from neo4j.spatial import Point

    match value:
        case Node():
            properties = bolt_value(dict(value.items()))
            return node_value(sorted(value.labels - {label}), cast("Mapping[str, object]", properties))
        case Relationship():
            properties = bolt_value(dict(value.items()))
            return relationship(value.type, cast("Mapping[str, object]", properties))
        case Point():  # a tuple, which would be a list of numbers
            axes = "".join(f", {axis}: {number!r}" for axis, number in zip("xyz", value, strict=False))
            return f"point({{srid: {value.srid}{axes}}})"
        case Path():
            nodes = (bolt_value(node, label) for node in value.nodes)
            return path_value(nodes, (bolt_value(link, label) for link in value.relationships))
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
