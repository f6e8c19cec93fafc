"""A trace holds no keys and no passwords that a model wrote: its replies, its queries, its plans, and the prompts that
show them again. What tools brought back stays as it is, for it is the evidence.

A prompt repeats the one before it, so only its new lines are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from decisor.secrets import redacted_text
from decisor.trace.prompts import common_length
from decisor.types import Message


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
