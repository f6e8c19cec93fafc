"""What the trace of a search says of its answer, for every benchmark with an environment."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.trace.events import Event


def search_metrics(events: Sequence[Event]) -> dict[str, float]:
    """``elo``: the rating of the sequence that was chosen; nothing where no comparison was made.

    >>> row = {"id": 1, "elo": 40.0, "matches": 2}
    >>> search_metrics([Event(1, 0, "note", 0.0, {"name": "tree", "nodes": [{"id": 0}, row], "chosen": 1})])
    {'elo': 40.0}
    """
    for event in reversed(events):
        if event.kind == "note" and event.data.get("name") == "tree":
            chosen = [node for node in event.data["nodes"] if node["id"] == event.data["chosen"]]
            return {"elo": float(chosen[0]["elo"])} if chosen and chosen[0]["matches"] else {}
    return {}
