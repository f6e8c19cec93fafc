"""What the trace of a search says of its answer, for every benchmark with an environment."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.trace.events import Entry, events_of
from decisor.trace.search_events import SearchTree


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
