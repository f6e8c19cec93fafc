"""Keeps a Cypher statement within the nodes of one label: a part of a graph, in a database that holds several.

Each node of a pattern gets the label, and ``labels(n)`` loses it again. Relationships between nodes of the label stay
within it, so paths of any length do. Procedures and SHOW tell of the whole database, and are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from decisor.sandbox.cypher_guard import (
    CLAUSES,
    CLOSING,
    NOTHING,
    SUBQUERIES,
    CypherToken,
    cypher_refusal,
    is_call_bracket,
    join_cypher_tokens,
    quote_cypher_name,
    token_at,
    tokenize_cypher,
)

LABELS_ONLY = frozenset(":")


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
            word.kind in ("word", "name") or word.text in LABELS_ONLY for word in self.words[place + 1 : end]
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
