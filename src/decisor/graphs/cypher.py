"""The tool ``cypher``: a property graph behind the sandbox, for an LLM and for trusted loaders.

After a failed or empty query it names the labels, types and properties that the graph lacks, with close ones that it
has, relationships in the wrong direction, and the literals that no property holds.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from decisor.databases.combine import fetch_in_bulk, records_of_table
from decisor.databases.hints import (
    MAX_VALUES,
    ComparedLiteral,
    advise_after_failure,
    explain_empty_result,
    is_empty_result,
)
from decisor.databases.scan_limits import check_limits, check_scan
from decisor.databases.schema import TableInfo
from decisor.databases.schema_search import SchemaIndex, describe_tables, find_words, parse_lookup, parse_table_names
from decisor.errors import SetupError, ToolError
from decisor.graphs.schema import (
    GraphSchema,
    cypher_name,
    describe_graph_briefly,
    graph_language,
    read_graph_schema,
    tables_of_labels,
    tables_of_types,
)
from decisor.parsing.cleaning import strip_fence
from decisor.runtime.budget import MaxScan
from decisor.sandbox.cypher_guard import CypherToken, quote_cypher_name, tokenize_cypher
from decisor.sandbox.dialect import word_set as words_of
from decisor.sandbox.engine import NOT_ON_GRAPHS, Caps
from decisor.sandbox.engines import example_urls, parse_url
from decisor.sandbox.process import Audit, Worker, asker_of
from decisor.system.secrets import hide_password
from decisor.types import Observation, Table

NAMES = ("word", "name")
NODE = re.compile(r"\(\s*(?P<name>\w*)\s*(?::\s*`?(?P<label>\w+)`?)?")
END = r"\(\s*(?P<name{0}>\w*)\s*(?::\s*`?(?P<label{0}>\w+)`?)?[^()]*\)"
PATH = re.compile(
    rf"{END.format(1)}\s*(?P<left><)?-\[\s*\w*\s*:\s*`?(?P<kind>\w+)`?[^\]|*]*\]-(?P<right>>)?\s*(?={END.format(2)})"
)
NAME_PARTS = words_of("year month day hour minute second millisecond quarter week x y z latitude longitude")
"""What a date or a point has, which is no property of the graph."""


def suggest_graph_names(statement: str, schema: GraphSchema) -> str:
    """Name the labels, types and properties that the graph lacks, with close ones that it has.

    >>> suggest_graph_names("MATCH (n:Persn) RETURN n", GraphSchema({"Person": 2}))
    'There is no label or relationship type Persn. Did you mean Person?'
    """
    try:
        words = tokenize_cypher(statement)
    except ToolError:
        return ""
    names = {*schema.labels, *schema.types}
    complaints = []
    for name in label_names_in(words):
        if name not in names:
            lower = {known.lower(): known for known in names}
            near = difflib.get_close_matches(name.lower(), lower, 1, 0.6)
            hint = f"Did you mean {lower[near[0]]}?" if near else f"There are {', '.join(sorted(lower.values())[:20])}."
            complaints.append(f"There is no label or relationship type {name}. {hint}")
    property_names = {info.name for infos in schema.properties.values() for info in infos} | NAME_PARTS
    # Keys of maps are properties of the map and not of the graph.
    property_names |= {
        name_of_token(name) for name, after in itertools.pairwise(words) if after.text == ":" and name.kind in NAMES
    }
    for before, token, following in zip(words, words[1:], [*words[2:], None], strict=False):
        is_called = following is not None and following.text == "("
        name = name_of_token(token)
        if before.text == "." and token.kind in NAMES and not is_called and name not in property_names:
            complaints.append(_complain_of_property(name, words, schema))
    return " ".join(dict.fromkeys(complaints))


def _complain_of_property(name: str, words: Sequence[CypherToken], schema: GraphSchema) -> str:
    """Say that a property is missing, with a close one and the properties of the labels and types used."""
    used = [label for label in label_names_in(words) if label in schema.labels or label in schema.types]
    homes = [home for home in (*used, *(f"[{label}]" for label in used)) if schema.properties.get(home)]
    names_of = {home: [info.name for info in schema.properties[home]] for home in homes or schema.properties}
    lower = {known.lower(): known for names in names_of.values() for known in names}
    near = difflib.get_close_matches(name.lower(), lower, 1, 0.75)
    hint = f" Did you mean {lower[near[0]]}?" if near else ""
    lists = "; ".join(
        f"{pattern_of_home(home)} has {', '.join(map(cypher_name, names))}" for home, names in names_of.items()
    )
    return f"There is no property {name}.{hint} {lists}."


def find_wrong_directions(statement: str, schema: GraphSchema) -> str:
    """Name the relationships of a statement that no nodes of these labels have, and the existing ones.

    >>> schema = GraphSchema({"Shop": 2, "Town": 1}, {("Shop", "IN", "Town"): 2})
    >>> find_wrong_directions("MATCH (t:Town {x: 1})-[r:IN]->(s:Shop) RETURN s", schema)
    'There is no (:Town)-[:IN]->(:Shop); there is (:Shop)-[:IN]->(:Town).'
    """
    label_of = {match["name"]: match["label"] for match in NODE.finditer(statement) if match["label"] and match["name"]}
    complaints = []
    for match in PATH.finditer(statement):
        start, end = (match[f"label{at}"] or label_of.get(match[f"name{at}"] or "", "") for at in (1, 2))
        # A pattern without a direction, or with both, cannot have the wrong one.
        if bool(match["left"]) == bool(match["right"]):
            continue
        link = (end, match["kind"], start) if match["left"] else (start, match["kind"], end)
        ways = [known for known in schema.links if known[1] == match["kind"]]
        if start and end and ways and link not in schema.links:
            complaints.append(f"There is no {show_link(link)}; there is {', '.join(map(show_link, ways[:4]))}.")
    return " ".join(dict.fromkeys(complaints))


def show_link(link: tuple[str, str, str]) -> str:
    return f"(:{cypher_name(link[0])})-[:{cypher_name(link[1])}]->(:{cypher_name(link[2])})"


def pattern_of_home(home: str) -> str:
    """Format a label, or a type in brackets, as a pattern has it.

    >>> pattern_of_home("City"), pattern_of_home("[LIES_IN]")
    ('(:City)', '[:LIES_IN]')
    """
    return f"[:{cypher_name(home[1:-1])}]" if home.startswith("[") else f"(:{cypher_name(home)})"


def label_names_in(words: Sequence[CypherToken]) -> list[str]:
    """Return the names after a colon outside maps, and the names joined to them by ``|`` or ``&``.

    >>> label_names_in(tokenize_cypher("MATCH (a:A {x: b})-[:C|D]->() RETURN [e IN f | g]"))
    ['A', 'C', 'D']
    """
    brackets, names, chain = [""], list[str](), False
    for before, token in itertools.pairwise(words):
        if before.text in ("(", "[", "{"):
            brackets.append(before.text)
        elif before.text in (")", "]", "}") and len(brackets) > 1:
            brackets.pop()
        after_colon = before.text == ":" and brackets[-1] != "{"
        if token.kind in NAMES and (after_colon or (before.text in ("|", "&") and chain)):
            names.append(name_of_token(token))
            chain = True
        elif token.text not in ("|", "&", ":"):
            chain = False
    return names


def name_of_token(token: CypherToken) -> str:
    return token.text if token.kind == "word" else token.key


PARTS = ("CONTAINS", "WITH")
"""The last words of the operators that compare with a part."""


def find_cypher_literals(statement: str, schema: GraphSchema) -> tuple[ComparedLiteral, ...]:
    """Return the literals that a statement compares with properties, each once.

    They come from ``{name: value}``, ``=``, IN, CONTAINS, STARTS WITH and ENDS WITH.
    """
    try:
        words = tokenize_cypher(statement)
    except ToolError:
        return ()
    labels = label_names_in(words)
    return tuple(
        dict.fromkeys(found for at in range(1, len(words)) for found in _cypher_literals_at(words, at, labels, schema))
    )


def labels_of_property(words: Sequence[CypherToken], at: int) -> list[str]:
    """Return the labels or types that own the property at position ``at``.

    They stand before its braces, or anywhere after the variable before its point.

    >>> words = tokenize_cypher("MATCH (a:A {x: 1})-[:R]->(b:B:C) WHERE b.y = 2")
    >>> labels_of_property(words, 6), labels_of_property(words, len(words) - 3)
    (['A'], ['B', 'C'])
    """
    if words[at - 1].text == ".":
        variable = words[at - 2].text
        starts = [i + 1 for i, token in enumerate(words[:-1]) if token.text == variable and words[i + 1].text == ":"]
        return label_names_in(words[starts[0] - 1 : starts[0] + 6]) if starts else []
    opening = next((i for i in range(at - 1, 0, -1) if words[i].text == "{"), 0)
    start = next((i for i in range(opening, -1, -1) if words[i].text in "(["), 0)
    return label_names_in(words[start:opening])


def _cypher_literals_at(
    words: Sequence[CypherToken], at: int, labels: Sequence[str], schema: GraphSchema
) -> Iterator[ComparedLiteral]:
    token, before = words[at], words[at - 1]
    if token.kind not in ("string", "number"):
        return
    back = at - 1
    # After STARTS WITH, ENDS WITH and IN [, the operator stands one word further back.
    if before.key == "WITH" or (before.key == "[" and words[back - 1].key == "IN"):
        back -= 1
    operator = words[back]
    if operator.key not in (":", "=", "IN", "STARTS", "ENDS", "CONTAINS") or back < 1:
        return
    name = name_of_token(words[back - 1])
    part = before.key in PARTS
    homes = [home for home, infos in schema.properties.items() if any(info.name == name for info in infos)]
    owners = labels_of_property(words, back - 1)
    # Without a label in its pattern, a property is looked for wherever the graph has it.
    named = [home for home in homes if home.strip("[]") in (owners or labels)]
    for home in named or homes:
        kind = home.strip("[]")
        if home.startswith("["):
            pattern, place = f"()-[x:{quote_cypher_name(kind)}]->()", f"[:{cypher_name(kind)}].{name}"
        else:
            pattern, place = f"(x:{quote_cypher_name(kind)})", f"(:{cypher_name(kind)}).{name}"
        key = f"x.{quote_cypher_name(name)}"
        source = f"MATCH {pattern} WHERE {key} IS NOT NULL"
        if token.kind == "string":
            query = f"{source} RETURN DISTINCT {key} AS v LIMIT {MAX_VALUES}"
            yield ComparedLiteral(token.text[1:-1].replace("\\", ""), place, query, part)
        elif token.text.replace(".", "", 1).isdecimal():
            number = float(token.text)
            yield ComparedLiteral(number, place, f"{source} RETURN {key} AS v ORDER BY abs({key} - {number!r}) LIMIT 3")


@dataclass(eq=False)
class CypherTool:
    """A tool that queries a property graph in Cypher. Open it with ``await CypherTool.open(url)``."""

    worker: Worker
    schema: GraphSchema
    """The schema of the graph when it was opened."""
    name: str = "cypher"
    form: Literal["cypher"] = "cypher"
    question: str = ""
    max_scans: tuple[MaxScan, ...] = ()
    """Limits on the rows that one query may read; every one applies."""
    index: SchemaIndex = field(default_factory=lambda: SchemaIndex([]), repr=False)
    """Labels and relationship types as tables; if a label and a type share a name, the name means the label."""

    @classmethod
    async def open(
        cls,
        url: str,
        name: str = "cypher",
        caps: Caps = Caps(),
        deny: Sequence[str] = (),
        only: Sequence[str] = (),
        audit: Audit | None = None,
    ) -> CypherTool:
        """Open the graph at a URL and read its schema.

        Args:
            url: kglite:///PATH or bolt://USER:PASSWORD@HOST:PORT/DATABASE (or neo4j://, with +s for TLS).
            deny: labels and relationship types that may be neither read nor seen.
            only: the only ones that may be read, unless empty.
            audit: the file that notes each query.

        Raises:
            SetupError: if the URL names no graph, or it cannot be opened. No file is ever made.
        """
        engine, address = parse_url(url)
        if caps.policy:
            raise SetupError(NOT_ON_GRAPHS)
        caps = replace(caps, deny=(*caps.deny, *map(normalize_graph_label, deny)))
        worker = Worker(engine, address, caps, audit=audit, source=name)
        try:
            if worker.description.form != "cypher":
                raise SetupError(f"{hide_password(url)} names no graph. Give {example_urls('cypher')}.")
            await worker.start()
            schema = await read_graph_schema(worker)
            # Only the schema tells which names are not among these: the graph is opened again without them.
            if only:
                await worker.close()
                caps = replace(caps, deny=(*caps.deny, *labels_to_deny(only, schema)))
                worker = Worker(engine, address, caps, audit=audit, source=name)
                await worker.start()
                schema = await read_graph_schema(worker)
        # On cancellation too, or the worker process would stay.
        except BaseException as error:
            await worker.close()
            if isinstance(error, ToolError):
                raise SetupError(f"The graph cannot be read: {error}") from error
            raise
        return cls(worker, schema, name, index=SchemaIndex([*tables_of_types(schema), *tables_of_labels(schema)]))

    @property
    def is_restricted(self) -> bool:
        return self.worker.caps.is_restricted

    def examples(self) -> Sequence[str]:
        return [text for properties in self.schema.properties.values() for info in properties for text in info.examples]

    async def about(self, question: str) -> CypherTool:
        """Return the tool with a description for this question, or the same tool if the schema is short."""
        focused = replace(self, question=question)
        return self if focused.described == self.described else focused

    def limited(self, *limits: MaxScan) -> CypherTool:
        """Return a copy of the tool whose queries keep to these limits too.

        Raises SetupError if the engine does not report the rows that a query would read.
        """
        check_limits(self.worker.description, self.name, limits)
        return replace(self, max_scans=(*self.max_scans, *limits))

    def describe(self) -> str:
        return self.described

    @cached_property
    def described(self) -> str:
        """Description of the graph for the question. It is computed once, for a loop shows it with every call."""
        return describe_graph_briefly(self.schema, self.index, self.question)

    async def call(self, text: str) -> Observation:
        """Run one reading statement, or ``describe LABEL`` or ``find WORDS``.

        Raises ToolError, with close names if a name is misspelt.
        """
        statement = strip_fence(text)
        if (lookup := parse_lookup(statement)) is not None:
            language = graph_language(self.schema)
            if lookup.verb == "find":
                return await find_words(lookup.words, self.index, language, self._read, self.worker.caps, self.name)
            return describe_tables(parse_table_names(lookup.words, self.index.tables, language), self.index, language)
        try:
            await check_scan(self.worker, statement, self.max_scans)
            table = await self.worker.run(statement, by=asker_of(text))
        except ToolError as error:
            near = "" if error.refused else suggest_graph_names(statement, self.schema)
            raise ToolError(
                f"{error} {near}".strip() + advise_after_failure(str(error)), refused=error.refused, outage=error.outage
            ) from error
        records = records_of_table(table, self.name)
        # Beside rows too, for in Cypher a property that does not exist is NULL and no error.
        notes = [suggest_graph_names(statement, self.schema)]
        if is_empty_result(table):
            literals = find_cypher_literals(statement, self.schema)
            empty = await explain_empty_result(table, literals, self._read, self.worker.caps)
            notes = [empty, find_wrong_directions(statement, self.schema), *notes]
        total = None if table.truncated else len(records)
        return Observation(records, " ".join(filter(None, notes)), truncated=table.truncated, total=total)

    @cached_property
    def tables(self) -> Sequence[TableInfo]:
        """Labels of the graph as tables, with their properties and relationships."""
        return [table for table in self.index.tables if table.name in self.schema.labels]

    async def _read(self, query: str, caps: Caps) -> Table:
        await check_scan(self.worker, query, self.max_scans)
        return await self.worker.run(query, caps=caps)

    async def fetch(
        self, query: str, max_rows: int = 2_000_000, trusted: bool = False, max_bytes: int = 10**9
    ) -> Table:
        return await fetch_in_bulk(self.worker, query, max_rows, max_bytes, trusted)

    async def close(self) -> None:
        await self.worker.close()


def normalize_graph_label(name: str) -> str:
    """Return a label or type in lower case, without the quotes that a person wrote around it.

    >>> normalize_graph_label("`Person`"), normalize_graph_label("hr.Person")
    ('person', 'hr.person')
    """
    return name.strip('"`').lower()


def labels_to_deny(names: Sequence[str], schema: GraphSchema) -> tuple[str, ...]:
    """Return all labels and types but the named ones, in lower case.

    Raises SetupError if the graph lacks one of the names.

    >>> labels_to_deny(["City"], GraphSchema({"City": 2, "Secret": 1}))
    ('secret',)
    """
    known = {name.lower() for name in (*schema.labels, *schema.types)}
    wishes = {normalize_graph_label(name) for name in names}
    if missing := sorted(wishes - known):
        raise SetupError(f"The graph has no label or relationship type {', '.join(missing)} to read.")
    return tuple(sorted(known - wishes))
