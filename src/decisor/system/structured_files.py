"""The TOML files that a person writes, decoded by a ``DocumentFormat``, with the line of every fault.

The parser of the standard library does not tell where a key stands, so the lines of keys are found here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from decisor.errors import ModelMistake, SetupError
from decisor.system.serialization import SECTION_NAME, DecodeError, DocumentFormat, DocumentPath
from decisor.system.text import fit_on_one_line

HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
PIECE = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
Lines = Mapping[tuple[str, ...], int]
T = TypeVar("T")


def find_line_numbers(text: str) -> Lines:
    """Find the line, from 1, of every table and key of a TOML text.

    A list of tables counts from 1: ("example", "2", "choice").

    >>> numbers = find_line_numbers('a = 1\\n[measure.cost]\\nsql = \"\"\"\\nb = 2\"\"\"\\ngoal = "min"')
    >>> numbers[("measure", "cost", "goal")]
    5
    """
    places: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not quote:
            if header := HEADER.match(line):
                table = split_key(header[2])
                # Each [[table]] begins a new item of its list.
                if header[1] == "[[":
                    counts[table] = counts.get(table, 0) + 1
                    table = (*table, str(counts[table]))
                places.setdefault(table, number)
            elif key := KEY.match(line):
                places.setdefault((*table, *split_key(key[1])), number)
        # SQL in triple quotes has lines that look like keys.
        quote = track_open_quote(line, quote)
    return places


def split_key(name: str) -> tuple[str, ...]:
    return tuple(one.strip("\"'") for one in PIECE.findall(name))


def track_open_quote(line: str, quote: str) -> str:
    """Return the triple quotes that are open at the end of a line; '' if none are."""
    for mark in re.findall(r'"""|\'\'\'', line):
        if not quote:
            quote = mark
        elif mark == quote:
            quote = ""
    return quote


def find_line_number(lines: Lines, path: tuple[str, ...]) -> int:
    """Return the line of a key, or of the nearest part around it; 0 if the text has neither."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


MAX_CHARS = 1_000_000
SHOWN_FAULTS = 8
LONGEST_FAULT = 400
"""Characters."""


class FileFault(ModelMistake):
    """The faults of a file that a person or an LLM wrote: line (from 1, 0 if unknown) and complaint of each."""

    def __init__(self, faults: Sequence[tuple[int, str]]) -> None:
        super().__init__(format_faults(faults))
        self.faults = tuple(faults)


class TomlFile:
    """A TOML text with the lines of its keys."""

    def __init__(self, text: str) -> None:
        """Parse the text; raise FileFault if it is not TOML."""
        try:
            self.content = parse_toml(text)
        except TomlFault as error:
            raise FileFault([(error.line, str(error))]) from error
        self.lines = find_line_numbers(text)

    def name_sections(self, *groups: str) -> None:
        """Tell each section of these groups its name ([metric.revenue]), for a field marked ``SectionName``."""
        for group in groups:
            sections = self.content.get(group)
            for name, section in sections.items() if isinstance(sections, dict) else ():
                if isinstance(section, dict):
                    section[SECTION_NAME] = name

    def decode(self, layout: DocumentFormat[T], document: str = "", table: DocumentPath = ()) -> T:
        """Decode the content, or one table of it; raise FileFault with all faults. document: its kind in words."""
        try:
            content: Any = self.content
            for key in table:
                content = content[key]
            return layout.decode_value(content)
        except DecodeError as error:
            faults = [self.locate((*table, *path), words, document) for path, words in error.faults]
            raise FileFault(sorted(faults)) from error

    def locate(self, path: DocumentPath, words: str, document: str = "") -> tuple[int, str]:
        """Return the line of a fault, and its complaint with the keys that lead to it."""
        keys = tuple(str(step + 1) if isinstance(step, int) else step for step in path)
        # A table that only has subtables ([measure.cost] without [measure]) has no line of its own.
        inner = [line for key, line in self.lines.items() if key[: len(keys)] == keys]
        at = min(inner) if keys and inner else find_line_number(self.lines, keys)
        return at, f"{'.'.join(keys) or document} {words}".lstrip()


class TomlFault(ModelMistake):
    """A fault of a text that is no TOML. line: from 1."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


def read_text_file(path: Path, what: str) -> str:
    """Read the text of a file that a person wrote; raise SetupError if it cannot be read. what: its kind, such as a
    decision model.
    """
    try:
        # Editors of Windows put a byte order mark first, which is no TOML.
        with path.open(encoding="utf-8-sig") as file:
            # One more than allowed tells that it is too long, whatever the file's size.
            text = file.read(MAX_CHARS + 1)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not UTF-8: {error.reason}.") from error
    if len(text) > MAX_CHARS:
        raise SetupError(f"{path}: {what} has at most {MAX_CHARS:,} characters.")
    return text


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text; raise TomlFault if it is not TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        match = re.search(r"\(at line (\d+), column \d+\)", str(error))
        words = re.sub(r" \(at (line \d+.*|end of document)\)$", "", str(error))
        raise TomlFault(int(match[1]) if match else text.count("\n") + 1, f"this is not TOML: {words}") from error


def format_faults(faults: Sequence[tuple[int, str]]) -> str:
    """Format faults with their lines as one line of text.

    >>> format_faults([(3, "no name"), (0, "no measure")])
    'line 3: no name; no measure.'
    """
    # A fault quotes what was found there, which may be long or have several lines.
    lines = [(f"line {line}: " if line else "") + fit_on_one_line(words, LONGEST_FAULT) for line, words in faults]
    more = [f"and {len(faults) - SHOWN_FAULTS} more"] if len(faults) > SHOWN_FAULTS else []
    return "; ".join([*lines[:SHOWN_FAULTS], *more]) + "."


@dataclass(frozen=True)
class Finding:
    """A problem that a check reports. number: of the check, 0 if checks have none. line: in the file, 0 if unknown.

    A ``doubt`` may be right as it is.
    """

    number: int
    line: int
    words: str
    kind: Literal["error", "doubt"] = "error"

    def __str__(self) -> str:
        # Some checks name the line in their words already.
        place = f"line {self.line}: " if self.line and not self.words.startswith("line ") else ""
        check = f" (check {self.number})" if self.number else ""
        return f"{place}{'' if self.kind == 'error' else 'doubt: '}{self.words}{check}"
