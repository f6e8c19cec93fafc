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

from decisor.errors import ToolError
from decisor.runtime.budget import pause_clocks
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
    """A value of a row that the run has seen."""

    letters: str
    """Compared form: letters and digits alone."""
    place: str
    """Its source and record."""
    is_governed: bool
    """Whether parts of the source are hidden from some readers."""


@dataclass(eq=False)
class RowValues:
    """The values that one run has seen, and a person's permissions for tools. Forks share it."""

    policy: RowValuePolicy = "ask"
    release: Release | None = None
    question: str = ""
    values: dict[str, RowValue] = field(default_factory=dict)
    allows_tool: dict[str, bool] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def learn(self, observation: Observation, tool: Tool, members: Sequence[Tool]) -> None:
        """Add the values of an observation.

        Tools that neither read sources nor compute with their records are skipped.
        """
        if tool.name == PERSON or is_outward(tool):
            return
        # What is computed may come from any source.
        origins = [tool] if isinstance(tool, RowSource) else members
        self.add(observation, tool.name, any(map(is_governed, origins)))

    def add_examples(self, tools: Sequence[Tool]) -> None:
        """Add the values that the descriptions of sources show."""
        for tool in tools:
            if isinstance(tool, RowSource):
                examples = (" ".join(iterate_cell_texts(parse_json_or_text(text))) for text in tool.examples())
                self.add_texts(examples, tool.name, tool.is_restricted)

    def add(self, observation: Observation, place: str, governed: bool) -> None:
        """Add the values of an observation's records and of the quotations in its note."""
        for record in observation.records:
            cells = [*record.fields.values(), record.text]
            self.add_texts(
                (text for cell in cells for text in iterate_cell_texts(cell)), f"{place} {record.id}", governed
            )
        self.add_texts((single or double for single, double in QUOTED.findall(observation.note)), place, governed)

    def add_texts(self, texts: Iterable[str], place: str, governed: bool) -> None:
        for text in texts:
            for letters in iterate_row_values(text):
                known = self.values.get(letters)
                if known is None or (governed and not known.is_governed):
                    self.values[letters] = RowValue(letters, place, governed)

    def find(self, text: str, about: str = "") -> list[RowValue]:
        """Return the values in an input, governed ones first.

        ``about``: the tool's description, whose words do not count.
        """
        known = build_word_runs(self.question) | build_word_runs(about)
        readings = decode_input(text)
        # Both ways round, with a line end between readings so that no value is found across two of them.
        letters = "\n".join(
            side
            for reading in readings
            for side in (keep_letters_and_digits(reading), keep_letters_and_digits(reading)[::-1])
        )
        numbers = {keep_letters_and_digits(match) for reading in readings for match in NUMBER.findall(reading)}
        numbers |= {digits for reading in readings for digits in re.findall(r"\d+", reading)}
        # Most values are out by their first and last letters: looking through the whole input for each takes seconds.
        starts = {letters[at : at + LEAST] for at in range(len(letters))}
        near = (value for text, value in self.values.items() if {text[:LEAST], text[-LEAST:]} <= starts)
        matches = []
        for value in near:
            # A short number counts only as a number of its own.
            is_short = value.letters.isdecimal() and len(value.letters) < CERTAIN
            if value.letters not in known and value.letters in (numbers if is_short else letters):
                matches.append(value)
        return sorted(matches, key=lambda value: not value.is_governed)

    async def check(self, action: Action, tool: Tool, is_watched: bool = False) -> None:
        """Raise ToolError (refused) if the tool may not get its input.

        ``is_watched``: a person approves each action.
        """
        if not self.values:
            return
        first = next(iter(self.find(action.input, f"{tool.name} {tool.describe()}")), None)
        if first is None:
            return
        if first.is_governed:
            raise ToolError(
                f"{action.tool} was not called: its input holds a value of {first.place}, of which not "
                "everything is for everybody. Such values never go to a tool. Do without it.",
                refused=True,
            )
        if is_watched or self.policy == "allow":
            return
        if self.policy == "refuse" or not await self.is_allowed(action, first):
            raise ToolError(
                f"{action.tool} was not called: its input holds a value of {first.place}, and nobody has "
                f"allowed tools to get values of rows. Do without it. (For people: {HOW}.)",
                refused=True,
            )

    async def is_allowed(self, action: Action, first: RowValue) -> bool:
        """Return whether a person lets this tool get values of rows. The person is asked once for each tool."""
        if self.release is None:
            return False
        # One at a time: parallel branches would ask the same question twice.
        async with self.turn:
            if action.tool not in self.allows_tool:
                with pause_clocks():
                    self.allows_tool[action.tool] = await self.release(
                        f"May {action.tool} get values of rows, now and later in this run? It would be sent "
                        f"{action.input[:300]!r} (a value of {first.place})"
                    )
        return self.allows_tool[action.tool]


def is_outward(tool: Tool) -> bool:
    """Return whether a tool may send its input out: a function, an API, an MCP server or a custom object."""
    return not (isinstance(tool, RowSource | CalculatorTool) or tool.name in INSIDE)


def is_governed(tool: Tool) -> bool:
    """Return whether a tool's source has hidden parts: rows, columns, tables, labels or documents."""
    return isinstance(tool, RowSource) and tool.is_restricted


def iterate_cell_texts(cell: object) -> Iterator[str]:
    """Iterate over the texts of a cell and of the values nested in it."""
    if isinstance(cell, dict):
        for key, item in cell.items():
            yield from iterate_cell_texts(key)
            yield from iterate_cell_texts(item)
    elif isinstance(cell, list | tuple):
        for item in cell:
            yield from iterate_cell_texts(item)
    elif isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        yield str(int(cell))
    elif cell is not None and not isinstance(cell, bool):
        yield str(cell)


def iterate_row_values(text: str) -> Iterator[str]:
    """Iterate over the comparable values in a text: the whole, words with a digit, pairs of words.

    >>> sorted(set(iterate_row_values("Port of Ghent, B-1042")))
    ['b1042', 'ghentb1042', 'portofghentb1042']
    """
    if len(letters := keep_letters_and_digits(text)) >= LEAST:
        yield letters
    words = [part for part in re.split(r"\s+", text) if keep_letters_and_digits(part)]
    if len(words) < 2:
        return
    squeezed_words = [keep_letters_and_digits(word) for word in words]
    yield from (word for word in squeezed_words if len(word) >= LEAST and any(char.isdigit() for char in word))
    pairs = (one + two for one, two in pairwise(squeezed_words))
    yield from (pair for pair in pairs if len(pair) >= LEAST_PAIR)


def keep_letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text, normalized and in lower case.

    >>> keep_letters_and_digits("TOP-Secret ４2")
    'topsecret42'
    """
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())


def build_word_runs(text: str) -> set[str]:
    """Return the words of a text and all runs of a few words.

    >>> sorted(build_word_runs("Ship B-7 now"))
    ['7', '7now', 'b', 'b7', 'b7now', 'now', 'ship', 'shipb', 'shipb7', 'shipb7now']
    """
    words = [keep_letters_and_digits(word) for word in WORD.findall(text)]
    return {"".join(words[at : at + size]) for size in range(1, LONGEST_RUN + 1) for at in range(len(words))}


def decode_input(text: str) -> list[str]:
    """Return a text and its decoded forms. Raise ToolError (refused) if it is encoded again and again."""
    value = parse_json_or_text(text)
    values = list(value.values()) if isinstance(value, dict) else value
    readings = dict.fromkeys([text, *iterate_cell_texts(value), "".join(iterate_cell_texts(values))])
    fresh = list(readings)
    for _ in range(DEPTH):
        fresh = [decoded for reading in fresh for decoded in decode_once(reading) if decoded not in readings]
        readings |= dict.fromkeys(fresh)
        # Each reading yields several: an input made for it would take minutes.
        if len(readings) > MOST_READINGS:
            raise ToolError("The input is encoded again and again: write it plainly.", refused=True)
    return list(readings)


def decode_once(text: str) -> Iterator[str]:
    yield unquote_plus(text)
    yield html.unescape(text)
    yield re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    # Spaces and commas between the letters of a code do not hide it.
    packed = BETWEEN.sub("", text)
    for token in dict.fromkeys(CODED.findall(f"{text} {packed}")):
        for raw in iterate_decoded_bytes(token):
            for codec in ("utf-8", "utf-16-le", "utf-16-be"):
                plain = raw.decode(codec, "ignore")
                if len(keep_letters_and_digits(plain)) >= LEAST and sum(map(str.isprintable, plain)) > 0.8 * len(plain):
                    yield plain


def iterate_decoded_bytes(token: str) -> Iterator[bytes]:
    """Iterate over the bytes that a token may encode.

    It is read as base64 (from each of its first four characters), base32 and hexadecimal.
    """
    letters = token.rstrip("=").replace("-", "+").replace("_", "/")
    # base64 that was cut out of a longer text begins at any of four places.
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


def parse_json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
