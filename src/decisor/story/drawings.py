"""What of a run can be drawn: the reasoning DAG with what became of each node, and search trees."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence

from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.story.drawing import Box, Drawing, label, words
from decisor.story.layered import layered
from decisor.story.tidy import tidy
from decisor.story.tree import ENDED, way_to
from decisor.trace.events import ActionResult, Entry, events_of
from decisor.trace.graph_events import GraphPlan, NodeAnswer, NodeResult, NodeSpan
from decisor.trace.search_events import NodeRating, SearchNode, SearchTree


def drawings(entries: Sequence[Entry]) -> Iterator[Drawing]:
    """Each of a run; a plan of a single part is none."""
    plans = [plan for plan in events_of(entries, GraphPlan) if len(plan.graph.parts) > 1]
    if plans:
        yield graph_drawing(plans[-1], entries)
    for entry in entries:
        if isinstance(entry.event, SearchTree) and len(entry.event.nodes) > 1:
            yield tree_drawing(entry.event, [one for one in entries if one.span == entry.span])


def graph_drawing(plan: GraphPlan, entries: Sequence[Entry]) -> Drawing:
    begun = {entry.event.node: entry.id for entry in entries if isinstance(entry.event, NodeSpan)}
    answers = {result.answer.node: result.answer for result in events_of(entries, NodeResult)}
    boxes = []
    for part in plan.graph.parts:
        answer = answers.get(part.id, NodeAnswer(part.id, part.query))
        kind = answer.status if part.id in answers else "waiting"
        became = answer.answer or ("" if kind == "waiting" else answer.status)
        head = f"{part.id}  {part.source}" if part.source else part.id
        lines = label(head, answer.question or part.query)
        if became:
            lines = (*lines, *label(f"→ {became}"))
        title = words(part.id, answer.question or part.query, became and f"→ {became}", answer.why, answer.support)
        boxes.append(Box(part.id, lines, kind, title, begun.get(part.id, 0)))
    parents = {part.id: part.parents for part in plan.graph.parts}
    done = sum(box.kind == "answered" for box in boxes)
    return layered(boxes, parents, f"Reasoning DAG: {counted(len(boxes), 'node')}, {done} answered")


def tree_drawing(tree: SearchTree, entries: Sequence[Entry]) -> Drawing:
    """``entries``: those of the tree's span."""
    grown = {entry.event.node: entry for entry in entries if isinstance(entry.event, SearchNode)}
    way = way_to(tree.chosen, {node.node: node.parent for node in tree.nodes})
    steps = [entry.event.action for entry in entries if isinstance(entry.event, ActionResult)]
    boxes, parents = [], {}
    for node in tree.nodes:
        entry = grown.get(node.node)
        at = bisect(steps, entry.id) if entry else 0
        boxes.append(tree_box(node, entry, node.node in way, steps[at - 1] if at else 0))
        if node.parent is not None:
            parents[str(node.node)] = str(node.parent)
    ends = sum(bool(node.ended) for node in tree.nodes)
    title = f"Search tree: {counted(len(boxes) - 1, 'node')}, {counted(ends, 'sequence')}"
    return tidy(boxes, parents, title)


def tree_box(node: NodeRating, entry: Entry | None, chosen: bool, step: int) -> Box:
    """``step``: the entry that its action began with."""
    kind = " ".join(part for part in ("way" if chosen else "", node.ended) if part)
    rate = f"Elo {node.elo:+.0f}" if node.matches else f"value {node.value:.3g}" if node.value else ""
    if entry is None or not isinstance(entry.event, SearchNode):
        head = "start" if node.parent is None else ENDED.get(node.ended, str(node.node))
        return Box(str(node.node), label("  ".join((head, rate)).strip()), kind, words(head, rate, node.answer))
    grown = entry.event
    lines = label("  ".join(part for part in (grown.action.tool, rate) if part), grown.action.input, most=1)
    result = one_line(grown.text, 200)
    title = words(grown.action.tool, rate, grown.thought, grown.action.input, result and f"→ {result}", node.answer)
    return Box(str(node.node), lines, f"{kind} error".strip() if grown.error else kind, title, step)
