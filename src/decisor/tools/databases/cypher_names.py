"""Names in a statement in Cypher: which of them the graph does not have, and which close ones it has."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence

from decisor.errors import ToolError
from decisor.tools.databases.cypher_schema import GraphSchema, name_of
from decisor.tools.databases.sandbox.cypher_tokens import Token, tokens
from decisor.tools.databases.sandbox.names import words as words_of

NAMES = ("word", "name")
NODE = re.compile(r"\(\s*(?P<name>\w*)\s*(?::\s*`?(?P<label>\w+)`?)?")
END = r"\(\s*(?P<name{0}>\w*)\s*(?::\s*`?(?P<label{0}>\w+)`?)?[^()]*\)"
PATH = re.compile(
    rf"{END.format(1)}\s*(?P<left><)?-\[\s*\w*\s*:\s*`?(?P<kind>\w+)`?[^\]|*]*\]-(?P<right>>)?\s*(?={END.format(2)})"
)
PARTS = words_of("year month day hour minute second millisecond quarter week x y z latitude longitude")
"""What a date or a point has, which is no property of the graph."""


def near_names(statement: str, schema: GraphSchema) -> str:
    """Which labels, types and properties of the statement the graph does not have, with close ones that it has.

    >>> near_names("MATCH (n:Persn) RETURN n", GraphSchema({"Person": 2}))
    'There is no label or relationship type Persn. Did you mean Person?'
    """
    try:
        words = tokens(statement)
    except ToolError:
        return ""
    names = {*schema.labels, *schema.types}
    complaints = [
        _complaint("label or relationship type", name, names) for name in label_names(words) if name not in names
    ]
    property_names = schema.property_names | {
        name_of_token(name) for name, after in itertools.pairwise(words) if after.text == ":" and name.kind in NAMES
    }
    for before, token, after in zip(words, words[1:], [*words[2:], None], strict=False):
        called = after is not None and after.text == "("
        name = name_of_token(token)
        if before.text == "." and token.kind in NAMES and not called and name not in property_names | PARTS:
            complaints.append(_no_property(name, words, schema))
    return " ".join(dict.fromkeys(filter(None, complaints)))


def _no_property(name: str, words: Sequence[Token], schema: GraphSchema) -> str:
    """That there is none, the close one, and those that the labels and types of the statement have."""
    wishes = [one for one in label_names(words) if one in schema.labels or one in schema.types]
    homes = [home for home in (*wishes, *(f"[{one}]" for one in wishes)) if schema.properties.get(home)]
    there = {home: [info.name for info in schema.properties[home]] for home in homes or schema.properties}
    lower = {info.lower(): info for infos in there.values() for info in infos}
    near = difflib.get_close_matches(name.lower(), lower, 1, 0.75)
    hint = f" Did you mean {lower[near[0]]}?" if near else ""
    lists = "; ".join(f"{pattern_of(home)} has {', '.join(map(name_of, names))}" for home, names in there.items())
    return f"There is no property {name}.{hint} {lists}."


def wrong_ways(statement: str, schema: GraphSchema) -> str:
    """Which relationships of the statement's patterns no nodes of these labels have, and which there are.

    >>> schema = GraphSchema({"Shop": 2, "Town": 1}, {("Shop", "IN", "Town"): 2})
    >>> wrong_ways("MATCH (t:Town {x: 1})-[r:IN]->(s:Shop) RETURN s", schema)
    'There is no (:Town)-[:IN]->(:Shop); there is (:Shop)-[:IN]->(:Town).'
    """
    label_of = {match["name"]: match["label"] for match in NODE.finditer(statement) if match["label"] and match["name"]}
    complaints = []
    for match in PATH.finditer(statement):
        start, end = (match[f"label{at}"] or label_of.get(match[f"name{at}"] or "", "") for at in (1, 2))
        if bool(match["left"]) == bool(match["right"]):
            continue
        link = (end, match["kind"], start) if match["left"] else (start, match["kind"], end)
        ways = [one for one in schema.links if one[1] == match["kind"]]
        if start and end and ways and link not in schema.links:
            complaints.append(f"There is no {show_link(link)}; there is {', '.join(map(show_link, ways[:4]))}.")
    return " ".join(dict.fromkeys(complaints))


def show_link(link: tuple[str, str, str]) -> str:
    return f"(:{name_of(link[0])})-[:{name_of(link[1])}]->(:{name_of(link[2])})"


def pattern_of(home: str) -> str:
    """
    >>> pattern_of("City"), pattern_of("[LIES_IN]")
    ('(:City)', '[:LIES_IN]')
    """
    return f"[:{name_of(home[1:-1])}]" if home.startswith("[") else f"(:{name_of(home)})"


def label_names(words: Sequence[Token]) -> list[str]:
    """Names after a colon that is in no map, and those joined to them by ``|``.

    >>> label_names(tokens("MATCH (a:A {x: b})-[:C|D]->() RETURN [e IN f | g]"))
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


def name_of_token(token: Token) -> str:
    return token.text if token.kind == "word" else token.key


def _complaint(what: str, name: str, there: Iterable[str]) -> str:
    lower = {one.lower(): one for one in there}
    near = difflib.get_close_matches(name.lower(), lower, 1, 0.6)
    hint = f" Did you mean {lower[near[0]]}?" if near else f" There are {', '.join(sorted(lower.values())[:20])}."
    return f"There is no {what} {name}.{hint}"
