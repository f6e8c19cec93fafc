"""The parser of a plan: from its form in a reply to a graph of parts, each after the parts that it needs.

    {"nodes": [{"id", "ask", "needs", "source"}]}                   or {"simple": true}; the form that is asked for
    {"nodes": [{"depth", "ask", "source"}]}                         the same held to a schema, which has no ids
    Q1.1: ...                                                       one on each line
    1. ...  /  2. ... #1                                            numbered, with references as in MuSiQue

``<A1.1>`` in a query stands for the answer of part Q1.1, so Q1.1 is a parent too. A parent without a tag only comes
first, and its answer is given beside the query. Read strictly, all defects of a plan go back to the LLM as one list.
Read with ``mend``, for a second reply, each defect is repaired by a rule:

    two parts that ask the same             one of them stays
    a tag or parent that does not exist     the tag is removed, the part is degraded
    a cycle                                 the back edge into the highest id is cut, that part is degraded
    more parts than allowed                 only the parts that the last part needs stay
    ids that do not tell the depth          ids are given anew

Nothing in a reply is evaluated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from decisor.errors import ParseError
from decisor.parsing.cleaning import clean_reply, replace_surrogates
from decisor.parsing.lenient_json import JsonReader, read_json_value
from decisor.parsing.unlabelled import match_tool
from decisor.types import Value

ID = re.compile(r"[QA]?(\d{1,4}\.\d{1,4})", re.I)
NUMBERED = re.compile(r"[QA#]?(\d{1,4})", re.I)
TAG = re.compile(r"<A(\d{1,4}\.\d{1,4})>")
ANY_TAG = re.compile(r"<A(\d{1,4}\.\d{1,4})>|\{[AQ]?(\d{1,4}\.\d{1,4})\}", re.I)
NUMBERED_TAG = re.compile(r"#(\d{1,4})\b|<A?(\d{1,4})>|\{[AQ]?(\d{1,4})\}", re.I)
# LLMs write tags in other angle brackets too.
ANGLES = str.maketrans("⟨⟩〈〉‹›", "<><><>")


@dataclass(frozen=True, slots=True)
class PartDraft:
    """A node of a plan as written, with ids and tags normalized (``Q1.1``, ``<A1.1>``)."""

    id: str
    query: str
    needs: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """The nodes of a plan before it is a graph."""

    drafts: tuple[PartDraft, ...] = ()
    simple: bool = False
    numbered: bool = False
    """True if ids were 1, 2, 3 (here Q1.0, Q2.0), which tell no depth."""


def find_tagged_parts(query: str) -> list[str]:
    """Return the ids of the parts whose answers a query refers to.

    >>> find_tagged_parts("Is <A1.1> older than <A1.2>, at $1 or #2?")
    ['Q1.1', 'Q1.2']
    """
    return [f"Q{number}" for number in TAG.findall(query)]


def read_part_id(value: Value, numbered: bool) -> str:
    if numbered and isinstance(value, int | str) and (match := NUMBERED.fullmatch(str(value).strip())):
        return f"Q{match[1]}.0"
    if not isinstance(value, str) or not (match := ID.fullmatch(value.strip())):
        raise ParseError("An id is a text like Q1.1.", "shape")
    return f"Q{match[1]}"


def normalize_tags(query: str, numbered: bool) -> str:
    """Convert the tags of a query to ``<A1.1>``. ``#1`` is a tag only if parts are numbered; ``$1`` never is.

    >>> normalize_tags("Is {1.1} under $1 or #1?", numbered=False)
    'Is <A1.1> under $1 or #1?'
    """
    shape = NUMBERED_TAG if numbered else ANY_TAG
    point = ".0" if numbered else ""
    return shape.sub(lambda tag: f"<A{next(filter(None, tag.groups()))}{point}>", query.translate(ANGLES).strip())


LABELLED = re.compile(r"\s*Q(?:uestion)?\s*(?P<id>\d{1,4}(?:\.\d{1,4})?)?\s*[:.)]\s*(?P<ask>.*)", re.I | re.S)
LINE = re.compile(
    r"^[ \t]*(?:[-*•][ \t]+)?\**(?P<q>Q[ \t]*)?(?P<id>\d{1,4}(?:\.\d{1,4})?)\**(?P<mark>[ \t]*[.:)\]]+\**)?[ \t]+"
    r"(?P<ask>\S.*)$",
    re.M | re.I,
)
QUERY = ("ask", "query", "question", "text")
NEEDS = ("needs", "parents", "depends_on", "dependencies")
SOURCE = ("source", "tool")


def read_drafts(text: str, salvage: bool) -> PlanDraft:
    """Read the drafts of a plan.

    Raises:
        ParseError: there is no plan in it (syntax, missing_field, shape, duplicate_id, truncated, limits).
    """
    text = text.translate(ANGLES)
    try:
        return read_json_drafts(read_json_value(text))
    except ParseError as error:
        drafts: PlanDraft | None = None
        # Not JSON, so perhaps one of the other forms. Other reasons mean JSON with a defect that the LLM can correct.
        if error.reason in ("syntax", "no_action", "truncated", "shape", "multiple_actions"):
            drafts = read_line_drafts(text, salvage)
        if drafts is None and salvage and error.reason != "limits":
            drafts = salvage_drafts(text)
        if drafts is None:
            raise
        return drafts


def read_json_drafts(value: Value) -> PlanDraft:
    if isinstance(value, str) and (root := LABELLED.fullmatch(value)) and not root["id"]:
        return PlanDraft(simple=True)
    if isinstance(value, Mapping) and value.get("simple") is True and not value.get("nodes"):
        return PlanDraft(simple=True)
    nodes = value.get("nodes") if isinstance(value, Mapping) else value
    if nodes is None or nodes in ([], {}):
        raise ParseError("The plan has no nodes.", "missing_field")
    # The forms that nodes are written in: an object by id, texts, or objects.
    if isinstance(nodes, Mapping):
        nodes = [{"id": id, **part} if isinstance(part, Mapping) else part for id, part in nodes.items()]
    if not isinstance(nodes, list):
        raise ParseError("nodes is a list.", "shape")
    if all(isinstance(node, str) for node in nodes):
        return read_text_drafts([str(node) for node in nodes])
    nodes = add_node_ids(nodes)
    ids = [node.get("id") for node in nodes if isinstance(node, Mapping)]
    numbered = bool(ids) and all(isinstance(id, int | str) and NUMBERED.fullmatch(str(id)) for id in ids)
    parts: dict[str, PartDraft] = {}
    for node in nodes:
        part = read_node(node, numbered)
        if parts.setdefault(part.id, part) != part:
            raise ParseError(f"Two parts are called {part.id}.", "duplicate_id")
    return PlanDraft(tuple(parts.values()), numbered=numbered)


def add_node_ids(nodes: Sequence[Value]) -> Sequence[Value]:
    """Add an id to each node that gives its depth instead: ``2.1`` is the first of depth 2.

    >>> add_node_ids([{"depth": "1", "ask": "a"}, {"depth": 1, "ask": "b"}])
    [{'id': '1.1', 'depth': '1', 'ask': 'a'}, {'id': '1.2', 'depth': 1, 'ask': 'b'}]
    """
    count: Counter[str] = Counter()
    named: list[Value] = []
    for node in nodes:
        if isinstance(node, Mapping) and "id" not in node and re.fullmatch(r"\d{1,2}", str(node.get("depth", ""))):
            depth = str(node["depth"])
            count[depth] += 1
            node = {"id": f"{depth}.{count[depth]}", **node}
        named.append(node)
    return named


def read_node(node: Value, numbered: bool) -> PartDraft:
    if not isinstance(node, Mapping):
        raise ParseError("Each node is an object with id, query and parents.", "shape")
    query = next((node[name] for name in QUERY if node.get(name) not in (None, "")), None)
    if node.get("id") in (None, ""):
        raise ParseError("A node has no id.", "missing_field")
    id = read_part_id(node["id"], numbered)
    if query is None:
        raise ParseError(f"{id} does not say what it asks.", "missing_field")
    if not isinstance(query, str):
        raise ParseError(f"The query of {id} is a text.", "shape")
    if not query.strip():
        raise ParseError(f"The query of {id} is empty.", "missing_field")
    names = [name for name in NEEDS if name in node]
    listed_parents = node[names[0]] if names else ()
    if listed_parents is None:
        listed_parents = ()
    if isinstance(listed_parents, str) or not isinstance(listed_parents, Sequence):
        raise ParseError(f"The parents of {id} are a list.", "shape")
    listed = [read_part_id(parent, numbered) for parent in listed_parents]
    source = next((node[name] for name in SOURCE if node.get(name)), "")
    if not isinstance(source, str):
        raise ParseError(f"The source of {id} is the name of a tool.", "shape")
    return PartDraft(id, normalize_tags(query, numbered), tuple(dict.fromkeys(listed)), source.strip())


def read_line_drafts(text: str, salvage: bool = True) -> PlanDraft | None:
    """Read drafts from lines such as ``Q1.1: ...`` or ``1. ...``.

    None if no line has that form. Unless salvaging, also None if prose comes before a list without any question.
    """
    lines = [line for line in LINE.finditer(text) if line["q"] or line["mark"]]
    if (
        lines
        and not salvage
        and text[: lines[0].start()].strip()
        and not any(line["q"] or re.search(r"\?|<A\d|#\d", line["ask"]) for line in lines)
    ):
        return None
    if not lines:
        root = LABELLED.fullmatch(text.strip().strip("\"'`").strip())
        return PlanDraft(simple=True) if root and not root["id"] else None
    numbered = not any("." in line["id"] for line in lines)
    parts: dict[str, PartDraft] = {}
    for line in lines:
        if not numbered and "." not in line["id"]:
            continue
        id = f"Q{line['id']}" + (".0" if numbered else "")
        part = PartDraft(id, normalize_tags(line["ask"].rstrip(), numbered))
        if parts.setdefault(id, part) != part:
            raise ParseError(f"Two parts are called {id}.", "duplicate_id")
    return PlanDraft(tuple(parts.values()), numbered=numbered)


def read_text_drafts(texts: Sequence[str]) -> PlanDraft:
    """Read drafts from a list of texts, with ids in front or else numbered by position."""
    as_lines = read_line_drafts("\n".join(" ".join(text.split()) for text in texts))
    if as_lines and not as_lines.simple and len(as_lines.drafts) == len(texts):
        return as_lines
    drafts = tuple(PartDraft(f"Q{place}.0", normalize_tags(text, numbered=True)) for place, text in enumerate(texts, 1))
    return PlanDraft(drafts, numbered=True)


def salvage_drafts(text: str) -> PlanDraft | None:
    """Read the complete nodes of a JSON plan that is cut off. None if it has none."""
    nodes: list[Value] = []
    at = text.find("[")
    while at >= 0 and (at := text.find("{", at)) >= 0:
        reader = JsonReader(text, at)
        try:
            node = reader.value()
        except ParseError:
            break
        # This node was cut off: its last text may be half.
        if reader.forgotten:
            break
        nodes.append(node)
        at = reader.at
    if not nodes:
        return None
    return read_json_drafts(nodes)


MAX_STEPS_DEEP = 32


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One node of a reasoning DAG."""

    id: str
    query: str
    parents: tuple[str, ...] = ()
    """Ids of the parts whose answers it needs."""
    source: str = ""
    """Tool that serves it; empty if not given."""
    degraded: bool = False
    """True if it lost a parent that it should have."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Parents whose answers the query refers to."""
        return tuple(dict.fromkeys(find_tagged_parts(self.query)))


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """Parts of a plan, each after its parents."""

    parts: tuple[PlanPart, ...]
    simple: bool = False
    """True if the LLM says that no plan is needed."""
    is_fallback: bool = False
    """True if no plan could be read, and the question stands for it."""

    @property
    def levels(self) -> tuple[tuple[PlanPart, ...], ...]:
        """Parts grouped by the length of the longest path to them, roots first."""
        depth = compute_depths(self.parts)
        deepest = max(depth.values(), default=0)
        return tuple(tuple(part for part in self.parts if depth[part.id] == d) for d in range(1, deepest + 1))

    @property
    def sinks(self) -> tuple[PlanPart, ...]:
        """Parts that no other part needs."""
        needed = {parent for part in self.parts for parent in part.parents}
        return tuple(part for part in self.parts if part.id not in needed)


def sorted_ids(parts: Mapping[str, PlanPart]) -> list[str]:
    graph = {part.id: [parent for parent in part.parents if parent in parts] for part in parts.values()}
    return list(TopologicalSorter(graph).static_order())


def sort_by_depth(parts: Mapping[str, PlanPart]) -> tuple[PlanPart, ...]:
    """Sort parts by depth, so that each comes after its parents; keep the written order within a depth."""
    depth = compute_depths(parts[id] for id in sorted_ids(parts))
    if max(depth.values(), default=0) > MAX_STEPS_DEEP:
        raise ParseError(f"The plan is deeper than {MAX_STEPS_DEEP} parts.", "limits")
    return tuple(sorted(parts.values(), key=lambda part: depth[part.id]))


def compute_depths(parts: Iterable[PlanPart]) -> dict[str, int]:
    """Compute the length of the longest path to each part, 1 for a root. Parts must come after their parents."""
    depth: dict[str, int] = {}
    for part in parts:
        depth[part.id] = 1 + max((depth[parent] for parent in part.parents), default=0)
    return depth


def merge_equal_parts(parts: Sequence[PlanPart]) -> dict[str, PlanPart]:
    """Merge parts that ask the same of the same parents, and return the parts by id.

    Case and spaces of the query do not matter.
    """
    by_id = {part.id: part for part in parts}
    # To merge two parts may make their children equal, so it is repeated until nothing changes.
    while True:
        first: dict[tuple[str, frozenset[str], str], str] = {}
        double: dict[str, str] = {}
        for part in by_id.values():
            same = (" ".join(part.query.casefold().split()), frozenset(part.parents), part.source)
            if (one := first.setdefault(same, part.id)) != part.id:
                double[part.id] = one
        if not double:
            return by_id
        by_id = {id: rename_part(part, double) for id, part in by_id.items() if id not in double}


def rename_part(part: PlanPart, names: Mapping[str, str]) -> PlanPart:
    """Return a part with its id, parents and tags renamed."""
    query = TAG.sub(lambda tag: f"<A{names.get(f'Q{tag[1]}', f'Q{tag[1]}')[1:]}>", part.query)
    parents = tuple(dict.fromkeys(names.get(parent, parent) for parent in part.parents))
    return replace(part, id=names.get(part.id, part.id), query=query, parents=parents)


def drop_parent(part: PlanPart, parent: str) -> PlanPart:
    """Return a part without one parent and its tag, marked as degraded."""
    query = TAG.sub(lambda tag: "" if f"Q{tag[1]}" == parent else tag[0], part.query)
    parents = tuple(one for one in part.parents if one != parent)
    return replace(part, query=" ".join(query.split()), parents=parents, degraded=True)


def find_back_edges(parts: Mapping[str, PlanPart]) -> list[tuple[str, str]]:
    """Return the (parent, child) pairs that close a cycle.

    The search is depth first in the order of the ids, without recursion.
    """
    children: dict[str, list[str]] = {id: [] for id in parts}
    for id in sorted(parts, key=split_part_id):
        for parent in parts[id].parents:
            children[parent].append(id)
    state: dict[str, int] = {}
    edges = []
    for root in sorted(parts, key=split_part_id):
        if root in state:
            continue
        # 1: on the path that is followed now; 2: done. An edge into a part on the path closes a cycle.
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


def keep_needed_parts(parts: Mapping[str, PlanPart], max_parts: int) -> dict[str, PlanPart]:
    """Keep only the parts that the last part needs, if a plan has more than ``max_parts``.

    Raise ParseError if the needed parts are still too many.
    """
    if len(parts) <= max_parts:
        return dict(parts)
    waiting = [list(parts)[-1]]
    needed: set[str] = set()
    while waiting:
        if (id := waiting.pop()) not in needed:
            needed.add(id)
            waiting += parts[id].parents
    if len(needed) > max_parts:
        raise ParseError(
            f"The plan has {len(parts)} parts, {len(needed)} of them needed. Write at most {max_parts}.", "too_many"
        )
    return {id: part for id, part in parts.items() if id in needed}


def renumber_parts(parts: tuple[PlanPart, ...], always: bool) -> tuple[PlanPart, ...]:
    """Renumber the parts by depth, if their ids do not tell the depth or ``always`` is set."""
    depth = compute_depths(parts)
    if not always and all(int(part.id[1:].partition(".")[0]) == depth[part.id] for part in parts):
        return parts
    names: dict[str, str] = {}
    for part in parts:
        index = 1 + sum(depth[other] == depth[part.id] for other in names)
        names[part.id] = f"Q{depth[part.id]}.{index}"
    return tuple(rename_part(part, names) for part in parts)


def split_part_id(id: str) -> tuple[int, ...]:
    return tuple(int(number) for number in id[1:].split("."))


MAX_PARTS = 200


def parse_plan_graph(
    reply: str, max_parts: int = MAX_PARTS, sources: Sequence[str] = (), mend: bool = False
) -> PlanGraph:
    """Parse a plan into a graph of parts. ``mend``: repair each defect by a rule instead of raising ParseError.

    >>> graph = parse_plan_graph('{"nodes": [{"id": "Q2.1", "query": "use <A1.1>"}, {"id": "Q1.1", "query": "a"}]}')
    >>> [part.id for part in graph.parts]
    ['Q1.1', 'Q2.1']
    >>> parse_plan_graph("1. Who directed Heat?\\n2. Where was #1 born?").parts[1]
    PlanPart(id='Q2.1', query='Where was <A1.1> born?', parents=('Q1.1',), source='', degraded=False)

    Raises:
        ParseError: no plan can be read, an id is not like Q1.1 (shape), a parent is not there (missing_parent), the
            parts need each other (cycle), there are more than ``max_parts`` (too_many), a source is none of
            ``sources`` (unknown_tool), or there are more than 200 or they are deeper than 32 (limits).
    """
    drafts = read_drafts(clean_reply(reply), mend)
    if drafts.simple:
        return PlanGraph((), simple=True)
    if len(drafts.drafts) > MAX_PARTS:
        raise ParseError(f"The plan has more than {MAX_PARTS} parts.", "limits")
    # Drafts become parts: parents from lists and tags, equal parts merged.
    written = []
    for draft in drafts.drafts:
        # A tag makes a parent, whether the plan lists it or not.
        needs = tuple(dict.fromkeys([*draft.needs, *find_tagged_parts(draft.query)]))
        written.append(PlanPart(draft.id, replace_surrogates(draft.query), needs, draft.source))
    parts = merge_equal_parts(written)
    parts = match_part_sources(parts, sources, mend)
    # A second reply is mended, a first one goes back with all its defects.
    if mend:
        for part in list(parts.values()):
            for parent in part.parents:
                if parent not in parts:
                    parts[part.id] = drop_parent(parts[part.id], parent)
        while edges := find_back_edges(parts):
            # The edge into the highest id, because it most likely points back; one at a time, for one cut may open
            # several cycles.
            parent, child = max(edges, key=lambda edge: (split_part_id(edge[1]), split_part_id(edge[0])))
            parts[child] = drop_parent(parts[child], parent)
        parts = keep_needed_parts(parts, max_parts)
    elif wrong := find_plan_defects(parts, max_parts):
        raise ParseError("\n".join(text for _, text in wrong), wrong[0][0])
    return PlanGraph(renumber_parts(sort_by_depth(parts), drafts.numbered))


def match_part_sources(parts: Mapping[str, PlanPart], sources: Sequence[str], mend: bool) -> dict[str, PlanPart]:
    """Replace the source of each part by the exact tool name; empty if ``sources`` is empty.

    An unknown source raises ParseError, or becomes empty when mending.
    """
    sourced = {}
    for id, part in parts.items():
        source = ""
        if part.source and sources:
            try:
                source = match_tool(part.source, sources)
            except ParseError:
                if not mend:
                    raise
        sourced[id] = replace(part, source=source)
    return sourced


def find_plan_defects(parts: Mapping[str, PlanPart], max_parts: int) -> list[tuple[str, str]]:
    """Return all defects of a plan: a word for counting, and the complaint to the LLM."""
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
