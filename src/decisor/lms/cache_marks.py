"""Where a prompt for Anthropic is marked for its cache: after the system text, and where it departs from one before.

A prefix is found again only where a block ended, so prompts that begin alike are cut at the same places.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

WORTH = 3_000
"""Characters; shorter prefixes are not kept by the endpoint."""
RECENT = 64
ALIKE = 256
"""Characters that prompts have in common at least, to be compared."""
MARK = {"cache_control": {"type": "ephemeral"}}
Place = tuple[int, int]
"""A turn, and a position in its text."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """``turns``: role and text; ``cuts``: where its blocks end, in order."""

    turns: tuple[tuple[str, str], ...]
    cuts: tuple[Place, ...]


@dataclass
class CacheMarks:
    """What was sent lately by one LM."""

    recent: deque[Prompt] = field(default_factory=lambda: deque(maxlen=RECENT))

    def system(self, text: str) -> str | list[dict[str, object]]:
        return [{"type": "text", "text": text, **MARK}] if len(text) >= WORTH else text

    def messages(self, turns: Sequence[dict[str, str]]) -> list[dict[str, object]]:
        """The turns, as blocks where a prompt before began alike; the last block of what is alike has the mark."""
        texts = tuple((turn["role"], turn["content"]) for turn in turns)
        place, cuts = self._place(texts)
        self.recent.appendleft(Prompt(texts, cuts))
        whole: list[dict[str, object]] = [dict(turn) for turn in turns]
        for number, turn in enumerate(whole):
            if ends := [at for of, at in cuts if of == number]:
                turn["content"] = blocks(turns[number]["content"], ends, place == (number, ends[-1]))
        return whole

    def _place(self, turns: tuple[tuple[str, str], ...]) -> tuple[Place | None, tuple[Place, ...]]:
        """Where what was sent before ends, and the cuts up to there; None and none where that is not worth it."""
        best: Place = (0, 0)
        cuts: tuple[Place, ...] = ()
        for prompt in self.recent:
            if prompt.turns[0][1][:ALIKE] == turns[0][1][:ALIKE] and (place := alike_until(prompt.turns, turns)) > best:
                best, cuts = place, tuple(cut for cut in prompt.cuts if cut <= place)
        if sum(len(text) for _, text in turns[: best[0]]) + best[1] < WORTH:
            return None, ()
        return best, cuts if best in cuts else (*cuts, best)


def blocks(text: str, ends: Sequence[int], is_marked: bool) -> list[dict[str, object]]:
    """
    >>> blocks("abc", [1, 2], True)[1:]
    [{'type': 'text', 'text': 'b', 'cache_control': {'type': 'ephemeral'}}, {'type': 'text', 'text': 'c'}]
    """
    starts = [0, *ends]
    pieces = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    row: list[dict[str, object]] = [{"type": "text", "text": piece} for piece in pieces if piece]
    if is_marked:
        row[len(ends) - 1] |= MARK
    return row


def alike_until(before: Sequence[tuple[str, str]], turns: Sequence[tuple[str, str]]) -> Place:
    """Up to a line's end, and to the end of a turn rather than to the beginning of the next.

    >>> alike_until([("user", "a"), ("user", "b\\nc")], [("user", "a"), ("user", "b\\nd")])
    (1, 2)
    >>> alike_until([("user", "a"), ("user", "b")], [("user", "a"), ("user", "c")])
    (0, 1)
    """
    same = 0
    while same < min(len(before), len(turns)) and before[same] == turns[same]:
        same += 1
    if same < min(len(before), len(turns)) and before[same][0] == turns[same][0]:
        text, other = before[same][1], turns[same][1]
        length = common_length(text, other)
        if length < len(other):
            length = other.rfind("\n", 0, length) + 1
        if length:
            return same, length
    while same and not turns[same - 1][1]:  # a turn without text has no block to mark
        same -= 1
    return (same - 1, len(turns[same - 1][1])) if same else (0, 0)


def common_length(one: str, other: str) -> int:
    """
    >>> common_length("abcd", "abxd"), common_length("ab", "abc"), common_length("", "a")
    (2, 2, 0)
    """
    most = min(len(one), len(other))
    return bisect_left(range(most), True, key=lambda at: one[: at + 1] != other[: at + 1])
