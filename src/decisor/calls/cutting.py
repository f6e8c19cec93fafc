"""What is done to a prompt that an endpoint calls too long and that has no records to leave out."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.types import Message

GAP = "\n[... left out, because the conversation is too long ...]\n"
SHORTEST_CUT = 400


def cut_in_half(messages: Sequence[Message]) -> list[Message] | None:
    """Half of it: the longest messages lose their middle first, those of the system stay. None where that is no help.

    >>> [len(m.content) for m in cut_in_half([Message("system", "s" * 50), Message("user", "u" * 10_000)])]
    [50, 4975]
    """
    texts = [message.content for message in messages]
    goal = sum(map(len, texts)) // 2
    able = [i for i, message in enumerate(messages) if message.role != "system" and len(message.content) > SHORTEST_CUT]
    while able and (over := sum(map(len, texts)) - goal) > 0:
        at = max(able, key=lambda i: len(texts[i]))
        text = texts[at]
        keep = max(len(text) - over - len(GAP), len(text) // 4)
        texts[at] = text[: keep * 2 // 5] + GAP + text[len(text) - (keep - keep * 2 // 5) :]
        able.remove(at)
    if sum(map(len, texts)) > goal * 1.5:
        return None
    return [Message(message.role, text) for message, text in zip(messages, texts, strict=True)]
