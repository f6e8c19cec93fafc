"""What is looked at before any parser sees a statement, and the characters that engines read in several ways."""

from __future__ import annotations

import re
import unicodedata

from decisor.errors import ToolError

MAX_CHARS = 20_000
MAX_BRACKETS = 60
MAX_OPERATORS = 2_000
BRACKET = re.compile(r"[(){}\[\]]")
CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\x85\\u2028\\u2029]")
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
"""Categories of characters that one engine takes for white space and another for a letter."""


def refuse(reason: str) -> ToolError:
    return ToolError(f"Refused: {reason}", refused=True)


def within_size(statement: str) -> None:
    """Size and nesting: a parser that recurses too deep takes its process down. Raises ToolError (refused)."""
    if not statement.strip():
        raise refuse("there is no statement.")
    if len(statement) > MAX_CHARS:
        raise refuse(f"the statement is longer than {MAX_CHARS} characters.")
    if odd := CONTROL.search(statement):
        raise refuse(f"the statement holds the character U+{ord(odd[0]):04X}.")
    depth = deepest = 0
    for char in BRACKET.findall(statement):
        depth += 1 if char in "([{" else -1
        deepest = max(deepest, depth)
    operators = sum(map(statement.count, "+-*/%|&")) + len(
        re.findall(r"(?i)\b(and|or|not|union|case|except)\b", statement)
    )
    if deepest > MAX_BRACKETS or operators > MAX_OPERATORS:
        raise refuse("the statement is nested too deeply or has too many operators.")


def only_letters(word: str) -> None:
    """Raises ToolError (refused) where a word outside texts and quotes holds what is no letter to every engine.

    >>> only_letters("größe")
    >>> only_letters("a\\u200bb")
    Traceback (most recent call last):
    decisor.errors.ToolError: Refused: the character U+200B stands outside a text.
    """
    if word.isascii():
        return
    if odd := next((char for char in word if unicodedata.category(char) in UNSEEN), ""):
        raise refuse(f"the character U+{ord(odd):04X} stands outside a text.")
