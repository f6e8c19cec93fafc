"""Mending a plan: one rule for each defect, and the name of each repair goes on a list.

two parts that ask the same             one of them stays
a tag or parent that is not there       the tag is taken out, the part is degraded
a cycle                                 the back edge into the highest id is cut, that part is degraded
more parts than allowed                 only what the final part rests on stays
ids that do not say the depth           ids are made anew
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from decisor.errors import ParseError
from decisor.replies.plan_drafts import TAG
from decisor.replies.plan_graph import Part, depths


def merge_twins(parts: Sequence[Part], repairs: list[str]) -> dict[str, Part]:
    """By id. Parts that ask the same (but for case and spaces) of the same parents are one."""
    by_id = {part.id: part for part in parts}
    while True:
        first: dict[tuple[str, frozenset[str], str], str] = {}
        double: dict[str, str] = {}
        for part in by_id.values():
            same = (" ".join(part.query.casefold().split()), frozenset(part.parents), part.source)
            if (one := first.setdefault(same, part.id)) != part.id:
                double[part.id] = one
        if not double:
            return by_id
        repairs.append("merged")
        by_id = {id: rename(part, double) for id, part in by_id.items() if id not in double}


def rename(part: Part, names: Mapping[str, str]) -> Part:
    """The same part, where parts are called otherwise."""
    query = TAG.sub(lambda tag: f"<A{names.get(f'Q{tag[1]}', f'Q{tag[1]}')[1:]}>", part.query)
    parents = tuple(dict.fromkeys(names.get(parent, parent) for parent in part.parents))
    return replace(part, id=names.get(part.id, part.id), query=query, parents=parents)


def lose(part: Part, parent: str) -> Part:
    """The part without this parent and its tag, degraded."""
    query = TAG.sub(lambda tag: "" if f"Q{tag[1]}" == parent else tag[0], part.query)
    parents = tuple(one for one in part.parents if one != parent)
    return replace(part, query=" ".join(query.split()), parents=parents, degraded=True)


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
    edges = []
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
                edges.append((here, child))
    return edges


def final_only(parts: Mapping[str, Part], final: Sequence[str], max_parts: int, repairs: list[str]) -> dict[str, Part]:
    """What the final part (the last one where none is named) rests on, where there are too many."""
    if len(parts) <= max_parts:
        return dict(parts)
    waiting = [id for id in final if id in parts] or [list(parts)[-1]]
    needed: set[str] = set()
    while waiting:
        if (id := waiting.pop()) not in needed:
            needed.add(id)
            waiting += parts[id].parents
    repairs.append("only_final")
    if len(needed) > max_parts:
        raise ParseError(f"The plan has {len(parts)} parts, {len(needed)} of them needed. Write at most {max_parts}.",
                         "too_many")  # fmt: skip
    return {id: part for id, part in parts.items() if id in needed}


def renumber(parts: tuple[Part, ...], always: bool, repairs: list[str]) -> tuple[Part, ...]:
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
    return tuple(rename(part, names) for part in parts)


def number_of(id: str) -> tuple[int, ...]:
    return tuple(int(number) for number in id[1:].split("."))
