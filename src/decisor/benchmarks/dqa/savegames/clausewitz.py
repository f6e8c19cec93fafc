"""Clausewitz text, the format of savegames: ``key=value``, ``key={ ... }``, quoted strings, # comments, repeated keys.

A save may be larger than memory: ``walk`` reads it line by line and holds one section, or one entry of an opened
section, at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import TypeAlias

from decisor.errors import ParseError

TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}])|([<>!?]?=|[<>])|(#.*)|([^\s{}="#<>!?]+|[!?])|(")')
DEEPEST = 200
SIGNS = {(sign, False) for sign in ("=", "<", ">", "<=", ">=", "!=", "?=")}


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two braces, in order: (key, value) pairs; the key is '' where a value has none."""

    items: tuple[tuple[str, Value], ...]

    def get(self, key: str) -> Value | None:
        """The first value of a key."""
        return next(self.all(key), None)

    def all(self, key: str) -> Iterator[Value]:
        """Every value of a key that may repeat."""
        return (value for name, value in self.items if name == key)

    def text(self, key: str) -> str:
        """'' where there is none."""
        value = self.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str, default: float = 0.0) -> float:
        return number(self.text(key), default)

    def block(self, key: str) -> Block:
        """An empty block where there is none."""
        value = self.get(key)
        return value if isinstance(value, Block) else Block(())

    def blocks(self) -> Iterator[tuple[str, Block]]:
        """The (key, block) pairs."""
        return ((key, value) for key, value in self.items if isinstance(value, Block))

    def values(self) -> tuple[str, ...]:
        """The texts without a key: a list."""
        return tuple(value for key, value in self.items if not key and isinstance(value, str))


Value: TypeAlias = "str | Block"
Path: TypeAlias = tuple[str, ...]
Token = tuple[str, bool]  # its text, and whether it was quoted


def number(text: str, default: float = 0.0) -> float:
    """
    >>> number("1.5"), number("none", 2)
    (1.5, 2)
    """
    try:
        return float(text)
    except ValueError:
        return default


def parse(text: str) -> Block:
    """
    >>> parse('a=1 b={ x="two words" x=y } # note').block("b").items
    (('x', 'two words'), ('x', 'y'))
    """
    return Block(tuple((path[0], value) for path, value in walk(text.splitlines())))


def walk(
    lines: Iterable[str], opened: Set[str] = frozenset(), sections: Set[str] | None = None
) -> Iterator[tuple[Path, Value]]:
    """The sections of a text as ((key,), value); of an ``opened`` one, its entries one by one as ((key, entry), value).

    ``sections``: other sections than these and the opened are passed over without being held; None is all.

    Raises:
        ParseError: braces or quotes do not match.
    """
    tokens = _Tokens(lines)
    for key, first in _entries(tokens, 0):
        if key in opened and first == ("{", False):
            for entry, begun in _entries(tokens, 1):
                yield (key, entry), _value(tokens, begun, 1)
        elif sections is None or key in sections:
            yield (key,), _value(tokens, first, 0)
        elif first == ("{", False):
            tokens.skip()


@dataclass
class _Tokens:
    """Tokens of lines, with one token of looking ahead."""

    lines: Iterable[str]
    line: int = 0

    def __post_init__(self) -> None:
        self.source = self._read()
        self.ahead = next(self.source, None)

    def take(self) -> Token | None:
        token, self.ahead = self.ahead, next(self.source, None)
        return token

    def skip(self) -> None:
        """Over the rest of a block whose { is taken."""
        depth = 1
        while depth:
            token = self.take()
            if token is None:
                raise self.unclosed()
            depth += (token == ("{", False)) - (token == ("}", False))

    def unclosed(self) -> ParseError:
        return ParseError(f"The text ends at line {self.line} inside a block.", "unclosed")

    def _read(self) -> Iterator[Token]:
        rest = ""
        for line in self.lines:
            self.line += 1
            text, rest = rest + line.rstrip("\r\n"), ""
            for match in TOKEN.finditer(text):
                if match[6]:
                    rest = text[match.start() :] + "\n"  # the string goes on in the next line
                    break
                if match[1] is not None:
                    yield match[1].replace('\\"', '"'), True
                elif not match[4]:
                    yield match[0], False
        if rest:
            raise ParseError(f"The text ends at line {self.line} inside quotes.", "unclosed")


def _entries(tokens: _Tokens, depth: int) -> Iterator[tuple[str, Token]]:
    """(key, first token of the value) of each entry of a block; the caller takes the rest of the value."""
    while (token := tokens.take()) is not None:
        if token == ("}", False):
            if not depth:
                raise ParseError(f"A block is closed at line {tokens.line} that was never opened.", "unopened")
            return
        if token != ("{", False) and tokens.ahead is not None and tokens.ahead in SIGNS:
            tokens.take()
            value = tokens.take()
            if value is None or value == ("}", False):
                raise ParseError(f"{token[0]!r} has no value at line {tokens.line}.", "syntax")
            yield token[0], value
        else:
            yield "", token
    if depth:
        raise tokens.unclosed()


def _value(tokens: _Tokens, first: Token, depth: int) -> Value:
    if first != ("{", False):
        return first[0]
    if depth >= DEEPEST:
        raise ParseError(f"Blocks are nested more than {DEEPEST} deep at line {tokens.line}.", "depth")
    return Block(tuple((key, _value(tokens, begun, depth + 1)) for key, begun in _entries(tokens, depth + 1)))
