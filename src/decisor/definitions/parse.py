"""The text of a definitions file as Definitions. Every fault is named with its line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from decisor.decision_models.lines import Lines, line_of, lines_of
from decisor.decision_models.schema import faults
from decisor.decision_models.toml_text import TomlFault, faults_in_words, file_text, toml_of
from decisor.definitions.format import (
    Calendar,
    Definitions,
    Dimension,
    Entity,
    Example,
    Join,
    Metric,
    Origin,
    Reading,
    ValueWords,
)
from decisor.definitions.schema import DEFINITIONS
from decisor.errors import ModelMistake, SetupError

ORIGIN = ("by", "on", "why")
LISTS = ("synonyms", "where", "grain", "key", "left", "right", "words")


class DefinitionsFault(ModelMistake):
    """A text is no definitions file. ``faults``: line (0 where it has none) and complaint."""

    def __init__(self, faults: list[tuple[int, str]]) -> None:
        super().__init__(faults_in_words(faults))
        self.faults = tuple(faults)


def read(path: Path, metrics: Collection[str] = ()) -> Definitions:
    """Raises SetupError, with lines, where the file is missing or holds no definitions."""
    try:
        return replace(parse(text_of(path), metrics), path=str(path))
    except DefinitionsFault as error:
        raise SetupError(f"{path}: {error}") from error


def text_of(path: Path) -> str:
    """Raises SetupError where it cannot be read."""
    return file_text(path, "a definitions file")


def parse(text: str, metrics: Collection[str] = ()) -> Definitions:
    """``metrics``: names that stand in another file, and that readings may name.

    >>> parse('[metric.revenue]\\nsql = "SUM(total)"\\nfrom = "invoice"').metrics[0].whole()
    'SELECT SUM(total) AS revenue FROM invoice'
    >>> parse('[calendar.fiscal]\\nstarts = "July"')
    Traceback (most recent call last):
    decisor.definitions.parse.DefinitionsFault: line 2: calendar.fiscal.starts "July" is not in the form MM-DD.

    Raises:
        DefinitionsFault: all faults, with their lines.
    """
    definitions, wrong = parse_sound(text, metrics)
    if wrong:
        raise DefinitionsFault(wrong)
    return definitions


def parse_sound(text: str, metrics: Collection[str] = ()) -> tuple[Definitions, list[tuple[int, str]]]:
    """Return the definitions without those that have a fault, and all faults with their lines.

    Raises:
        DefinitionsFault: it is no TOML.
    """
    content = toml(text)
    lines, broken = lines_of(text), list(faults(content, DEFINITIONS))
    known = [*metrics, *(path[1] for path in lines if path[0] == "metric" and len(path) > 1)]
    wrong = [(place(lines, path), f"{'.'.join(path)} {words}") for path, words in broken]
    definitions = definitions_of(without(content, broken))
    broken = list(contradictions(definitions, known))
    wrong += [(line_of(lines, path), words) for path, words in broken]
    definitions = definitions_of(without(content, broken)) if broken else definitions
    return replace(definitions, lines=lines), sorted(wrong)


def without(content: dict[str, Any], broken: Sequence[tuple[tuple[str, ...], str]]) -> dict[str, Any]:
    """Take out the sections that have a fault."""
    for path, _ in broken:
        group = content.get(path[0]) if path else None
        if isinstance(group, dict) and len(path) > 1:
            group.pop(path[1], None)
        elif path:
            content.pop(path[0], None)
    return content


def place(lines: Lines, path: tuple[str, ...]) -> int:
    """The line of a key, or of the first thing in it; of what holds it where there is none."""
    inner = [line for key, line in lines.items() if key[: len(path)] == path]
    return min(inner) if inner else line_of(lines, path)


def toml(text: str) -> dict[str, Any]:
    """Raises DefinitionsFault where it is no TOML. A date without quotes is the text that it is written as."""
    try:
        content = toml_of(text)
    except TomlFault as error:
        raise DefinitionsFault([(error.line, str(error))]) from error
    for group in content.values():
        for section in group.values() if isinstance(group, dict) else ():
            if isinstance(section, dict) and isinstance(section.get("on"), date):
                section["on"] = section["on"].isoformat()[:10]
    return content


def definitions_of(content: Mapping[str, Any]) -> Definitions:
    """Of what fits the schema."""
    return Definitions(
        metrics=[Metric(name, **plain(one)) for name, one in content.get("metric", {}).items()],
        dimensions=[Dimension(name, **plain(one)) for name, one in content.get("dimension", {}).items()],
        calendars=[Calendar(name, **plain(one)) for name, one in content.get("calendar", {}).items()],
        entities=[Entity(name, **plain(one)) for name, one in content.get("entity", {}).items()],
        joins=[Join(name, **plain(one)) for name, one in content.get("join", {}).items()],
        values=[value_of(name, one) for name, one in content.get("value", {}).items()],
        readings=[Reading(name, **plain(one)) for name, one in content.get("reading", {}).items()],
        examples=[Example(name, **plain(one)) for name, one in content.get("example", {}).items()],
    )


def plain(one: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a section: its origin as one, a text where several may stand as one of them."""
    values = {("source" if key == "from" else key): texts(value) if key in LISTS else value
              for key, value in one.items() if key not in ORIGIN}  # fmt: skip
    return {**values, "origin": Origin(**{key: one[key] for key in ORIGIN if key in one})}


def value_of(name: str, one: Mapping[str, Any]) -> ValueWords:
    words = {key: texts(value) for key, value in one.items() if key not in ORIGIN}
    return ValueWords(name, words, Origin(**{key: str(one[key]) for key in ORIGIN if key in one}))


def texts(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def contradictions(definitions: Definitions, metrics: Collection[str] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """What no schema says: parts that need each other, and names that are nowhere."""
    names = list(dict.fromkeys([*(one.name for one in definitions.metrics), *metrics]))
    for metric in definitions.metrics:
        if bool(metric.query) == bool(metric.sql):
            yield ("metric", metric.name), f"metric.{metric.name} needs either sql with from, or query"
        elif metric.sql and not metric.source:
            yield ("metric", metric.name), f"metric.{metric.name} needs from: the rows that sql is computed over"
    for join in definitions.joins:
        if len(join.left) != len(join.right):
            yield ("join", join.name), f"join.{join.name} needs as many columns in left as in right"
    for reading in definitions.readings:
        if reading.metric and reading.metric not in names:
            there = f"there is {', '.join(names)}" if names else "there is none"
            yield (("reading", reading.name, "metric"),
                   f"reading.{reading.name} names the metric {reading.metric}; {there}")  # fmt: skip
    for example in definitions.examples:
        if not (example.sql or example.answer):
            yield ("example", example.name), f"example.{example.name} needs sql or answer"
    if len(ours := [one.name for one in definitions.calendars if one.default]) > 1:
        yield ("calendar", ours[1], "default"), f"calendar.{ours[1]} is the second default; one calendar is"
