"""A tokenizer for Cypher: words, quoted names, strings, numbers, parameters, symbols. Comments are dropped.

``clean`` is the statement to run: the text of the tokens, with every comment and every run of white space between
them as one space, no final semicolon, and ``\\uXXXX`` escapes in strings replaced by the character they stand for.
So what was checked is what is run. Engines differ in when they decode ``\\u``: some before they find the end of a
string. An escape that could end one is refused.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from decisor.errors import ToolError

Kind = Literal["word", "name", "string", "number", "parameter", "symbol"]

TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+ | //[^\r\n]*(?=[\r\n]|$) | /\*.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
  | (?P<name>`(?:[^`]|``)+`)
  | (?P<parameter>\$(?:\w+|`(?:[^`]|``)+`))
  | (?P<number>0[xX][0-9a-fA-F]+ | 0[oO][0-7]+
      | (?:\d[\d_]*)?\.\d[\d_]*(?:[eE][+-]?\d+)? | \d[\d_]*(?:[eE][+-]?\d+)?(?:\.(?!\.)(?=\W|$))?)
  | (?P<word>[^\W\d]\w*)
  | (?P<symbol>\.\.|<>|<=|>=|=~|\+=|\|\||::|/(?!\*)|[-+*%^=<>(){}\[\],.:;|&!$])
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(u+[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` as it is run; ``key`` is what to compare: upper case for a word, the bare name for a quoted name."""

    kind: Kind
    text: str
    key: str
    spaced: bool = False


def refuse(reason: str) -> ToolError:
    return ToolError(f"Refused: {reason}", refused=True)


def tokens(statement: str) -> tuple[Token, ...]:
    """Raises ToolError (refused) where the statement holds something that engines could read in two ways.

    >>> [token.key for token in tokens("match (n:`Set`) // DELETE it")]
    ['MATCH', '(', 'N', ':', 'Set', ')']
    """
    words: list[Token] = []
    place, spaced = 0, False
    while place < len(statement):
        match = TOKEN.match(statement, place)
        if match is None:
            raise refuse(_complaint(statement, place))
        place = match.end()
        if match.lastgroup == "space":
            spaced = True
            continue
        words.append(_token(match.lastgroup or "symbol", match.group(), spaced))
        spaced = False
    while words and words[-1].text == ";":
        words.pop()
    return tuple(words)


def clean(words: tuple[Token, ...]) -> str:
    """
    >>> clean(tokens("MATCH/* c */(n)  RETURN n ;"))
    'MATCH (n) RETURN n'
    """
    return "".join(" " * token.spaced + token.text for token in words).strip()


def quoted(name: str) -> str:
    """
    >>> quoted("trade node")
    '`trade node`'
    """
    return "`" + name.replace("`", "``") + "`"


def _token(kind: str, text: str, spaced: bool) -> Token:
    if kind == "string":
        return Token("string", _string(text), text, spaced)
    if kind in ("name", "parameter") and "`" in text:
        if "\\" in text or any(ord(c) < 32 for c in text):
            raise refuse("a quoted name holds a backslash or a control character")
        return Token("name" if kind == "name" else "parameter", text, text.strip("$`").replace("``", "`"), spaced)
    if kind == "word":
        if unicodedata.normalize("NFKC", text) != text:
            raise refuse(f"the word {text!r} is written with look-alike characters")
        return Token("word", text, text.upper(), spaced)
    return Token(kind, text, text, spaced)  # type: ignore[arg-type]


def _string(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape[0] not in "uU" or len(escape) < 5:
            return match.group()
        number = int(escape.lstrip("uU"), 16)
        if number < 128 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
            raise refuse(f"the escape {match.group()} in a string; write the character itself")
        return chr(number)

    whole = ESCAPE.sub(plain, text)
    if any(ord(c) < 32 and c not in "\t\r\n" for c in whole) or any(0xD800 <= ord(c) <= 0xDFFF for c in whole):
        raise refuse("a string holds a control character")
    return whole


def _complaint(statement: str, place: int) -> str:
    character = statement[place]
    if character in "'\"`":
        return "a quote is opened and not closed"
    if statement.startswith("/*", place):
        return "a comment is opened and not closed"
    return f"the character {character!r} at {place + 1} is not part of Cypher outside strings"
