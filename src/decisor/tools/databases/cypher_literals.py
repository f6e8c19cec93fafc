"""The literals that a statement in Cypher compares with properties, and how the stored values are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.errors import ToolError
from decisor.tools.databases.cypher_names import label_names, name_of_token
from decisor.tools.databases.cypher_schema import GraphSchema, name_of, quoted
from decisor.tools.databases.hints import MOST_VALUES, Literal
from decisor.tools.databases.sandbox.cypher_tokens import Token, tokens

PARTS = ("CONTAINS", "WITH")
"""The last words of the operators that compare with a part."""


def literals(statement: str, schema: GraphSchema) -> tuple[Literal, ...]:
    """Of ``{name: value}``, ``=``, IN, CONTAINS and STARTS or ENDS WITH, each once."""
    try:
        words = tokens(statement)
    except ToolError:
        return ()
    labels = label_names(words)
    return tuple(dict.fromkeys(one for at in range(1, len(words)) for one in _literal(words, at, labels, schema)))


def own_labels(words: Sequence[Token], at: int) -> list[str]:
    """The labels or types of what the name at ``at`` is a property of: those before its braces, or those that stand
    anywhere after the variable before its point.

    >>> words = tokens("MATCH (a:A {x: 1})-[:R]->(b:B:C) WHERE b.y = 2")
    >>> own_labels(words, 6), own_labels(words, len(words) - 3)
    (['A'], ['B', 'C'])
    """
    if words[at - 1].text == ".":
        variable = words[at - 2].text
        starts = [i + 1 for i, token in enumerate(words[:-1]) if token.text == variable and words[i + 1].text == ":"]
        return label_names(words[starts[0] - 1 : starts[0] + 6]) if starts else []
    opening = next((i for i in range(at - 1, 0, -1) if words[i].text == "{"), 0)
    start = next((i for i in range(opening, -1, -1) if words[i].text in "(["), 0)
    return label_names(words[start:opening])


def _literal(words: Sequence[Token], at: int, labels: Sequence[str], schema: GraphSchema) -> Iterator[Literal]:
    token, before = words[at], words[at - 1]
    if token.kind not in ("string", "number"):
        return
    back = at - 1
    if before.key == "WITH" or (before.key == "[" and words[back - 1].key == "IN"):
        back -= 1
    operator = words[back]
    if operator.key not in (":", "=", "IN", "STARTS", "ENDS", "CONTAINS") or back < 1:
        return
    name = name_of_token(words[back - 1])
    part = before.key in PARTS
    homes = [home for home, infos in schema.properties.items() if any(info.name == name for info in infos)]
    own = own_labels(words, back - 1)
    named = [home for home in homes if home.strip("[]") in (own or labels)]
    for home in named or homes:
        kind = home.strip("[]")
        if home.startswith("["):
            pattern, place = f"()-[x:{quoted(kind)}]->()", f"[:{name_of(kind)}].{name}"
        else:
            pattern, place = f"(x:{quoted(kind)})", f"(:{name_of(kind)}).{name}"
        key = f"x.{quoted(name)}"
        source = f"MATCH {pattern} WHERE {key} IS NOT NULL"
        if token.kind == "string":
            query = f"{source} RETURN DISTINCT {key} AS v LIMIT {MOST_VALUES}"
            yield Literal(token.text[1:-1].replace("\\", ""), place, query, part)
        elif token.text.replace(".", "", 1).isdecimal():
            number = float(token.text)
            yield Literal(number, place, f"{source} RETURN {key} AS v ORDER BY abs({key} - {number!r}) LIMIT 3")
