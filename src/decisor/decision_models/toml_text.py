"""The text of a TOML file that a person wrote, and what is wrong with it, in words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decisor.errors import ModelMistake, SetupError
from decisor.outside import one_line

MAX_CHARS = 1_000_000
SHOWN_FAULTS = 8
LONGEST_FAULT = 400
"""Characters."""


class TomlFault(ModelMistake):
    """A text is no TOML. ``line``: where, from 1."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


def file_text(path: Path, what: str) -> str:
    """Of ``what``, such as a decision model. Raises SetupError where it cannot be read."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MAX_CHARS + 1)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not UTF-8: {error.reason}.") from error
    if len(text) > MAX_CHARS:
        raise SetupError(f"{path}: {what} has at most {MAX_CHARS:,} characters.")
    return text


def toml_of(text: str) -> dict[str, Any]:
    """Raises TomlFault where it is none."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        match = re.search(r"\(at line (\d+), column \d+\)", str(error))
        words = re.sub(r" \(at (line \d+.*|end of document)\)$", "", str(error))
        raise TomlFault(int(match[1]) if match else text.count("\n") + 1, f"this is not TOML: {words}") from error


def faults_in_words(faults: Sequence[tuple[int, str]]) -> str:
    """
    >>> faults_in_words([(3, "no name"), (0, "no measure")])
    'line 3: no name; no measure.'
    """
    lines = [(f"line {line}: " if line else "") + one_line(words, LONGEST_FAULT) for line, words in faults]
    more = [f"and {len(faults) - SHOWN_FAULTS} more"] if len(faults) > SHOWN_FAULTS else []
    return "; ".join([*lines[:SHOWN_FAULTS], *more]) + "."
