"""Replans of a run, sorted by rule: how the number of steps changed, and what kind of change it was.

Steps of the old and the new plan are paired where they say nearly the same. What is left over decides the kind:

* reorder: the same steps in another order;
* change target: a step kept its words but for the names or figures it is about;
* replace: a step gave way to a different one;
* divide: one old step became several; merge: several old steps became one;
* add lookup, add calculation: a new step, by its words; delete: a step is gone;
* unchanged: the plan was written again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Change = Literal["increase", "same", "decrease"]
Kind = Literal["reorder", "replace", "change target", "add lookup", "add calculation", "divide", "delete", "merge",
               "unchanged"]  # fmt: skip
SAME, RELATED, COVERED = 0.8, 0.4, 0.6
CALCULATION = re.compile(
    r"\b(?:calculat|comput|estimat|sum\b|add up|multipl|divid|subtract|compare|simulat|averag|rank|total up|ratio)",
    re.I,
)
NUMBERING = re.compile(r"^\s*(?:step\s*)?\d*\s*[.:)-]?\s*", re.I)
SMALL = {"a", "an", "and", "at", "by", "each", "for", "from", "in", "of", "on", "the", "then", "to", "with"}


@dataclass(frozen=True, slots=True)
class ReplanClass:
    """One replan: more, as many or fewer steps, and the kind of change."""

    change: Change
    kind: Kind


def words(step: str) -> frozenset[str]:
    """
    >>> sorted(words("Step 2: Find the flow of krakow."))
    ['find', 'flow', 'krakow']
    """
    return frozenset(re.findall(r"\w+", NUMBERING.sub("", step).lower())) - SMALL


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words over all words, 0 to 1."""
    return len(one & other) / len(one | other) if one | other else 1.0


def classify(old: Sequence[str], new: Sequence[str]) -> ReplanClass:
    """
    >>> classify(["Find the nodes", "Compute profit"], ["Find the nodes", "Find the flow", "Compute profit"])
    ReplanClass(change='increase', kind='add lookup')
    """
    change: Change = "increase" if len(new) > len(old) else "decrease" if len(new) < len(old) else "same"
    before, after = [words(step) for step in old], [words(step) for step in new]
    pairs = paired(before, after)
    gone = [at for at in range(len(old)) if at not in pairs]
    come = [at for at in range(len(new)) if at not in pairs.values()]
    if not gone and not come:
        order = [pairs[at] for at in sorted(pairs)]
        return ReplanClass(change, "unchanged" if order == sorted(order) else "reorder")
    if any(splits(before[at], [after[to] for to in come]) for at in gone):
        return ReplanClass(change, "divide")
    if any(splits(after[to], [before[at] for at in gone]) for to in come):
        return ReplanClass(change, "merge")
    if len(come) > len(gone):
        lookup = any(not CALCULATION.search(NUMBERING.sub("", new[at])) for at in come)
        return ReplanClass(change, "add lookup" if lookup else "add calculation")
    if len(gone) > len(come):
        return ReplanClass(change, "delete")
    alike = all(max(likeness(before[at], after[to]) for to in come) >= RELATED for at in gone)
    return ReplanClass(change, "change target" if alike else "replace")


def paired(before: Sequence[frozenset[str]], after: Sequence[frozenset[str]]) -> dict[int, int]:
    """Old step -> new step where both say nearly the same, best pairs first."""
    likely = sorted(
        ((likeness(one, other), -at, -to) for at, one in enumerate(before) for to, other in enumerate(after)),
        reverse=True,
    )
    pairs: dict[int, int] = {}
    for value, at, to in likely:
        if value >= SAME and -at not in pairs and -to not in pairs.values():
            pairs[-at] = -to
    return pairs


def splits(whole: frozenset[str], parts: Sequence[frozenset[str]]) -> bool:
    """Whether two or more of ``parts`` each share words of their own with ``whole`` and cover most of it."""
    covered: frozenset[str] = frozenset()
    count = 0
    for part in parts:
        own = (part & whole) - covered
        if own and len(own) >= 0.3 * len(whole):
            covered |= part & whole
            count += 1
    return count >= 2 and len(covered) >= COVERED * len(whole)
