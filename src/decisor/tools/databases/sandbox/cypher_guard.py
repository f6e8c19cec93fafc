"""Lets a Cypher statement through only where it is one reading statement of known words.

The rule is an allow list. Every word is one of: a name (after a dot or a colon, before a colon in a map, quoted), a
variable, a known keyword in its place, a known function before its bracket, a known procedure after CALL. After a
complete expression only a known keyword may follow, so an unknown clause cannot begin there. The writing words of
Cypher are refused by name as well, as bare words anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from decisor.tools.databases.sandbox import cypher_deny
from decisor.tools.databases.sandbox.cypher_tokens import Token, clean, refuse, tokens
from decisor.tools.databases.sandbox.cypher_words import (
    AFTER,
    CLAUSES,
    FUNCTION_FAMILIES,
    FUNCTIONS,
    INFIX,
    LITERALS,
    NEVER,
    PREFIX,
    PROCEDURES,
    SHOWN,
    STARTS,
    SUBQUERIES,
)

CLOSING = {"(": ")", "[": "]", "{": "}"}
LONGEST = 20_000
DEEPEST = 100


def check(statement: str, deny: frozenset[str] = frozenset()) -> str:
    """The statement to run. ``deny``: labels and types, in lower case. Raises ToolError (refused) with the reason.

    >>> check("MATCH (n:City) RETURN n.name; // all")
    'MATCH (n:City) RETURN n.name'
    >>> check("MATCH (n) DETACH DELETE n")
    Traceback (most recent call last):
    decisor.errors.ToolError: Refused: DETACH is not allowed: only reading. A name like it goes in `backticks`.
    """
    if len(statement) > LONGEST:
        raise refuse(f"the statement is longer than {LONGEST:,} characters")
    words = tokens(statement)
    if any(token.text == ";" for token in words):
        raise refuse("more than one statement")
    words, explains = _prefix(words)
    if not words:
        raise refuse("the statement is empty")
    if deny:
        cypher_deny.check(words, deny)
    if words[0].key == "SHOW" and len(words) == 2 and words[1].key in SHOWN:
        return clean(words)
    _Walk(words).whole()
    return explains + clean(words)


def _prefix(words: tuple[Token, ...]) -> tuple[tuple[Token, ...], str]:
    """Without ``CYPHER 5``; and EXPLAIN, where it is there."""
    if words and words[0].key == "CYPHER":
        words = words[1:]
        if words and words[0].kind == "number":
            words = words[1:]
        while len(words) > 2 and words[0].key in ("RUNTIME", "PLANNER") and words[1].text == "=":
            words = words[3:]
    if words and words[0].key in ("EXPLAIN", "PROFILE") and words[0].kind == "word":
        return words[1:], f"{words[0].key} "
    return words, ""


@dataclass
class _Walk:
    """``complete``: the tokens before ``at`` end an expression. ``brackets``: open ones, with 'q' for a subquery."""

    words: tuple[Token, ...]
    at: int = 0
    complete: bool = False
    begins: bool = True
    brackets: list[str] = field(default_factory=list)

    def near(self, step: int) -> Token:
        place = self.at + step
        return self.words[place] if 0 <= place < len(self.words) else Token("symbol", "", "")

    def whole(self) -> None:
        while self.at < len(self.words):
            token = self.near(0)
            if token.kind == "symbol":
                self.symbol(token.text)
            elif token.kind == "word":
                self.word(token)
            else:
                self.operand(token.text)
            self.at += 1
        if self.brackets:
            raise refuse("a bracket is opened and not closed")
        if self.begins:
            raise refuse("the statement ends where a clause should begin")

    def operand(self, text: str) -> None:
        if self.begins:
            raise refuse(f"a clause cannot begin with {text[:40]}")
        name = self.near(0).kind == "name" and self.near(-1).text in (".", ":", "::", "|", "&", "!")
        if self.complete and not name:
            raise refuse(f"{text[:40]} cannot stand here")
        if self.near(0).kind == "name" and self.near(1).text == "(":
            raise refuse("a quoted function name")
        self.complete = True

    def symbol(self, text: str) -> None:
        if self.begins and not (text == "(" and self.brackets[-1:] == ["q"]):
            raise refuse(f"a clause cannot begin with {text}")
        self.begins = False
        if text in CLOSING:
            self.open(text)
        elif text in CLOSING.values():
            if not self.brackets or CLOSING.get(self.brackets[-1][0].replace("q", "{")) != text:
                raise refuse("the brackets do not match")
            self.brackets.pop()
            self.complete = True
        elif text == "$" or (text == "." and self.near(-1).kind == "number"):
            raise refuse("a dynamic name, or a dot after a number")
        else:
            star = text == "*" and not self.complete
            self.complete = star and self.near(-1).key in ("WITH", "RETURN", "DISTINCT", ".", "COUNT", "(", "YIELD")

    def open(self, text: str) -> None:
        subquery = text == "{" and self.near(-1).kind == "word" and self.near(-1).key in SUBQUERIES
        subquery = subquery or (text == "{" and self._scoped_call())
        self.brackets.append("q" if subquery else text)
        if len(self.brackets) > DEEPEST:
            raise refuse("brackets are nested too deep")
        self.begins, self.complete = subquery, False

    def _scoped_call(self) -> bool:
        """CALL (a, b) { ... }"""
        back = -1
        if self.near(back).text != ")":
            return False
        while self.near(back).text not in ("(", ""):
            back -= 1
        return self.near(back - 1).key == "CALL" and self.near(back - 1).kind == "word"

    def word(self, token: Token) -> None:
        before, after, key = self.near(-1), self.near(1), token.key
        if before.text in (".", "::") or (before.text == ":" and not self._in_map()):
            self.name(before)
        elif after.text == ":" and before.text in ("{", ",") and self.brackets[-1:] == ["{"]:
            self.complete = True
        elif key in NEVER:
            raise refuse(f"{key} is not allowed: only reading. A name like it goes in `backticks`.")
        elif self.begins:
            self.start(key)
        elif key in ("ALL", "ANY", "EXISTS", "COUNT", "COLLECT") and after.text in ("(", "{"):
            self.complete = True  # as functions are, until their bracket
        elif key == "CALL":
            self.call()
        elif key in CLAUSES or key in INFIX or key in PREFIX:
            self.keyword(key)
        elif key in AFTER and self.complete:
            pass
        elif self.complete:
            raise refuse(f"{token.text} cannot stand here; a clause of that name is not known")
        elif key in LITERALS:
            self.complete = True
        else:
            self.function()

    def _in_map(self) -> bool:
        """Whether the colon before this token follows the key of a map, and so an expression follows it."""
        return self.brackets[-1:] == ["{"] and self.near(-3).text in ("{", ",")

    def name(self, before: Token) -> None:
        """After a dot or a label's colon: no keyword. A dotted function must be known as a whole."""
        if self.near(1).text == "(" and not (before.text == "." and self._dotted_from()):
            raise refuse(f"{self.near(0).text} cannot be called")
        self.complete = True

    def _dotted_from(self) -> bool:
        back = 0
        while self.near(back - 1).text == "." and self.near(back - 2).kind == "word":
            back -= 2
        if self.near(back - 1).text == ".":
            return False
        whole = "".join(self.near(step).text for step in range(back, 1)).lower()
        return whole in FUNCTIONS or whole in PROCEDURES or whole.startswith(FUNCTION_FAMILIES)

    def start(self, key: str) -> None:
        if key in ("ALL", "DISTINCT") and self.near(-1).key == "UNION":
            return
        if key not in STARTS:
            raise refuse(f"a statement cannot begin with {key}; it may begin with {', '.join(sorted(STARTS))}")
        self.begins = False
        if key == "CALL":
            self.call()
        else:
            self.keyword(key)

    def keyword(self, key: str) -> None:
        if key == "OPTIONAL" and self.near(1).key not in ("MATCH", "CALL"):
            raise refuse("OPTIONAL without MATCH")
        self.begins = key == "UNION"
        self.complete = False

    def call(self) -> None:
        """CALL { ... }, CALL (a) { ... }, or CALL of a known procedure."""
        self.complete = False
        if self.near(1).text in ("{", "("):
            return
        parts, step = [], 1
        while self.near(step).kind == "word":
            parts.append(self.near(step).key.lower())
            if self.near(step + 1).text != ".":
                break
            step += 2
        name = ".".join(parts)
        if name not in PROCEDURES or self.near(step).kind != "word":
            raise refuse(f"the procedure {name or self.near(1).text} is not on the list of reading procedures")
        self.at += step
        self.complete = True

    def function(self) -> None:
        """A variable, or a function before its bracket."""
        step = 0
        parts = [self.near(0).key.lower()]
        while self.near(step + 1).text == "." and self.near(step + 2).kind in ("word", "name"):
            step += 2
            parts.append(self.near(step).key.lower())
        if self.near(step + 1).text == "(":
            name = ".".join(parts)
            if name not in FUNCTIONS and not name.startswith(FUNCTION_FAMILIES):
                raise refuse(f"the function {name} is not on the list of known functions")
            if any(self.near(inner).kind == "name" for inner in range(step + 1)):
                raise refuse("a quoted function name")
        self.complete = True
