"""Keeps a checked Cypher statement away from denied labels and relationship types.

A pattern without a label reads every node. So where names are denied, each node of a pattern names a label, each
relationship a type, and what passes through nodes without naming them (``*1..3``, ``-->+``, procedures) is refused.
A node that has an allowed label besides a denied one can be read by the allowed one.
"""

from __future__ import annotations

from decisor.tools.databases.sandbox.cypher_tokens import Token, refuse
from decisor.tools.databases.sandbox.cypher_words import FUNCTIONS

NOTHING = Token("symbol", "", "")
PATTERN_WORDS = frozenset({"ALL", "ANY", "EXISTS"})
"""Functions that are also words before a pattern."""


def check(words: tuple[Token, ...], deny: frozenset[str]) -> None:
    """``deny``: names in lower case. Raises ToolError (refused) with the reason.

    >>> from decisor.tools.databases.sandbox.cypher_tokens import tokens
    >>> check(tokens("MATCH (c:City) RETURN c.secret"), frozenset({"secret"}))
    >>> check(tokens("MATCH (c) RETURN c"), frozenset({"secret"}))
    Traceback (most recent call last):
    decisor.errors.ToolError: Refused: some names may not be read, so each (node:Label) must name a label
    """
    for at, token in enumerate(words):
        before, after = (words[at - 1] if at else NOTHING), _near(words, at + 1)
        if token.kind in ("word", "name") and token.key.lower() in deny and before.text != "." and after.text != "(":
            raise refuse(
                f"the label or relationship type {token.key if token.kind == 'name' else token.text} is denied"
            )
        if token.text == "(" and not _call(words, at) and _unlabelled(words, at):
            raise refuse("some names may not be read, so each (node:Label) must name a label")
        if before.text == "-" and token.text == "[":
            _relationship(words, at)
        elif before.text in ("-", ">") and token.text in ("-", "+", "*", "{"):
            raise refuse("some names may not be read, so each -[:TYPE]- must name a type, without a quantifier")
        _word(token, before, after)


def _word(token: Token, before: Token, after: Token) -> None:
    """Label expressions that hold for unnamed labels, and what reads the whole graph or its schema."""
    wildcard = token.text == "%" and before.kind == "symbol" and before.text not in (")", "]", "}")
    named_by_is = token.key == "IS" and after.key not in ("NULL", "NOT", "TYPED", "::")
    if token.text == "!" or wildcard or (token.kind == "word" and named_by_is and before.text != "."):
        raise refuse("some names may not be read, so labels are named one by one: no !, no %, no IS")
    if token.kind == "word" and before.text != "." and token.key in ("CALL", "SHOW") and after.text not in ("(", "{"):
        raise refuse("some names may not be read, so no procedure and no SHOW")


def _near(words: tuple[Token, ...], at: int) -> Token:
    return words[at] if at < len(words) else NOTHING


def _call(words: tuple[Token, ...], at: int) -> bool:
    """Whether the bracket holds the arguments of a function, or the variables of CALL (a) { ... }."""
    before = words[at - 1] if at else NOTHING
    if before.kind != "word":
        return False
    dotted = at > 1 and words[at - 2].text == "."
    return dotted or before.key == "CALL" or (before.key.lower() in FUNCTIONS and before.key not in PATTERN_WORDS)


def _unlabelled(words: tuple[Token, ...], at: int) -> bool:
    """Whether the bracket reads as a node without label. An expression that is only a variable does too."""
    inner = _near(words, at + 1)
    if inner.kind in ("word", "name") and inner.key != "WHERE":
        after = _near(words, at + 2)
        return after.text in (")", "{") or after.kind == "parameter" or (after.kind == "word" and after.key == "WHERE")
    alone = inner.kind == "parameter" and _near(words, at + 2).text == ")"
    return alone or inner.text in (")", "{") or inner.key == "WHERE"


def _relationship(words: tuple[Token, ...], at: int) -> None:
    place = at + 1 + (_near(words, at + 1).kind in ("word", "name"))
    if _near(words, place).text != ":":
        raise refuse("some names may not be read, so each -[:TYPE]- must name a type")
    while _near(words, at).text not in ("]", ""):
        if words[at].text == "*":
            raise refuse("some names may not be read, so no -[*]-: it passes through nodes of any label")
        at += 1
