"""What a world is: tables, a right model, the same written otherwise, mistakes, and the truth in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
KINDS = (
    "wrong aggregate",
    "counted twice",
    "unit or constant",
    "term missing",
    "wrong column or sign",
    "rule inverted or off",
    "one term of a series",
    "plain average",
)


@dataclass(frozen=True)
class World:
    """``rows``: of a seed. ``truth``: of a choice (labels), the outcome and the rules that it breaks.

    ``otherwise``: replacements that write the same model in another way. ``mistakes``: kind -> (what stands there,
    what is written instead)."""

    name: str
    rows: Callable[[int], Rows]
    model: str
    measure: str
    truth: Callable[[Rows, Sequence[str]], tuple[float, list[str]]]
    otherwise: Sequence[tuple[str, str]]
    mistakes: Mapping[str, tuple[str, str]]

    def second(self) -> str:
        return swapped(self.model, self.otherwise)

    def wrong(self, kind: str) -> str:
        return swapped(self.model, [self.mistakes[kind]])


def swapped(text: str, swaps: Sequence[tuple[str, str]]) -> str:
    for before, after in swaps:
        assert before in text, before
        text = text.replace(before, after, 1)
    return text
