"""The person at the terminal as a tool: one question, one line of answer."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from decisor.types import Observation, Record

EMPTY = "The person does not know."


def person_is_there() -> bool:
    """Whether somebody can read a question and answer it."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


@dataclass(frozen=True)
class PersonTool:
    """Satisfies ``types.Tool``. The question goes to standard error, so that standard output stays clean."""

    name: str = "person"

    def describe(self) -> str:
        return "The person who asks: a question that the rules leave open, answered in one line."

    async def call(self, text: str) -> Observation:
        answer = await asyncio.to_thread(ask_line, f"{' '.join(text.split())} ")
        return Observation((Record("r1", {"question": text, "answer": answer or EMPTY}, source=self.name),))

    async def close(self) -> None:
        """Holds nothing open."""


def ask_line(words: str) -> str:
    """'' where there is no line to read."""
    print(words, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()
