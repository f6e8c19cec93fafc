"""A prompt that knows its parts: the lines of records in it, which it may lose where it would be too long.

Techniques write prompts from templates. Text about records is a ``Text``, which carries its records along through
``+``, ``joined`` and the ``Template`` of this file; any other operation makes it a plain text, which loses nothing.
"""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from decisor.asking import worded
from decisor.types import Message

NOTICE = "({count} left out here, because the prompt would be too long.)"


@dataclass(frozen=True, slots=True)
class Section:
    """A record as it stands in a prompt: its id and its line. Those of one observation are in its order.

    ``ranked``: a retriever put it at its place, so what is last is worth the least; else what is oldest.
    """

    id: str
    line: str
    ranked: bool = False


class Text(str):
    """A text with the records in it, in their order."""

    sections: tuple[Section, ...]

    def __new__(cls, text: str, sections: Iterable[Section] = ()) -> Text:
        made_text = super().__new__(cls, text)
        made_text.sections = tuple(sections)
        return made_text

    def __add__(self, other: str) -> Text:
        return Text(str.__add__(self, other), self.sections + sections_of(other))

    def __radd__(self, other: str) -> Text:
        return Text(str.__add__(other, self), sections_of(other) + self.sections)


def sections_of(text: str) -> tuple[Section, ...]:
    return text.sections if isinstance(text, Text) else ()


def joined(between: str, texts: Sequence[str]) -> Text:
    """``between.join(texts)``, with the records of all."""
    return Text(between.join(texts), [section for text in texts for section in sections_of(text)])


class Template(string.Template):
    """A template whose result has the records of what is put into it. A person may have put it in other words."""

    def substitute(self, mapping: Mapping[str, object] = MappingProxyType({}), /, **values: object) -> Text:
        values = {**mapping, **values}
        texts: list[str] = []
        sections: list[Section] = []
        for before, name in pieces_of(worded(self.template)):
            texts.append(before)
            if name:
                value = values[name]
                if isinstance(value, Text) and value.sections:
                    texts.append(value)
                    sections += value.sections
                else:
                    texts.append(worded(str(value)))
        return Text("".join(texts), sections)


@lru_cache(maxsize=256)
def pieces_of(template: str) -> tuple[tuple[str, str], ...]:
    """Plain text, and the name of what comes after it, '' where nothing does.

    >>> pieces_of("To $name: ${sum}$$")
    (('To ', 'name'), (': ', 'sum'), ('$', ''), ('', ''))

    Raises:
        ValueError: a $ without a name.
    """
    pieces, at = [], 0
    for match in string.Template.pattern.finditer(template):
        if match["invalid"] is not None:
            string.Template(template).substitute(defaultdict(str))  # which raises
        dollar = "$" if match["escaped"] else ""
        pieces.append((template[at : match.start()] + dollar, match["named"] or match["braced"] or ""))
        at = match.end()
    return (*pieces, (template[at:], ""))


@dataclass(frozen=True, slots=True)
class Shortened:
    """A prompt without some of its records; ``left_out``: their ids, what was worth the least first."""

    messages: tuple[Message, ...]
    left_out: tuple[str, ...]


def shorten(
    messages: Sequence[Message], room: int, count: Callable[[Sequence[Message]], int], size: Callable[[str], int]
) -> Shortened | None:
    """The prompt with as few whole records left out as it takes to have at most ``room`` tokens: those that rank last
    in what a retriever brought, then those of the oldest observations. None where even without any it has more.

    ``count``: the tokens of a prompt; ``size``: of a line.
    """
    order = by_worth([section for message in messages for section in sections_of(message.content)])
    at, now = 0, tuple(messages)
    while (over := count(now) - room) > 0:
        if at == len(order):
            return None
        while over > 0 and at < len(order):
            over -= size(order[at].line)
            at += 1
        gone = frozenset(order[:at])
        now = tuple(replace(message, content=without(message.content, gone)) for message in messages)
    return Shortened(now, tuple(section.id for section in order[:at]))


def by_worth(sections: Sequence[Section]) -> list[Section]:
    """Each once, what is worth the least first."""
    observations: dict[str, list[Section]] = {}
    for section in dict.fromkeys(sections):
        observations.setdefault(observation_of(section), []).append(section)
    places = {
        section: (False, -rank, age) if section.ranked else (True, age, -rank)
        for age, own in enumerate(observations.values())
        for rank, section in enumerate(own)
    }
    return sorted(places, key=places.__getitem__)


def observation_of(section: Section) -> str:
    return section.id.partition(".")[0]


def same_observation(one: Section, other: Section) -> bool:
    return observation_of(one) == observation_of(other)


def without(text: str, gone: Collection[Section]) -> str:
    """The text with a notice in place of each row of neighbours that are gone."""
    left, plain, at = [], str(text), 0
    sections = sections_of(text)
    while at < len(sections):
        row = at
        while row < len(sections) and sections[row] in gone and same_observation(sections[at], sections[row]):
            row += 1
        if row == at:
            left.append(sections[at])
            at += 1
            continue
        notice = NOTICE.format(count="1 record is" if row - at == 1 else f"{row - at} records are")
        for number, section in enumerate(sections[at:row]):
            plain = without_line(plain, section.line, "" if number else notice)
        at = row
    return Text(plain, left)


def without_line(text: str, line: str, notice: str = "") -> str:
    """
    >>> without_line("a\\nb\\nc", "b"), without_line("a\\nb", "b"), without_line("ab\\nb\\nbc", "b", "-")
    ('a\\nc', 'a', 'ab\\n-\\nbc')
    """
    at = f"\n{text}\n".find(f"\n{line}\n")
    at = text.find(line) if at < 0 else at  # within a line of a template
    if at < 0:
        return text
    end = at + len(line)
    if not notice and text[end : end + 1] == "\n":
        end += 1
    elif not notice and text[at - 1 : at] == "\n":
        at -= 1
    return text[:at] + notice + text[end:]
