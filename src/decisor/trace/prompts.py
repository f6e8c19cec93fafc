"""Prompts of one conversation, each kept as what it adds to an earlier one.

A loop sends its whole history with every call, so keeping every prompt whole would grow with the square of its length.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from decisor.types import Message

LINKS = 32
"""After so many prompts that build on each other one is kept whole, so that reading any is quick."""
WORTH = 100
"""Characters that must be alike for one to be kept as what it adds."""
SPANS = 16


@dataclass(frozen=True, eq=False)
class Prompt(Sequence[Message]):
    """Reads like the list of its messages.

    ``entry``: the number of its entry. It begins with ``same`` messages of ``before``; of the message after those, the
    first ``start`` and the last ``end`` characters are as there, and ``new`` begins with what is between. Without
    ``before``, ``new`` is all.
    """

    entry: int
    new: tuple[Message, ...]
    before: Prompt | None = None
    same: int = 0
    start: int = 0
    end: int = 0

    def whole(self) -> tuple[Message, ...]:
        links: list[Prompt] = []
        at = self
        while at.before is not None:
            links.append(at)
            at = at.before
        messages = at.new
        for link in reversed(links):
            messages = extend(messages, link.new, link.same, link.start, link.end)
        return messages

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...
    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        return self.whole()[at]

    def __iter__(self) -> Iterator[Message]:
        return iter(self.whole())

    def __len__(self) -> int:
        return self.same + len(self.new)

    def as_addition(self) -> object:
        """For a line of a trace file: a list of messages, or an object that names the entry it builds on."""
        new = [{"role": message.role, "content": message.content} for message in self.new]
        if self.before is None:
            return new
        return {"since": self.before.entry, "same": self.same, "start": self.start, "end": self.end, "new": new}


@dataclass(slots=True)
class PromptHistory:
    """The last prompt of each of the latest spans, whole, to compare the next one with."""

    last: OrderedDict[int, tuple[Prompt, tuple[Message, ...], int]] = field(default_factory=OrderedDict)

    def latest(self, span: int) -> tuple[Message, ...]:
        """The last prompt of a span; nothing where it has none."""
        return self.last[span][1] if span in self.last else ()

    def add(self, messages: Sequence[Message], span: int, entry: int) -> Prompt:
        """``messages`` as what they add to the last prompt of their span."""
        whole = tuple(messages)
        before, earlier, links = self.last.pop(span, (None, (), 0))
        prompt = Prompt(entry, whole)
        if before is not None and links < LINKS:
            prompt = addition(entry, whole, before, earlier)
        self.last[span] = prompt, whole, links + 1 if prompt.before else 0
        if len(self.last) > SPANS:
            self.last.popitem(last=False)
        return prompt


def addition(entry: int, whole: tuple[Message, ...], before: Prompt, earlier: tuple[Message, ...]) -> Prompt:
    """``whole`` as what it adds to ``before``, whose messages are ``earlier``; whole where they have little alike."""
    same = 0
    while same < min(len(whole), len(earlier)) and whole[same] == earlier[same]:
        same += 1
    new, start, end = whole[same:], 0, 0
    if new and same < len(earlier) and earlier[same].role == new[0].role:
        here, there = new[0].content, earlier[same].content
        start = common_length(here, there, False)
        end = min(common_length(here, there, True), len(here) - start, len(there) - start)
        new = (Message(new[0].role, here[start : len(here) - end]), *new[1:])
    if start + end + sum(len(message.content) for message in whole[:same]) < WORTH:
        return Prompt(entry, whole)
    return Prompt(entry, new, before, same, start, end)


def extend(earlier: Sequence[Message], new: Sequence[Message], same: int, start: int, end: int) -> tuple[Message, ...]:
    """The messages of a prompt that was kept as what it adds to ``earlier``."""
    if not (start or end):
        return (*earlier[:same], *new)
    there = earlier[same].content
    first = Message(new[0].role, there[:start] + new[0].content + there[len(there) - end :])
    return (*earlier[:same], first, *new[1:])


def common_length(one: str, other: str, at_the_end: bool) -> int:
    """How many characters both begin with, or end with.

    >>> common_length("step 1, step 2", "step 1, and", False), common_length("a line.", "no line.", True)
    (8, 6)
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if at_the_end:
            equal = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        else:
            equal = one[low:middle] == other[low:middle]
        low, high = (middle, high) if equal else (low, middle - 1)
    return low


def messages_of(addition: Any, earlier: Mapping[int, Sequence[Message]]) -> tuple[Message, ...]:
    """The messages that a line of a trace file holds, or that it builds on those of an ``earlier`` entry.

    Raises KeyError, IndexError or TypeError where it holds none.
    """
    if isinstance(addition, Mapping):
        new = [Message(**message) for message in addition["new"]]
        return extend(earlier[addition["since"]], new, addition["same"], addition["start"], addition["end"])
    return tuple(Message(**message) for message in addition)
