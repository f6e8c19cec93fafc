"""A replan as a difference: which steps stay, which are new, which are dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

Mark = Literal["stays", "new", "dropped"]


def plan_diff(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Mark, str]]:
    """The steps of both plans in reading order, a dropped one where it stood.

    >>> list(plan_diff(("read rents", "compare"), ("Read  rents", "count rooms")))
    [('stays', 'Read  rents'), ('dropped', 'compare'), ('new', 'count rooms')]
    """
    matcher = SequenceMatcher(None, [plain(one) for one in before], [plain(one) for one in after], autojunk=False)
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            yield from (("stays", step) for step in after[first:last])
            continue
        yield from (("dropped", step) for step in before[start:end])
        yield from (("new", step) for step in after[first:last])


def plain(step: str) -> str:
    return " ".join(step.lower().split())
