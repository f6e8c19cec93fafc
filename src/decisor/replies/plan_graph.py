"""A plan as a graph of parts, in an order in which each comes after those whose answers it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from decisor.errors import ParseError
from decisor.replies.plan_drafts import tags_in

MAX_STEPS_DEEP = 32


@dataclass(frozen=True, slots=True)
class Part:
    """One node of a reasoning DAG: its id, what it asks, the parts whose answers it needs, and the tool that serves it
    ('' = not said). ``degraded``: it lost a parent that it should have had."""

    id: str
    query: str
    parents: tuple[str, ...] = ()
    source: str = ""
    degraded: bool = False

    @property
    def tags(self) -> tuple[str, ...]:
        """The parents whose answers are put into the query."""
        return tuple(dict.fromkeys(tags_in(self.query)))


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """Parts in an order in which each comes after its parents. ``simple``: the model says that no plan is needed."""

    parts: tuple[Part, ...]
    repairs: tuple[str, ...] = ()
    simple: bool = False

    @property
    def levels(self) -> tuple[tuple[Part, ...], ...]:
        """Parts by the length of the longest path to them, roots first."""
        depth = depths(self.parts)
        deepest = max(depth.values(), default=0)
        return tuple(tuple(part for part in self.parts if depth[part.id] == d) for d in range(1, deepest + 1))

    @property
    def sinks(self) -> tuple[Part, ...]:
        """The parts that no other one needs."""
        needed = {parent for part in self.parts for parent in part.parents}
        return tuple(part for part in self.parts if part.id not in needed)


def sorted_ids(parts: Mapping[str, Part]) -> list[str]:
    graph = {part.id: [parent for parent in part.parents if parent in parts] for part in parts.values()}
    return list(TopologicalSorter(graph).static_order())


def sort_by_depth(parts: Mapping[str, Part]) -> tuple[Part, ...]:
    """Each after its parents: by depth, and as written within one."""
    depth = depths(parts[id] for id in sorted_ids(parts))
    if max(depth.values(), default=0) > MAX_STEPS_DEEP:
        raise ParseError(f"The plan is deeper than {MAX_STEPS_DEEP} parts.", "limits")
    return tuple(sorted(parts.values(), key=lambda part: depth[part.id]))


def depths(parts: Iterable[Part]) -> dict[str, int]:
    """Length of the longest path to each part, 1 for a root; parts come after their parents."""
    depth: dict[str, int] = {}
    for part in parts:
        depth[part.id] = 1 + max((depth[parent] for parent in part.parents), default=0)
    return depth
