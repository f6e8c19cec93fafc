"""A plan as a graph of parts: ``{"nodes": [{"id": "Q2.1", "ask": "compare <A1.1> and ...", "needs": ["Q1.1"]}]}``.

``<A1.1>`` in a query stands for the answer of part Q1.1, so it is a parent too: tags decide what flows, a parent
without a tag only comes first and its answer is told beside. Read strictly, what is wrong with a plan goes back to the
model as one list; read with ``mend``, for a second reply, each defect has one rule:

    a tag or parent that is not there       the tag is taken out, the part is degraded
    a cycle                                 the back edge into the highest id is cut, that part is degraded
    more parts than allowed                 only what the final part rests on is kept
    a source that there is not              none is named
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from decisor.errors import ParseError
from decisor.replies import text as texts
from decisor.replies.plan_forms import TAG, Draft, read_drafts, tagged

MAX_PARTS = 200
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
        return tuple(dict.fromkeys(tagged(self.query)))


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


def parse_plan_graph(
    reply: str, max_parts: int = MAX_PARTS, sources: Sequence[str] = (), mend: bool = False
) -> PlanGraph:
    """
    >>> found = parse_plan_graph('{"nodes": [{"id": "Q2.1", "query": "use <A1.1>"}, {"id": "Q1.1", "query": "a"}]}')
    >>> [part.id for part in found.parts]
    ['Q1.1', 'Q2.1']
    >>> parse_plan_graph("1. Who directed Heat?\\n2. Where was #1 born?").parts[1]
    Part(id='Q2.1', query='Where was <A1.1> born?', parents=('Q1.1',), source='', degraded=False)

    Raises:
        ParseError: no plan can be read, an id is not like Q1.1 (shape), a parent is not there (missing_parent), the
            parts need each other (cycle), there are more than ``max_parts`` (too_many), a source is none of
            ``sources`` (unknown_tool), or there are more than 200 or they are deeper than 32 (limits).
    """
    repairs: list[str] = []
    found = read_drafts(texts.clean(reply, repairs), repairs, mend)
    if found.simple:
        return PlanGraph((), tuple(repairs), simple=True)
    if len(found.drafts) > MAX_PARTS:
        raise ParseError(f"The plan has more than {MAX_PARTS} parts.", "limits")
    parts = merged([part_of(draft) for draft in found.drafts], repairs)
    parts = {id: part for id, part in parts.items() if id not in found.drop}
    parts = with_sources(parts, sources, repairs, mend)
    if mend:
        parts = cut_cycles(without_missing(parts, repairs), repairs)
        parts = final_only(parts, found.final, max_parts, repairs)
    elif wrong := defects(parts, max_parts):
        raise ParseError("\n".join(text for _, text in wrong), wrong[0][0])
    return PlanGraph(renumbered(ordered(parts), found.numbered, repairs), tuple(dict.fromkeys(repairs)))


def part_of(draft: Draft) -> Part:
    tags = tagged(draft.query)
    return Part(draft.id, texts.no_halves(draft.query), tuple(dict.fromkeys([*draft.needs, *tags])), draft.source)


def merged(parts: Sequence[Part], repairs: list[str]) -> dict[str, Part]:
    """By id. Parts that ask the same (but for case and spaces) of the same parents are one."""
    kept = {part.id: part for part in parts}
    while True:
        first: dict[tuple[str, frozenset[str], str], str] = {}
        double: dict[str, str] = {}
        for part in kept.values():
            same = (" ".join(part.query.casefold().split()), frozenset(part.parents), part.source)
            if (one := first.setdefault(same, part.id)) != part.id:
                double[part.id] = one
        if not double:
            return kept
        repairs.append("merged")
        kept = {id: renamed(part, double) for id, part in kept.items() if id not in double}


def renamed(part: Part, names: Mapping[str, str]) -> Part:
    """The same part, where parts are called otherwise."""
    query = TAG.sub(lambda tag: f"<A{names.get(f'Q{tag[1]}', f'Q{tag[1]}')[1:]}>", part.query)
    parents = tuple(dict.fromkeys(names.get(parent, parent) for parent in part.parents))
    return replace(part, id=names.get(part.id, part.id), query=query, parents=parents)


def with_sources(parts: Mapping[str, Part], sources: Sequence[str], repairs: list[str], mend: bool) -> dict[str, Part]:
    """Sources as they are called here. Without ``sources`` none is meant."""
    made = {}
    for id, part in parts.items():
        source = ""
        if part.source and sources:
            try:
                source = texts.tool(part.source, sources, repairs)
            except ParseError:
                if not mend:
                    raise
                repairs.append("unknown_source")
        made[id] = replace(part, source=source)
    return made


def defects(parts: Mapping[str, Part], max_parts: int) -> list[tuple[str, str]]:
    """Everything that is wrong with a plan: a word to count it by, and what to tell the model."""
    wrong = [
        ("missing_parent", f"{part.id} needs {parent}, which is not in the plan.")
        for part in parts.values()
        for parent in part.parents
        if parent not in parts
    ]
    try:
        sorted_ids(parts)
    except CycleError as error:
        wrong.append(("cycle", f"Parts need each other: {' <- '.join(error.args[1])}."))
    if len(parts) > max_parts:
        wrong.append(("too_many", f"The plan has {len(parts)} parts. Write at most {max_parts}."))
    return wrong


def sorted_ids(parts: Mapping[str, Part]) -> list[str]:
    graph = {part.id: [parent for parent in part.parents if parent in parts] for part in parts.values()}
    return list(TopologicalSorter(graph).static_order())


def lose(part: Part, parent: str) -> Part:
    """The part without this parent and its tag, degraded."""
    query = TAG.sub(lambda tag: "" if f"Q{tag[1]}" == parent else tag[0], part.query)
    kept = tuple(one for one in part.parents if one != parent)
    return replace(part, query=" ".join(query.split()), parents=kept, degraded=True)


def without_missing(parts: Mapping[str, Part], repairs: list[str]) -> dict[str, Part]:
    mended = dict(parts)
    for id, part in parts.items():
        for parent in part.parents:
            if parent not in parts:
                mended[id] = lose(mended[id], parent)
                repairs.append("stripped_tag")
    return mended


def cut_cycles(parts: Mapping[str, Part], repairs: list[str]) -> dict[str, Part]:
    """Without cycles: as long as there is one, the back edge into the highest id is cut."""
    mended = dict(parts)
    while edges := back_edges(mended):
        parent, target = max(edges, key=lambda edge: (number_of(edge[1]), number_of(edge[0])))
        mended[target] = lose(mended[target], parent)
        repairs.append("cut_edge")
    return mended


def back_edges(parts: Mapping[str, Part]) -> list[tuple[str, str]]:
    """(parent, child) pairs that close a cycle, met depth first in the order of the ids, without recursion."""
    children: dict[str, list[str]] = {id: [] for id in parts}
    for id in sorted(parts, key=number_of):
        for parent in parts[id].parents:
            children[parent].append(id)
    state: dict[str, int] = {}
    found = []
    for root in sorted(parts, key=number_of):
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(children[root]))]
        while stack:
            here, left = stack[-1]
            child = next(left, None)
            if child is None:
                state[here] = 2
                stack.pop()
            elif child not in state:
                state[child] = 1
                stack.append((child, iter(children[child])))
            elif state[child] == 1:
                found.append((here, child))
    return found


def final_only(parts: Mapping[str, Part], final: Sequence[str], max_parts: int, repairs: list[str]) -> dict[str, Part]:
    """What the final part (the last one where none is named) rests on, where there are too many."""
    if len(parts) <= max_parts:
        return dict(parts)
    wanted = [id for id in final if id in parts] or [list(parts)[-1]]
    kept: set[str] = set()
    while wanted:
        if (id := wanted.pop()) not in kept:
            kept.add(id)
            wanted += parts[id].parents
    repairs.append("only_final")
    if len(kept) > max_parts:
        raise ParseError(f"The plan has {len(parts)} parts, {len(kept)} of them needed. Write at most {max_parts}.",
                         "too_many")  # fmt: skip
    return {id: part for id, part in parts.items() if id in kept}


def ordered(parts: Mapping[str, Part]) -> tuple[Part, ...]:
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


def renumbered(parts: tuple[Part, ...], always: bool, repairs: list[str]) -> tuple[Part, ...]:
    """Ids are labels: where they do not say the depth, they are given anew from the graph."""
    depth = depths(parts)
    if not always and all(int(part.id[1:].partition(".")[0]) == depth[part.id] for part in parts):
        return parts
    if not always:
        repairs.append("renumbered")
    names: dict[str, str] = {}
    for part in parts:
        index = 1 + sum(depth[other] == depth[part.id] for other in names)
        names[part.id] = f"Q{depth[part.id]}.{index}"
    return tuple(renamed(part, names) for part in parts)


def number_of(id: str) -> tuple[int, ...]:
    return tuple(int(number) for number in id[1:].split("."))
