"""A trace holds no keys and no passwords that a model wrote: its replies, its queries, its plans, and the prompts that
show them again. What tools brought back stays as it is, for it is the evidence.

A prompt repeats the one before it, so only its new lines are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from itertools import zip_longest
from typing import TypeVar

from decisor.secrets import may_hold_secrets, redact
from decisor.trace.prompts import common_length
from decisor.types import Message, Observation, Record

T = TypeVar("T")
PEM = "-----BEGIN"
EVIDENCE = (Observation, Record)
PLAIN = (int, float, type(None))


@lru_cache(maxsize=4096)
def redacted_line(line: str) -> str:
    return redact(line)


def redacted_text(text: str) -> str:
    """The text itself where it holds nothing to hide.

    >>> redacted_text("SELECT 1\\nATTACH 'postgresql://me:hunter22@host/shop'")
    "SELECT 1\\nATTACH 'postgresql://me:[hidden]@host/shop'"
    """
    if not may_hold_secrets(text):
        return text
    if PEM in text:
        return redact(text)
    lines = text.split("\n")
    hidden = [redacted_line(line) for line in lines]
    return text if hidden == lines else "\n".join(hidden)


def redacted_messages(messages: Sequence[Message], before: Sequence[Message] = ()) -> Sequence[Message]:
    """``before``: an earlier prompt, redacted, which this one may repeat."""
    hidden = [
        redacted_after(message.content, old.content if old else "")
        for message, old in zip_longest(messages, before[: len(messages)])
    ]
    if all(text is message.content for text, message in zip(hidden, messages, strict=True)):
        return messages
    return [Message(message.role, text) for text, message in zip(hidden, messages, strict=True)]


def redacted_after(text: str, before: str) -> str:
    """What ``text`` begins with as ``before`` does, in whole lines, was looked at."""
    if text == before:
        return text
    cut = text.rfind("\n", 0, common_length(text, before, False)) + 1
    new = text[cut:]
    return text if (hidden := redacted_text(new)) is new else text[:cut] + hidden


def redacted(value: T) -> T:
    """An event, or a part of one, the same object where it holds nothing to hide. Observations and records stay."""
    if isinstance(value, str):
        return redacted_text(value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        parts = tuple(map(redacted, value))
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else parts  # type: ignore[return-value]
    if not is_dataclass(value) or isinstance(value, (type, *EVIDENCE)):
        return value
    changes = {}
    for name in names_of(type(value)):
        old = getattr(value, name)
        if not isinstance(old, PLAIN) and (new := redacted(old)) is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value


@cache
def names_of(kind: type) -> tuple[str, ...]:
    """Of its fields."""
    return tuple(one.name for one in fields(kind))
