"""How many tokens a prompt is likely to be, before an endpoint has counted it.

By its characters: a letter is a quarter of a token, a digit one, a mark nearly one; beside ASCII by its script, as the
tokenizers that know it least take it (those of small models spell such letters out in bytes). What the replies of an LM
say of the prompts before corrects that for the prompts after.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from decisor.types import Completion, Message

DIGITS = b"0123456789"
MARKS = b"|[](){}.,;:=_'\"\n*/-+<>#`"
MARK = 0.85
"""Tokens."""
SCRIPTS = (
    (0x80, 2.75), (0x100, 3.2), (0x250, 1.35), (0x370, 1.1), (0x530, 1.35), (0xE00, 1.9), (0x1100, 2.8), (0x1200, 1.9),
    (0x1E00, 2.75), (0x2000, 1.0), (0x2070, 2.0), (0xAC00, 2.8), (0xD7B0, 2.0), (0x10000, 3.0),
)  # fmt: skip
"""From which character on how many tokens one is, measured on a small model's tokenizer and rounded up: Latin letters
with marks (and what words around them cost beyond English), Greek and Cyrillic, Hebrew, Arabic and Indic scripts, Thai,
Hangul, dashes and quotes, Chinese and Japanese, what lies beyond. A large model's takes a third to a half of it."""
STARTS = [start for start, _ in SCRIPTS]
PER_MESSAGE = 4
"""Tokens that a chat template puts around a message."""
WORTH = 200
"""A shorter prompt says nothing of the text in it: most of it is the template."""
THOUGHT = 4
"""A reply of so many times the tokens that can be seen of it was thought before it was written."""
LEAST, MOST = 0.3, 3.0


@lru_cache(maxsize=64)
def tokens_in(text: str) -> int:
    """
    >>> tokens_in("x" * 400), tokens_in("12.5 | 7"), tokens_in("\u6771\u4eac")
    (100, 7, 4)
    """
    beyond = 0.0 if text.isascii() else sum(beyond_ascii(one) * n for one, n in Counter(text).items() if one > "\x7f")
    return math.ceil(ascii_tokens(text) + beyond)


def fewest_tokens_in(text: str) -> int:
    """As a tokenizer that knows every script takes it.

    >>> fewest_tokens_in("\u6771\u4eac")
    2
    """
    return math.ceil(ascii_tokens(text) + sum(one > "\x7f" for one in text))


def beyond_ascii(character: str) -> float:
    return SCRIPTS[bisect(STARTS, ord(character)) - 1][1]


def ascii_tokens(text: str) -> float:
    plain = text.encode("ascii", "ignore")
    no_digits = plain.translate(None, DIGITS)
    letters = len(no_digits.translate(None, MARKS))
    digits, marks = len(plain) - len(no_digits), len(no_digits) - letters
    return digits + MARK * marks + letters / 4


def raw_tokens(messages: Sequence[Message]) -> int:
    """Of a prompt, uncorrected."""
    return sum(tokens_in(message.content) for message in messages) + PER_MESSAGE * (len(messages) - 1)


@dataclass(slots=True)
class Estimates:
    """Corrections, by the name of an LM: how many tokens its prompts were, and how many they were taken for.
    ``thinkers``: those whose replies were cut off before they said anything."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    thinkers: set[str] = field(default_factory=set)

    def tokens(self, lm: str, raw: int) -> int:
        """Of a prompt that was taken for ``raw`` tokens."""
        return math.ceil(raw * self.factor(lm))

    def factor(self, lm: str) -> float:
        real, likely = self.counts.get(lm, (0, 0))
        return min(max(real / likely, LEAST), MOST) if real and likely else 1.0

    def knows(self, lm: str) -> bool:
        return lm in self.counts

    def learn_from(self, lm: str, raw: int, reply: Completion) -> None:
        if not reply.usage.estimates:
            self.learn(lm, raw, reply.usage.prompt_tokens)
        if reply.finish == "length":
            seen = sum(map(tokens_in, reply.texts))
            if reply.usage.completion_tokens > THOUGHT * max(seen, 1):
                self.thinkers.add(lm)

    def learn(self, lm: str, raw: int, prompt_tokens: int) -> None:
        """From a reply: its prompt, taken for ``raw`` tokens, was so many."""
        if raw >= WORTH and prompt_tokens:
            real, before = self.counts.get(lm, (0, 0))
            self.counts[lm] = real + prompt_tokens, before + raw
