"""A sum, a count or an average over nodes that a path has multiplied.

    MATCH (c:Customer)-[:PLACED]->(o:Order)-[:HAS]->(i:Item) RETURN c.name, sum(o.total)

takes an order's total once for each of its items. Whether a node may have several relationships of a type is looked up
in the graph, once for each type and direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from decisor.errors import ToolError
from decisor.tools.databases.cypher_names import name_of_token
from decisor.tools.databases.cypher_schema import GraphSchema, name_of, quoted
from decisor.tools.databases.pitfalls.cypher_projection import AGGREGATES, Call, calls, items_of, projected, values
from decisor.tools.databases.pitfalls.cypher_rows import Link, MatchRow, add_match, add_where, clauses, names_in
from decisor.tools.databases.pitfalls.cypher_subrows import add_list, behind_call, body_of, row_within, with_sources
from decisor.tools.databases.pitfalls.stored import SECONDS
from decisor.tools.databases.pitfalls.too_much import TooMuch
from decisor.tools.databases.sandbox.cypher_tokens import Token, tokens
from decisor.tools.databases.sandbox.process import Worker
from decisor.types import Pitfall

KIND = "fan_out"
COUNTING = ("SUM", "AVG", "COUNT")


@dataclass(eq=False)
class Paths:
    """Of one graph. ``results``: whether a question brought no row."""

    worker: Worker
    schema: GraphSchema
    results: dict[str, bool] = field(default_factory=dict)

    async def look(self, statement: str) -> list[Pitfall]:
        """What is multiplied in a statement that the sandbox let through, as far as it can be followed."""
        pitfalls: list[Pitfall] = []
        with suppress(ToolError, TooMuch, IndexError):
            await self.follow(MatchRow(), tokens(statement), pitfalls)
        return list(dict.fromkeys(pitfalls))

    async def follow(self, row: MatchRow, words: Sequence[Token], pitfalls: list[Pitfall]) -> MatchRow:
        """The row behind the last clause. What is noticed on the way is added to ``pitfalls``."""
        for clause in clauses(words):
            match clause.key:
                case "MATCH":
                    add_match(row, clause.words)
                case "WHERE":
                    add_where(row, clause.words)
                case "UNWIND":
                    add_list(row, clause.words)
                case "WITH" | "RETURN":
                    pitfalls += await self.projection(row, clause.words)
                    row = projected(row, clause.words)
                case "LIMIT" if [token.text for token in clause.words] == ["1"]:
                    row = replace(row, once=row.once | row.present)
                case "UNION":
                    row = MatchRow()
                case "CALL":
                    body = body_of(clause.words)
                    row = behind_call(row, await self.follow(row_within(row), body, pitfalls), body)
        return row

    async def projection(self, row: MatchRow, words: Sequence[Token]) -> list[Pitfall]:
        """Of a WITH or RETURN."""
        items = [item for item, _ in items_of(words)]
        fixed = await self.fixed_by(row, [item for item in items if not list(calls(item, AGGREGATES))])
        texts = [await self.complaint(row, call, fixed) for item in items for call in calls(item, COUNTING)]
        return [Pitfall(KIND, text) for text in texts if text]

    async def complaint(self, row: MatchRow, call: Call, fixed: set[str]) -> str:
        base = with_sources(names_in(values(call.words), row), row)
        nodes = [name for name, one in row.elements.items() if one.node and name not in row.gone]
        one_value = bool(base) and base <= await self.reached(row, set(), fixed)
        if one_value and call.name == "AVG":
            return ""
        if base and not (one_value and call.name == "COUNT"):
            return await self.multiplied(row, call, base, fixed)
        labels = [row.elements[name].labels for name in nodes]
        if call.name != "COUNT" or len(nodes) < 2 or len(set(labels)) < len(labels):
            return ""
        for root in row.elements:
            if set(row.elements) - row.gone <= await self.reached(row, {root}, fixed):
                return ""
        several = " and ".join(as_pattern(row, name) for name in nodes[:3])
        return (
            f"{call.text} counts combinations of {several}: none of them has one for each of the others. Count one, "
            "hand it on with WITH, and then go on to the next."
        )

    async def multiplied(self, row: MatchRow, call: Call, base: frozenset[str], fixed: set[str]) -> str:
        reached = await self.reached(row, set(base), fixed)
        left = [name for name in row.elements if name not in reached | row.gone]
        left.sort(key=lambda name: not row.elements[name].node)
        if not left:
            return ""
        own = " and ".join(as_pattern(row, name) for name in sorted(base))
        if row.elements[left[0]].source is not None:
            return (
                f"{call.text} takes {own} more than once: once for each {left[0]} of UNWIND. Aggregate before it "
                f"(WITH), or group by {left[0]}."
            )
        return (
            f"{call.text} takes {own} more than once: the pattern goes on to {as_pattern(row, left[0])}, of which "
            "there may be several for one of them. Aggregate before the pattern goes on (WITH), or leave that part "
            "out; where it only filters, use WHERE EXISTS { ... }."
        )

    async def fixed_by(self, row: MatchRow, items: Sequence[Sequence[Token]]) -> set[str]:
        """The elements of which there is one in a group, or that a literal fixes."""
        fixed = set(row.once)
        pinned = set(row.pinned)
        for item in items:
            if len(item) == 1:
                fixed |= row.stands_on.get(name_of_token(item[0]), frozenset())
            if len(item) == 3 and item[1].text == "." and name_of_token(item[0]) in row.elements:
                pinned.add((name_of_token(item[0]), name_of_token(item[2])))
        pinned |= {(name, key) for name, key, value in row.equal if value in fixed}
        for name, key in pinned:
            if name in row.elements and await self.unique(row.elements[name].labels, key):
                fixed.add(name)
        for name, one in row.elements.items():
            if one.node and one.labels and all(self.schema.labels.get(label, 2) <= 1 for label in one.labels):
                fixed.add(name)
        return fixed

    async def reached(self, row: MatchRow, base: set[str], fixed: set[str]) -> set[str]:
        """The elements of which there is one where there is one of each of ``base``."""
        reached = base | fixed
        same = [(frozenset({name}), value) for name, _, value in row.equal]
        grown = True
        while grown:
            grown = False
            for elements, implied in (*row.implied, *same):
                if elements <= reached and implied not in reached:
                    reached.add(implied)
                    grown = True
            for link in row.links:
                ends = {link.one, link.two}
                if link.relation in reached and not link.long and not ends <= reached:
                    reached |= ends
                    grown = True
                if ends <= reached and link.relation not in reached and not link.long:
                    reached.add(link.relation)
                    grown = True
                for here, there, away in ((link.one, link.two, True), (link.two, link.one, False)):
                    if here in reached and there not in reached and await self.single(row, link, here, there, away):
                        reached.add(there)
                        grown = True
        return reached

    async def single(self, row: MatchRow, link: Link, here: str, there: str, away: bool) -> bool:
        """Whether a node has one such relationship at most."""
        if link.long:
            return False
        left, right = {"both": ("-", "-"), "out": ("-", "->"), "in": ("<-", "-")}[link.way]
        if not away:
            left, right = {"->": "<-", "-": "-"}[right], {"<-": "->", "-": "-"}[left]
        types = ":" + "|".join(map(quoted, link.types)) if link.types else ""
        here_text, there_text = labels_text(row.elements[here].labels), labels_text(row.elements[there].labels)
        pattern = f"(a{here_text}){left}[r{types}]{right}({there_text})"
        return await self.none(f"MATCH {pattern} WITH a, count(r) AS n WHERE n > 1 RETURN n LIMIT 1")

    async def unique(self, labels: Sequence[str], key: str) -> bool:
        if len(labels) != 1:
            return False
        value = f"a.{quoted(key)}"
        groups = f"MATCH (a:{quoted(labels[0])}) WHERE {value} IS NOT NULL WITH {value} AS v, count(*) AS n"
        return await self.none(f"{groups} WHERE n > 1 RETURN n LIMIT 1")

    async def none(self, query: str) -> bool:
        """Whether it brings no row. Where it does not run in time, there might be one."""
        if query not in self.results:
            caps = replace(self.worker.caps, rows=1, seconds=min(SECONDS, self.worker.caps.seconds))
            try:
                self.results[query] = not (await self.worker.run(query, caps=caps)).rows
            except ToolError:
                self.results[query] = False
        return self.results[query]


def labels_text(labels: Sequence[str]) -> str:
    return f":{quoted(labels[0])}" if len(labels) == 1 else ""


def as_pattern(row: MatchRow, name: str) -> str:
    """As a pattern.

    >>> from decisor.tools.databases.pitfalls.cypher_rows import Element
    >>> as_pattern(MatchRow({"o": Element("o", ("Order",))}), "o")
    '(o:Order)'
    """
    one = row.elements[name]
    variable = "" if name.startswith("?") else name
    labels = ":" + "|".join(map(name_of, one.labels)) if one.labels else ""
    return f"({variable}{labels})" if one.node else f"[{variable}{labels}]"
