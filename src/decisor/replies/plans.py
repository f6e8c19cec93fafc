"""A plan as a graph of parts: ``{"nodes": [{"id": "Q2.1", "query": "compare <A1.1> and ...", "parents": ["Q1.1"]}]}``.

``<A1.1>`` in a query stands for the answer of part Q1.1, so it is a parent too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from decisor.errors import ParseError
from decisor.replies import text as texts
from decisor.replies.jsons import read_one
from decisor.types import Value

MAX_PARTS = 200
MAX_STEPS_DEEP = 32
ID = re.compile(r"Q\d{1,4}\.\d{1,4}")
TAG = re.compile(r"<A(\d{1,4}\.\d{1,4})>", re.I)


@dataclass(frozen=True, slots=True)
class Part:
    """One node of a reasoning DAG: its id, what it asks, and the parts whose answers it needs."""

    id: str
    query: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """Parts in an order in which each comes after its parents."""

    parts: tuple[Part, ...]
    repairs: tuple[str, ...] = ()


def parse_plan_graph(reply: str) -> PlanGraph:
    """
    >>> found = parse_plan_graph('{"nodes": [{"id": "Q2.1", "query": "use <A1.1>"}, {"id": "Q1.1", "query": "a"}]}')
    >>> [part.id for part in found.parts]
    ['Q1.1', 'Q2.1']

    Raises:
        ParseError: an id is not like Q1.1 (shape), a parent is not there (missing_parent), the parts need each other
            (cycle), or there are more than 200 or they are deeper than 32 (limits).
    """
    repairs: list[str] = []
    value = read_one(texts.clean(reply, repairs), repairs)
    nodes = value.get("nodes") if isinstance(value, dict) else value
    if nodes is None or nodes in ([], {}):
        raise ParseError("The plan has no nodes.", "missing_field")
    if isinstance(nodes, dict):
        repairs.append("map_form")
        nodes = [{"id": id, **part} if isinstance(part, dict) else part for id, part in nodes.items()]
    if not isinstance(nodes, list):
        raise ParseError("nodes is a list.", "shape")
    if len(nodes) > MAX_PARTS:
        raise ParseError(f"The plan has more than {MAX_PARTS} parts.", "limits")
    parts: dict[str, Part] = {}
    for node in nodes:
        part = read_part(node, repairs)
        if parts.setdefault(part.id, part) != part:
            raise ParseError(f"Two parts are called {part.id}.", "duplicate_id")
        if parts[part.id] is not part:
            repairs.append("duplicate_node_same")
    return PlanGraph(ordered(parts), tuple(dict.fromkeys(repairs)))


def read_part(node: Value, repairs: list[str]) -> Part:
    if not isinstance(node, Mapping):
        raise ParseError("Each node is an object with id, query and parents.", "shape")
    for name in ("id", "query"):
        if node.get(name) in (None, ""):
            raise ParseError(f"A node has no {name}.", "missing_field")
    id, query = read_id(node["id"], repairs), node["query"]
    if not isinstance(query, str):
        raise ParseError(f"The query of {id} is a text.", "shape")
    if not query.strip():
        raise ParseError(f"The query of {id} is empty.", "missing_field")
    given = node.get("parents", ())
    if given is None:
        repairs.append("null_parents")
        given = ()
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ParseError(f"The parents of {id} are a list.", "shape")
    listed = [read_id(parent, repairs) for parent in given]
    if len(set(listed)) < len(listed):
        repairs.append("duplicate_parent")
    tagged = [f"Q{number}" for number in TAG.findall(query)]
    if set(tagged) - set(listed):
        repairs.append("tag_parents")
    return Part(id, texts.no_halves(query.strip()), tuple(dict.fromkeys([*listed, *tagged])))


def read_id(value: Value, repairs: list[str]) -> str:
    if not isinstance(value, str) or not ID.fullmatch(plain := value.strip().upper()):
        raise ParseError("An id is a text like Q1.1.", "shape")
    if plain != value:
        repairs.append("case")
    return plain


def ordered(parts: Mapping[str, Part]) -> tuple[Part, ...]:
    depth: dict[str, int] = {}
    for part in parts.values():
        if missing := [parent for parent in part.parents if parent not in parts]:
            raise ParseError(f"{part.id} needs {missing[0]}, which is not in the plan.", "missing_parent")
    try:
        order = list(TopologicalSorter({part.id: part.parents for part in parts.values()}).static_order())
    except CycleError as error:
        raise ParseError(f"Parts need each other: {' <- '.join(error.args[1])}.", "cycle") from error
    for id in order:
        depth[id] = 1 + max((depth[parent] for parent in parts[id].parents), default=0)
        if depth[id] > MAX_STEPS_DEEP:
            raise ParseError(f"The plan is deeper than {MAX_STEPS_DEEP} parts.", "limits")
    return tuple(parts[id] for id in order)
