"""What the trace of a search says of its answer, for every benchmark with an environment."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.trace.events import ActionResult, ActionStart, Entry, events_of
from decisor.trace.search_events import SearchNode, SearchTree


def search_metrics(events: Sequence[Entry]) -> dict[str, float]:
    """``elo``: the rating of the sequence that was chosen; nothing where no comparison was made.

    >>> from decisor.trace.search_events import NodeRating
    >>> nodes = (NodeRating(0), NodeRating(1, 0, elo=40.0, matches=2))
    >>> search_metrics([Entry(1, 0, 0.0, SearchTree(nodes, chosen=1))])
    {'elo': 40.0}
    """
    for tree in reversed([*events_of(events, SearchTree)]):
        leaves = [node for node in tree.nodes if node.node == tree.chosen]
        return {"elo": leaves[0].elo} if leaves and leaves[0].matches else {}
    return {}


def chosen_path(events: Sequence[Entry]) -> list[Entry]:
    """The trace of the sequence that a search chose: its actions and what they brought, in order. The whole trace where
    nothing was searched, nothing where no sequence was chosen.

    >>> from decisor.trace.search_events import NodeRating
    >>> from decisor.types import Action, Observation
    >>> def step(at, node, parent, input):
    ...     return [Entry(at, 0, 0.0, ActionStart("f", input)), Entry(at + 1, 0, 0.0, ActionResult(at, Observation())),
    ...             Entry(at + 2, 0, 0.0, SearchNode(node, parent, Action("f", input)))]
    >>> nodes = (NodeRating(0), NodeRating(1, 0), NodeRating(2, 0))
    >>> trace = [*step(1, 1, 0, "a"), *step(4, 2, 0, "b"), Entry(7, 0, 0.0, SearchTree(nodes, chosen=2))]
    >>> [entry.id for entry in chosen_path(trace)]
    [4, 5]
    """
    trees = [*events_of(events, SearchTree)]
    if not trees:
        return list(events)
    parents = {node.node: node.parent for node in trees[-1].nodes}
    path: set[int] = set()
    node = trees[-1].chosen
    while node is not None:
        path.add(node)
        node = parents.get(node)
    starts: dict[int, Entry] = {}
    results: dict[tuple[str, str], list[Entry]] = {}
    chosen: list[Entry] = []
    for entry in events:
        match entry.event:
            case ActionStart():
                starts[entry.id] = entry
            case ActionResult(action=at) if at in starts:
                start = starts[at].event
                assert isinstance(start, ActionStart)
                results.setdefault((start.tool, start.input), []).append(entry)
            case SearchNode(node=number, action=action) if came := results.get((action.tool, action.input)):
                result = came.pop()
                assert isinstance(result.event, ActionResult)
                chosen += [starts[result.event.action], result] if number in path else []
    return chosen


def answers_on_the_way(events: Sequence[Entry]) -> list[str]:
    """The different answers that the sequences of a search ended with, the earliest first."""
    nodes = [node for tree in events_of(events, SearchTree) for node in tree.nodes]
    return list(dict.fromkeys(node.answer for node in nodes if node.ended == "answered"))
