"""A plan as a graph of parts: ``{"nodes": [{"id": "Q2.1", "ask": "compare <A1.1> and ...", "needs": ["Q1.1"]}]}``.

``<A1.1>`` in a query stands for the answer of part Q1.1, so it is a parent too: tags decide what flows, a parent
without a tag only comes first and its answer is told beside. Read strictly, what is wrong with a plan goes back to the
model as one list; read with ``mend``, for a second reply, each defect is repaired by a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError

from decisor.errors import ParseError
from decisor.replies.cleaning import clean, replace_surrogates
from decisor.replies.plan_drafts import Draft, tags_in
from decisor.replies.plan_forms import read_drafts
from decisor.replies.plan_graph import Part, PlanGraph, sort_by_depth, sorted_ids
from decisor.replies.plan_repair import cut_cycles, final_only, merge_twins, renumber, without_missing
from decisor.replies.tool_names import match_tool

MAX_PARTS = 200


def parse_plan_graph(
    reply: str, max_parts: int = MAX_PARTS, sources: Sequence[str] = (), mend: bool = False
) -> PlanGraph:
    """
    >>> graph = parse_plan_graph('{"nodes": [{"id": "Q2.1", "query": "use <A1.1>"}, {"id": "Q1.1", "query": "a"}]}')
    >>> [part.id for part in graph.parts]
    ['Q1.1', 'Q2.1']
    >>> parse_plan_graph("1. Who directed Heat?\\n2. Where was #1 born?").parts[1]
    Part(id='Q2.1', query='Where was <A1.1> born?', parents=('Q1.1',), source='', degraded=False)

    Raises:
        ParseError: no plan can be read, an id is not like Q1.1 (shape), a parent is not there (missing_parent), the
            parts need each other (cycle), there are more than ``max_parts`` (too_many), a source is none of
            ``sources`` (unknown_tool), or there are more than 200 or they are deeper than 32 (limits).
    """
    repairs: list[str] = []
    drafts = read_drafts(clean(reply, repairs), repairs, mend)
    if drafts.simple:
        return PlanGraph((), tuple(repairs), simple=True)
    if len(drafts.drafts) > MAX_PARTS:
        raise ParseError(f"The plan has more than {MAX_PARTS} parts.", "limits")
    parts = merge_twins([part_of(draft) for draft in drafts.drafts], repairs)
    parts = {id: part for id, part in parts.items() if id not in drafts.drop}
    parts = with_sources(parts, sources, repairs, mend)
    if mend:
        parts = cut_cycles(without_missing(parts, repairs), repairs)
        parts = final_only(parts, drafts.final, max_parts, repairs)
    elif wrong := defects(parts, max_parts):
        raise ParseError("\n".join(text for _, text in wrong), wrong[0][0])
    return PlanGraph(renumber(sort_by_depth(parts), drafts.numbered, repairs), tuple(dict.fromkeys(repairs)))


def with_sources(parts: Mapping[str, Part], sources: Sequence[str], repairs: list[str], mend: bool) -> dict[str, Part]:
    """Sources as they are called here. Without ``sources`` none is meant."""
    sourced = {}
    for id, part in parts.items():
        source = ""
        if part.source and sources:
            try:
                source = match_tool(part.source, sources, repairs)
            except ParseError:
                if not mend:
                    raise
                repairs.append("unknown_source")
        sourced[id] = replace(part, source=source)
    return sourced


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


def part_of(draft: Draft) -> Part:
    tags = tags_in(draft.query)
    return Part(draft.id, replace_surrogates(draft.query), tuple(dict.fromkeys([*draft.needs, *tags])), draft.source)
