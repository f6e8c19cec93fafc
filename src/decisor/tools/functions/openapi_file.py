"""A file of JSON or YAML from a stranger, as plain values within caps on bytes, depth and parts. Nothing is fetched and
nothing is built but texts, numbers, truth values, lists and objects; its texts hide nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.extras import lacks
from decisor.outside import clean_text, one_line
from decisor.types import Value

if TYPE_CHECKING:
    import yaml

MAX_BYTES, MOST_PARTS, DEEPEST = 20 * 2**20, 1_000_000, 100
DEEP = f"it is nested deeper than {DEEPEST}"
MANY = f"it has more than {MOST_PARTS:,} parts, counting what its aliases repeat"
PLAIN = {"": None, "~": None, "null": None, "true": True, "false": False}
WHOLE = re.compile(r"[-+]?\d{1,19}")
DECIMAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")


class Unusable(Exception):
    """The text is for the person who named the file."""


def read_file(path: Path) -> Mapping[str, Value]:
    """
    Raises:
        SetupError: it cannot be read, is neither JSON nor YAML, holds no object, or is beyond a cap.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SetupError(f"{path} is over {MAX_BYTES >> 20} MB: name a smaller part of the API.")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or error
        raise SetupError(f"Cannot read the OpenAPI document {path}: {why}.") from error
    return read_text(text, path)


def read_text(text: str, path: Path) -> Mapping[str, Value]:
    """``path``: what errors call it, and its ending. Raises as ``read_file``."""
    try:
        value = Copy().copy(parse(text, path))
    except (Unusable, RecursionError) as error:
        raise SetupError(f"{path} cannot be used: {str(error) if isinstance(error, Unusable) else DEEP}.") from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} is no OpenAPI document: it holds no object.")
    return value


@dataclass
class Copy:
    """A copy of a value, counted part by part: what YAML's aliases repeat counts each time."""

    parts: int = 0

    def copy(self, value: Value, depth: int = 0) -> Value:
        self.parts += 1
        if depth > DEEPEST:
            raise Unusable(DEEP)
        if self.parts > MOST_PARTS:
            raise Unusable(MANY)
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, dict):
            return {clean_text(key): self.copy(item, depth + 1) for key, item in value.items()}
        return [self.copy(item, depth + 1) for item in value] if isinstance(value, list) else value


def parse(text: str, path: Path) -> Value:
    try:
        value: Value = json.loads(text)
        return value
    except ValueError as error:
        if path.suffix == ".json":
            raise SetupError(f"{path} is not JSON: {error}.") from error
    try:
        import yaml
    except ImportError as error:
        raise lacks(f"{path} is YAML, and reading it needs pyyaml (or make it JSON)", "openapi") from error
    try:
        return YamlReader(yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))).read()
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is neither JSON nor YAML: {one_line(str(error), 300)}.") from error


class YamlReader:
    """Values from the parser's events: what JSON can hold, with aliases and merge keys. Tags build nothing."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self.events, self.anchors, self.parts = events, dict[str, Value](), 0

    def read(self) -> Value:
        """The first document. Raises Unusable, and YAMLError where it is no YAML."""
        from yaml import events

        for event in self.events:
            if isinstance(event, events.DocumentStartEvent):
                return self.value(next(self.events), 0)
        return None

    def value(self, event: yaml.Event, depth: int) -> Value:
        from yaml import events

        self.count(1)
        if depth > DEEPEST:
            raise Unusable(DEEP)
        if isinstance(event, events.AliasEvent):
            if event.anchor not in self.anchors:
                raise Unusable(f"its alias *{one_line(str(event.anchor), 40)} stands for nothing, or for what it is in")
            return self.anchors[event.anchor]
        if isinstance(event, events.ScalarEvent):
            value = scalar(event.value) if event.implicit[0] else event.value
        elif isinstance(event, events.SequenceStartEvent):
            value = [self.value(one, depth + 1) for one in self.until(events.SequenceEndEvent)]
        else:
            value = self.mapping(depth)
        if anchor := getattr(event, "anchor", None):
            self.anchors[anchor] = value
        return value

    def mapping(self, depth: int) -> Value:
        from yaml import events

        own: dict[str, Value] = {}
        merged: dict[str, Value] = {}
        for event in self.until(events.MappingEndEvent):
            is_plain = isinstance(event, events.ScalarEvent) and event.implicit[0]
            key = self.value(event, depth + 1)
            item = self.value(next(self.events), depth + 1)
            if is_plain and key == "<<":
                for one in item if isinstance(item, list) else [item]:
                    merged = {**self.merge(one), **merged}
                continue
            if isinstance(key, dict | list):
                raise Unusable("it has a key that is no text")
            own[event.value if isinstance(event, events.ScalarEvent) else str(key)] = item
        return {**merged, **own}

    def merge(self, value: Value) -> Mapping[str, Value]:
        if not isinstance(value, dict):
            raise Unusable("it has a merge key << that stands for no object")
        self.count(len(value))
        return value

    def count(self, parts: int) -> None:
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise Unusable(MANY)

    def until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        for event in self.events:
            if isinstance(event, end):
                return
            yield event


def scalar(text: str) -> Value:
    """As YAML 1.2 reads a plain scalar, so that ``no`` and ``2024-01-01`` stay texts.

    >>> scalar("7"), scalar("1e3"), scalar("no"), scalar("~"), scalar("True")
    (7, 1000.0, 'no', None, True)
    """
    if text.lower() in PLAIN and text in (text.lower(), text.title(), text.upper()):
        return PLAIN[text.lower()]
    if WHOLE.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else text
