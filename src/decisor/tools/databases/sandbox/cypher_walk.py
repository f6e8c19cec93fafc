"""A Cypher statement as brackets, clauses and names, for what rewrites it: only where there is no doubt which is which.

Cypher takes nearly every word as a name too. Here none of a variable may be one of its words (but ``order``), so that a
word at the head of a clause is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from decisor.tools.databases.sandbox.cypher_tokens import Token, refuse
from decisor.tools.databases.sandbox.cypher_words import AFTER, CLAUSES, INFIX, LITERALS, PREFIX, words

NOTHING = Token("symbol", "", "")
CLOSING = {"(": ")", "[": "]", "{": "}"}
ENDERS = AFTER | LITERALS
KEYWORDS = CLAUSES | INFIX | PREFIX | ENDERS
OPENING = words("NOT CASE DISTINCT ALL ANY NULL TRUE FALSE")
"""Those that may stand first in a bracket."""
BEFORE_NAMES = (".", ":", "|", "&", "!", "::")
GOES_ON = ("(", "[", "{", "-", "+", "*", "::", "")


def name_of(token: Token) -> str:
    return token.key if token.kind == "name" else token.text


@dataclass
class Statement:
    """``closes``: the place of the bracket that ends the one at a place."""

    all: tuple[Token, ...]
    closes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stack: list[int] = []
        for at, token in enumerate(self.all):
            if token.kind == "symbol" and token.text in CLOSING:
                stack.append(at)
            elif token.kind == "symbol" and token.text in CLOSING.values():
                if not stack or CLOSING[self.all[stack[-1]].text] != token.text:
                    raise refuse("the brackets do not match")
                self.closes[stack.pop()] = at

    def near(self, at: int) -> Token:
        return self.all[at] if 0 <= at < len(self.all) else NOTHING

    def is_keyword(self, at: int) -> bool:
        token, after = self.near(at), self.near(at + 1)
        if token.kind != "word" or token.key not in KEYWORDS or self.near(at - 1).text in BEFORE_NAMES:
            return False
        if token.key == "ORDER" and after.key != "BY":
            return False
        return not (token.key in ("FIRST", "LAST") and after.text == "(")

    def is_clause(self, at: int) -> bool:
        token, before = self.near(at), self.near(at - 1)
        ends = token.key == "WITH" and before.kind == "word" and before.key in ("STARTS", "ENDS")
        return self.is_keyword(at) and token.key in CLAUSES and not ends

    def next_clause(self, at: int, end: int) -> int:
        """The place of the next clause on this level, else ``end``."""
        while at < end and not self.is_clause(at):
            at = self.closes.get(at, at) + 1
        return min(at, end)

    def follows_value(self, at: int) -> bool:
        """Whether what stands before can be a value: then a bracket takes a part of it."""
        before = self.near(at - 1)
        if before.kind == "word":
            return not self.is_keyword(at - 1) or before.key in ENDERS
        return before.kind in ("name", "string", "parameter") or before.text in (")", "]", "}")

    def check(self) -> None:
        """Raises ToolError (refused) where a name is one of Cypher's words, or of ours."""
        for at, token in enumerate(self.all):
            if token.kind in ("word", "name") and token.key.lower().startswith("decisor_"):
                raise refuse(f"{token.text} cannot be a name here")
            if not self.is_keyword(at):
                continue
            before, after = self.near(at - 1), self.near(at + 1)
            opens = before.text in ("(", "[") and token.key not in OPENING
            stops = token.key not in ENDERS and after.kind == "symbol" and after.text not in GOES_ON
            if opens or stops or (before.kind == "word" and before.key == "AS"):
                raise refuse(f"{token.text} is a word of Cypher: give the variable another name")
