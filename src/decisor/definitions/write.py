"""Definitions as the text of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from decisor.definitions.format import KIND, Definition, Definitions, Origin, ValueWords
from decisor.outside import one_line
from decisor.replies.toml_reply import key_text, value_text

KEYS = {"source": "from"}


@dataclass(frozen=True)
class Import:
    """``notes``: what was left out, and why."""

    definitions: Definitions
    notes: Sequence[str] = ()

    def text(self) -> str:
        """As a file, what was left out as comments at its head."""
        return "".join(f"# Left out: {one_line(note, 200)}\n" for note in self.notes) + written(self.definitions)


def written(definitions: Iterable[Definition]) -> str:
    """A section each, an empty line between two."""
    return "\n".join(section(one) for one in definitions)


def section(one: Definition) -> str:
    """
    >>> from decisor.definitions.format import Reading
    >>> print(section(Reading("best", ["best customer"], "by revenue", origin=Origin(by="ann"))), end="")
    [reading.best]
    words = "best customer"
    means = "by revenue"
    by = "ann"
    """
    head = f"[{KIND[type(one)]}.{key_text(one.name)}]"
    if isinstance(one, ValueWords):
        lines = [f"{key_text(value)} = {text_of(list(words))}" for value, words in one.words.items()]
    else:
        lines = [f"{KEYS.get(field.name, field.name)} = {text_of(value)}" for field in fields(one)
                 if field.name not in ("name", "origin") and (value := getattr(one, field.name)) not in ("", (), [])
                 and value != field.default]  # fmt: skip
    origin = [f"{field.name} = {text_of(value)}" for field in fields(Origin)
              if (value := getattr(one.origin, field.name))]  # fmt: skip
    return "\n".join([head, *lines, *origin, ""])


def text_of(value: object) -> str:
    """A text, a list of texts, true or false, as TOML.

    >>> print(text_of(["a", 'b"c']), text_of(True), text_of("x\\x7f"))
    ["a", 'b"c'] true "x\\u007f"
    """
    if isinstance(value, list | tuple):
        if len(value) == 1:
            return text_of(value[0])
        return f"[{', '.join(text_of(one) for one in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key_text(key)} = {text_of(one)}' for key, one in value.items())} }}"
    return value_text(value)
