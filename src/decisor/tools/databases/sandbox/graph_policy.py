"""What a policy says of a graph: the condition of a label's nodes, and properties of which tokens stand for the values.

A condition is as in SQL, of the node's own properties: ``region = 'EU' AND NOT closed``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox import cypher_guard
from decisor.tools.databases.sandbox.cypher_tokens import Token, clean, quoted, refuse, tokens
from decisor.tools.databases.sandbox.cypher_words import FUNCTIONS, words
from decisor.tools.databases.sandbox.policy import TOKEN, Policy, token_for
from decisor.types import Table

OPERATORS = words("AND OR XOR NOT IN STARTS ENDS CONTAINS WITH IS NULL TRUE FALSE")
PATTERNS = words("exists shortestpath allshortestpaths all any none single reduce collect count properties")
SYMBOLS = words("= <> < > <= >= + - * / % =~ ( ) [ ] ,")


@dataclass
class GraphRules:
    """``rows``: of a label, as the graph spells it, the conditions that its nodes fulfil. ``masked``: of a label or
    relationship type, names of properties. ``tokens``: of the text of each masked value."""

    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    masked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    key: str = ""
    reveal: bool = False
    tokens: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows or self.masked)

    def token(self, text: object) -> str | None:
        """What stands for a value, by its text as the graph writes it; it is remembered."""
        token = token_for(self.key, text)
        if token is not None:
            self.tokens[str(text)] = token
        return token

    def revealed(self, text: str) -> Table:
        """Of each token in a text its value. Raises ToolError (refused) where the reader may not see it."""
        if not self.reveal:
            raise refuse("this reader may not see masked values.")
        values = {token: value for value, token in self.tokens.items()}
        there = sorted(set(TOKEN.findall(text)) & values.keys())
        return Table(("token", "value"), tuple((token, values[token]) for token in there))

    def homes(self, name: str) -> list[str]:
        """The labels and types of which this property is masked."""
        return [home for home, names in self.masked.items() if name in names]

    def visible(self, homes: Iterable[str], properties: Mapping[str, object]) -> dict[str, object]:
        """The properties of a node with these labels, or of a relationship of this type, as its reader sees them."""
        masked = {name for home in homes for name in self.masked.get(home, ())}
        return {
            name: self.tokens.get(text_of(value)) if name in masked else value for name, value in properties.items()
        }

    def holds(self, name: str) -> str:
        """That a node may be seen, whatever its labels are. ``name``: a variable."""
        return " AND ".join(
            f"(NOT {name}:{quoted(label)} OR ({' AND '.join(f'({condition_of(one, name)})' for one in conditions)}))"
            for label, conditions in self.rows.items()
        )


NO_RULES = GraphRules()


def rules_of(policy: Policy, labels: Iterable[str], properties: Mapping[str, Iterable[str]]) -> GraphRules:
    """``properties``: by label or relationship type.

    Raises:
        SetupError: the graph has no such label, type or property, or a condition is none.
    """
    labels = set(labels)
    if wrong := [one for one in policy.places() if len(one) > 1]:
        raise SetupError(f"There is no source {wrong[0][0]} with a label {wrong[0][-1]}. Write LABEL, or SOURCE.LABEL; "
                         "a label with a dot stands in quotes.")  # fmt: skip
    rows: dict[str, tuple[str, ...]] = {}
    masked: dict[str, frozenset[str]] = {}
    for name, rule in policy.tables().items():
        homes = [one for one in {*labels, *properties} if one.lower() == name]
        own = [one for one in homes if one in labels]
        if not homes or (rule.conditions and not own):
            raise SetupError(
                f"The graph has no label {name} whose nodes or properties could be kept back. Where there are "
                "several sources, write SOURCE.LABEL."
            )
        for label in own if rule.conditions else ():
            for one in rule.conditions:
                check_condition(one)
            rows[label] = rule.conditions
        known = sorted({one for home in homes for one in properties.get(home, ())})
        if missing := sorted(rule.masked - {one.lower() for one in known}):
            raise SetupError(f"{homes[0]} has no property {missing[0]} to mask; it has {', '.join(known)}.")
        names = frozenset(one for one in known if one.lower() in rule.masked)
        masked |= {home: names for home in homes if names}
    return GraphRules(rows, masked, policy.key, policy.reveal)


def text_of(value: object) -> str:
    """As Cypher writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_condition(text: str) -> None:
    """Raises SetupError where it is none."""
    try:
        cypher_guard.check(f"MATCH (n) WHERE {condition_of(text, 'n')} RETURN 1")
    except ToolError as error:
        raise wrong(text, str(error)) from error


def wrong(text: str, why: str) -> SetupError:
    return SetupError(f"The condition {text!r} is not one of a node's own properties: {why}")


def condition_of(text: str, name: str) -> str:
    """A condition about the node that a variable names. Raises ToolError (refused) where it says more than that.

    >>> condition_of("region = 'EU' AND toLower(kind) <> 'x'", "n")
    "n.region = 'EU' AND toLower(n.kind) <> 'x'"
    """
    parts = tokens(text)
    return clean(tuple(own_part(parts, at, name) for at in range(len(parts))))


def own_part(parts: tuple[Token, ...], at: int, name: str) -> Token:
    part, called = parts[at], at + 1 < len(parts) and parts[at + 1].text == "("
    if part.kind in ("string", "number") or part.text in SYMBOLS or part.key in OPERATORS:
        return part
    if part.kind == "word" and called and part.text.lower() in FUNCTIONS - PATTERNS:
        return part
    if part.kind in ("word", "name") and not called:
        return Token("symbol", f"{name}.{part.text}", part.key, part.spaced)
    raise refuse(f"{part.text} cannot stand in a condition")


def check_statement(parts: tuple[Token, ...]) -> None:
    """Raises ToolError (refused) for what tells of more than the nodes that a pattern names."""
    for at, part in enumerate(parts):
        after = parts[at + 1].text if at + 1 < len(parts) else ""
        asks = part.kind == "word" and not (at and parts[at - 1].text == ".")
        if asks and (part.key == "SHOW" or (part.key == "CALL" and after not in ("(", "{"))):
            raise refuse(
                "not all of the graph is for this reader, so no procedure and no SHOW, which tell of all of it"
            )
        if asks and at == 0 and part.key in ("EXPLAIN", "PROFILE", "CYPHER"):
            raise refuse(f"not all of the graph is for this reader, so no {part.key}")
        if part.kind == "parameter":
            raise refuse(f"there is no parameter {part.text}: write the value")
