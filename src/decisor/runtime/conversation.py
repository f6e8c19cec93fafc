"""A conversation of tool calls and results that is too long for its LLM, shortened once and then kept so.

Leaving a little more out of each prompt would give every call another beginning, and an endpoint's cache would never
hold it. So at ``FULL`` of the context many results become one line each, down to ``GOAL``, and all later prompts of the
conversation begin with the shortened messages. No message is left out: providers refuse a call without its result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from decisor.runtime.prompt import ShortPrompt
from decisor.system.wording import format_count
from decisor.types import Message

FULL, GOAL = 0.75, 0.4
"""Shares of the context: a longer prompt is shortened, down to the second."""
LATEST = 2
"""Results that stay whole as long as the prompt has the length of the goal without them."""
ROW = re.compile(r"^\[(o\d+)\.[a-z]*(\d*)[^\]\n]*\]", re.M)
HEADER = re.compile(r"^record \| (.+)$", re.M)
LINE = "{id}: {count}{columns}; ask for `rows {id} {first}` to see them again"
LONG_RESULT = 400
"""Characters; a result without rows keeps so many of its beginning."""
GAP = "(... left out, because the conversation is too long ...)"


@dataclass(slots=True)
class ShortenedConversations:
    """The conversations of a run that were shortened: their messages at that time, and the replacement."""

    beginnings: list[tuple[tuple[Message, ...], tuple[Message, ...]]] = field(default_factory=list)

    def shorten(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages of a conversation with the beginning that was sent for it the last time."""
        for whole, short in self.beginnings:
            if tuple(messages[: len(whole)]) == whole:
                return (*short, *messages[len(whole) :])
        return messages

    def keep(self, messages: Sequence[Message], short: Sequence[Message]) -> None:
        """Keep the replacement of these messages, which also replaces that of their beginning."""
        self.beginnings = [pair for pair in self.beginnings if tuple(messages[: len(pair[0])]) != pair[0]]
        self.beginnings.append((tuple(messages), tuple(short)))


def shorten_conversation(
    messages: Sequence[Message], goal: int, room: int, count: Callable[[Sequence[Message]], int]
) -> ShortPrompt:
    """Make one line of each result but the latest, and of these too while the prompt is longer than ``goal`` tokens.

    Results that the LLM has not read yet stay, but lose lines from their end while the prompt is longer than ``room``.
    Thoughts of earlier turns go: models refuse thoughts about another prompt.
    """
    now = [message if message.raw is None else replace(message, raw=None) for message in messages]
    last_reply = max((at for at, message in enumerate(now) if message.role == "assistant"), default=0)
    results, left_out = list_results(now), list[str]()
    read = [at for at in results if at < last_reply]
    for at in read:
        if at in results[-LATEST:] and count(now) <= goal:
            break
        line, ids = shorten_result(now[at].content)
        if len(line) < len(now[at].content):
            now[at] = replace(now[at], content=line)
            left_out += ids
    unread = [at for at in results if at > last_reply]
    while count(now) > room and unread:
        at = max(unread, key=lambda at: len(now[at].content))
        if len(now[at].content) <= LONG_RESULT:
            break
        now[at] = replace(now[at], content=cut_second_half(now[at].content))
    return ShortPrompt(tuple(now), tuple(left_out))


def list_results(messages: Sequence[Message]) -> list[int]:
    """Return the places of the results, also of calls that were written as text and answered in a user's turn."""
    first_reply = next((at for at, message in enumerate(messages) if message.role == "assistant"), len(messages))
    return [
        at
        for at, message in enumerate(messages)
        if message.role == "tool" or (message.role == "user" and at > first_reply and ROW.search(message.content))
    ]


def shorten_result(text: str) -> tuple[str, list[str]]:
    r"""Return a line for each observation in a result, and the ids of these; of other results the beginning.

    >>> shorten_result("record | name | cost\n[o1.r1] | oak | 90\n[o1.r2] | elm | 95\nAll 2 rows.")
    ('o1: 2 rows of name, cost; ask for `rows o1 1` to see them again', ['o1'])
    """
    rows: dict[str, list[str]] = {}
    for row in ROW.finditer(text):
        rows.setdefault(row[1], []).append(row[2])
    if not rows:
        return (text if len(text) <= LONG_RESULT else f"{text[:LONG_RESULT]} {GAP}"), []
    header = HEADER.search(text)
    columns = f" of {header[1].replace(' | ', ', ')}" if header else ""
    lines = [
        LINE.format(
            id=id,
            count=format_count(len(numbers), "row" if header else "passage"),
            columns=columns,
            first=numbers[0] or 1,
        )
        for id, numbers in rows.items()
    ]
    return "\n".join(lines), list(rows)


def cut_second_half(text: str) -> str:
    """Cut the second half of the lines of a text, or of its characters if it has a single line."""
    lines = text.removesuffix(GAP).rstrip("\n").split("\n")
    half = "\n".join(lines[: len(lines) // 2]) if len(lines) > 1 else text[: len(text) // 2]
    return f"{half}\n{GAP}"
