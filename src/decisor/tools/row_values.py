"""Values of rows that a tool would get: which they are, and whether the tool may get them.

A value is a cell of at least ``LEAST`` letters and digits, a number of as many digits, and of a text each word with a
digit and each two words in a row, that stood in what a source brought in this run, or in the examples of its schema.
Letters and digits alone are compared, in any case, after what URLs, JSON, HTML, base64, base32 and hexadecimal write
otherwise is undone, up to ``DEPTH`` times, also backwards. Words of the question and of the tool's own description are
no values of rows. What is written in other words, cut, spread over several calls or computed is not found.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import html
import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias
from urllib.parse import unquote_plus

from decisor.calls.clock import in_line
from decisor.errors import ToolError
from decisor.tools.abilities import RowSource
from decisor.tools.calculator import CalculatorTool
from decisor.types import Action, Observation, Tool

RowValuePolicy = Literal["ask", "allow", "refuse"]
"""Whether a tool may get values of rows: after a person was asked (else not), always, never."""
Release: TypeAlias = Callable[[str], Awaitable[bool]]
"""Asks a person; False where nobody says yes."""
LEAST, LEAST_PAIR, CERTAIN = 4, 8, 6
"""Letters and digits of a value, of two words in a row, and of a number that is found within other digits too."""
DEPTH, MOST_READINGS = 3, 400
PERSON = "person"
INSIDE = ("whatif", "decision_model", "definitions", "think", "combine", PERSON)
WORD = re.compile(r"\w+")
LONGEST_RUN = 4
"""Words of the question that together are no value of a row."""
NUMBER = re.compile(r"\d(?:[\d.,'_ ]*\d)?")
CODED = re.compile(r"[A-Za-z0-9+/_\-]{4,}={0,6}")
BETWEEN = re.compile(r"0x|\\x|[^A-Za-z0-9+/_=\-]")
"""What may stand between the letters of an encoding."""
QUOTED = re.compile(r"'([^']{2,})'|\"([^\"]{2,})\"")
HOW = '--row-values allow (in Python ToolSpecs(..., row_values="allow")) lets tools get them'


@dataclass(frozen=True, slots=True)
class RowValue:
    """``letters``: what is compared. ``place``: the source and the record that it stood in."""

    letters: str
    place: str
    is_governed: bool


@dataclass(eq=False)
class RowValues:
    """The values that one run has seen, and what a person has said of each tool. Shared by its forks."""

    policy: RowValuePolicy = "ask"
    release: Release | None = None
    question: str = ""
    values: dict[str, RowValue] = field(default_factory=dict)
    allows_tool: dict[str, bool] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def learn(self, observation: Observation, tool: Tool, members: Sequence[Tool]) -> None:
        """Take in what a tool brought that reads sources, or computes with what they brought."""
        if tool.name == PERSON or is_outward(tool):
            return
        # What is computed may come from any source.
        origins = [tool] if isinstance(tool, RowSource) else members
        self.add(observation, tool.name, any(map(is_governed, origins)))

    def add_examples(self, tools: Sequence[Tool]) -> None:
        """Values that the descriptions of databases show."""
        for tool in tools:
            if isinstance(tool, RowSource):
                examples = (" ".join(texts_of(decoded_json(text))) for text in tool.examples())
                self.add_texts(examples, tool.name, tool.is_restricted)

    def add(self, observation: Observation, place: str, governed: bool) -> None:
        """What a source brought: its rows, and what its notes quote of them."""
        for record in observation.records:
            cells = [*record.fields.values(), record.text]
            self.add_texts((text for cell in cells for text in texts_of(cell)), f"{place} {record.id}", governed)
        self.add_quoted(observation.note, place, governed)

    def add_quoted(self, note: str, place: str, governed: bool) -> None:
        self.add_texts((one or other for one, other in QUOTED.findall(note)), place, governed)

    def add_texts(self, texts: Iterable[str], place: str, governed: bool) -> None:
        for text in texts:
            for letters in parts_of(text):
                known = self.values.get(letters)
                if known is None or (governed and not known.is_governed):
                    self.values[letters] = RowValue(letters, place, governed)

    def find(self, text: str, about: str = "") -> list[RowValue]:
        """The values in an input, governed ones first. ``about``: what the tool says of itself."""
        known = runs_of(self.question) | runs_of(about)
        readings = readings_of(text)
        letters = "\n".join(side for reading in readings for side in (squeezed(reading), squeezed(reading)[::-1]))
        numbers = {squeezed(match) for reading in readings for match in NUMBER.findall(reading)}
        numbers |= {digits for reading in readings for digits in re.findall(r"\d+", reading)}
        # Most values are out by their first and last letters: looking through the whole input for each takes seconds.
        starts = {letters[at : at + LEAST] for at in range(len(letters))}
        near = (one for text, one in self.values.items() if {text[:LEAST], text[-LEAST:]} <= starts)
        matches = [one for one in near if one.letters not in known and is_in(one.letters, letters, numbers)]
        return sorted(matches, key=lambda one: not one.is_governed)

    async def check(self, action: Action, tool: Tool, is_watched: bool = False) -> None:
        """Raise ToolError (refused) if the tool may not get its input. ``is_watched``: a person allows each action."""
        if not self.values:
            return
        first = next(iter(self.find(action.input, f"{tool.name} {tool.describe()}")), None)
        if first is None:
            return
        if first.is_governed:
            raise ToolError(f"{action.tool} was not called: its input holds a value of {first.place}, of which not "
                            "everything is for everybody. Such values never go to a tool. Do without it.",
                            refused=True)  # fmt: skip
        if is_watched or self.policy == "allow":
            return
        if self.policy == "refuse" or not await self.is_allowed(action, first):
            raise ToolError(f"{action.tool} was not called: its input holds a value of {first.place}, and nobody has "
                            f"allowed tools to get values of rows. Do without it. (For people: {HOW}.)",
                            refused=True)  # fmt: skip

    async def is_allowed(self, action: Action, first: RowValue) -> bool:
        """Whether a person lets this tool get values of rows; asked the first time."""
        if self.release is None:
            return False
        async with self.turn:
            if action.tool not in self.allows_tool:
                with in_line():
                    self.allows_tool[action.tool] = await self.release(
                        f"May {action.tool} get values of rows, now and later in this run? It would be sent "
                        f"{action.input[:300]!r} (a value of {first.place})"
                    )
        return self.allows_tool[action.tool]


def is_outward(tool: Tool) -> bool:
    """Whether what it gets may leave: a function, an API, an MCP server, or an object of somebody's own."""
    return not (isinstance(tool, RowSource | CalculatorTool) or tool.name in INSIDE)


def is_governed(tool: Tool) -> bool:
    """Whether something of a source is kept back: rows, columns, tables, labels or documents."""
    return isinstance(tool, RowSource) and tool.is_restricted


def texts_of(cell: object) -> Iterator[str]:
    """Its text, and those of what it holds."""
    if isinstance(cell, dict):
        for key, item in cell.items():
            yield from texts_of(key)
            yield from texts_of(item)
    elif isinstance(cell, list | tuple):
        for item in cell:
            yield from texts_of(item)
    elif isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        yield str(int(cell))
    elif cell is not None and not isinstance(cell, bool):
        yield str(cell)


def parts_of(text: str) -> Iterator[str]:
    """The values in a text.

    >>> sorted(set(parts_of("Port of Ghent, B-1042")))
    ['b1042', 'ghentb1042', 'portofghentb1042']
    """
    if len(letters := squeezed(text)) >= LEAST:
        yield letters
    words = [part for part in re.split(r"\s+", text) if squeezed(part)]
    if len(words) < 2:
        return
    squeezed_words = [squeezed(word) for word in words]
    yield from (word for word in squeezed_words if len(word) >= LEAST and any(char.isdigit() for char in word))
    pairs = (one + two for one, two in pairwise(squeezed_words))
    yield from (pair for pair in pairs if len(pair) >= LEAST_PAIR)


def is_in(value: str, letters: str, numbers: set[str]) -> bool:
    """Whether it is there; a short number only as a number of its own."""
    return value in numbers if value.isdecimal() and len(value) < CERTAIN else value in letters


def squeezed(text: str) -> str:
    """Letters and digits alone.

    >>> squeezed("TOP-Secret ４2")
    'topsecret42'
    """
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())


def runs_of(text: str) -> set[str]:
    """The words of a text, and a few in a row.

    >>> sorted(runs_of("Ship B-7 now"))
    ['7', '7now', 'b', 'b7', 'b7now', 'now', 'ship', 'shipb', 'shipb7', 'shipb7now']
    """
    words = [squeezed(word) for word in WORD.findall(text)]
    return {"".join(words[at : at + size]) for size in range(1, LONGEST_RUN + 1) for at in range(len(words))}


def readings_of(text: str) -> list[str]:
    """The text, and what it says where a part of it is encoded."""
    readings = dict.fromkeys([text, *leaves_of(decoded_json(text))])
    fresh = list(readings)
    for _ in range(DEPTH):
        fresh = [new for one in fresh for new in undone(one) if new not in readings]
        readings |= dict.fromkeys(fresh)
        if len(readings) > MOST_READINGS:
            raise ToolError("The input is encoded again and again: write it plainly.", refused=True)
    return list(readings)


def leaves_of(value: object) -> list[str]:
    """The texts of a JSON value, each, and together as if they were one."""
    texts = list(texts_of(value))
    inner = list(texts_of(list(value.values()) if isinstance(value, dict) else value))
    return [*texts, "".join(inner)]


def undone(text: str) -> Iterator[str]:
    yield unquote_plus(text)
    yield html.unescape(text)
    yield re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    packed = BETWEEN.sub("", text)
    for token in dict.fromkeys(CODED.findall(f"{text} {packed}")):
        for raw in bytes_of(token):
            for codec in ("utf-8", "utf-16-le", "utf-16-be"):
                plain = raw.decode(codec, "ignore")
                if len(squeezed(plain)) >= LEAST and sum(map(str.isprintable, plain)) > 0.8 * len(plain):
                    yield plain


def bytes_of(token: str) -> Iterator[bytes]:
    """What a token of base64 (from each of its first four characters), base32 or hexadecimal holds."""
    letters = token.rstrip("=").replace("-", "+").replace("_", "/")
    for at in range(4):
        part = letters[at:]
        part = part[: len(part) - (len(part) % 4 == 1)]
        try:
            yield base64.b64decode(part + "=" * (-len(part) % 4))
        except (binascii.Error, ValueError):
            continue
    for decode in (bytes.fromhex, lambda one: base64.b32decode(one + "=" * (-len(one) % 8), casefold=True)):
        try:
            yield decode(re.sub(r"[-_+/=]", "", token))
        except (binascii.Error, ValueError):
            continue


def decoded_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
