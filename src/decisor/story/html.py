"""The story of one case as plain values for the page: plan, queries, observations, replans, decision, evidence.

Cut to a number of characters. What is cut is said; records that the decision cites are always kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decisor.trace.events import Event

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Caps:
    """How much is kept: characters of a text and a cell, rows of an observation, items of a span."""

    text: int
    cell: int
    rows: int
    items: int


LEVELS = (
    Caps(6000, 300, 40, 400),
    Caps(1600, 160, 12, 160),
    Caps(500, 90, 6, 80),
    Caps(160, 60, 3, 40),
    Caps(80, 40, 2, 14),
)


def story(events: Sequence[Event], most: int = 60_000) -> str:
    """JSON of at most about ``most`` characters: the least cut version that fits, else the most cut one.

    ``events``: as a store gives them, data as plain values.
    """
    cited = {name for event in events if event.kind == "decision" for name in _evidence(event.data).get("ids", ())}
    text = ""
    for caps in LEVELS:
        text = json.dumps(_told(events, cited, caps), ensure_ascii=False, default=str, separators=(",", ":"))
        if len(text) <= most:
            break
    return text


def _told(events: Sequence[Event], cited: set[str], caps: Caps) -> Item:
    head = next((event.data for event in events if event.kind == "run"), {})
    question = head.get("question") or {}
    return {
        "question": cut(question.get("text", ""), 4 * caps.text),
        "goal": cut(question.get("goal", ""), caps.text),
        "rules": cut(question.get("rules", ""), 2 * caps.text),
        "items": _Teller(events, cited, caps).items(0),
    }


class _Teller:
    """Walks the events of each span; an observation is told with its action."""

    def __init__(self, events: Sequence[Event], cited: set[str], caps: Caps) -> None:
        self.caps, self.cited = caps, cited
        self.seen = {event.data.get("action"): event.data for event in events if event.kind == "observation"}
        self.inside: dict[int, list[Event]] = defaultdict(list)
        for event in events:
            self.inside[event.parent].append(event)

    def items(self, span: int) -> list[Item]:
        """What happened in a span, in order; in the middle left out where it is too long."""
        found = [item for event in self.inside.get(span, ()) if (item := self.item(event))]
        if len(found) <= self.caps.items:
            return found
        ending = self.caps.items // 3
        skipped = len(found) - self.caps.items
        return [*found[: self.caps.items - ending], {"kind": "cut", "items": skipped}, *found[-ending:]]

    def item(self, event: Event) -> Item | None:
        data = event.data
        if event.kind == "span":
            more = {key: value for key, value in data.items() if key != "name" and isinstance(value, str | int | float)}
            return {"kind": "span", "name": self.cut(data.get("name", "")), "about": self.pairs(more),
                    "items": self.items(event.id)}  # fmt: skip
        if event.kind == "plan":
            return {"kind": "plan", "plan": self.lines(data.get("plan"))}
        if event.kind == "replan":
            return {"kind": "replan", "after": data.get("after_step"), "why": self.cut(data.get("why", "")),
                    "plan": self.lines(data.get("plan"))}  # fmt: skip
        if event.kind == "lm":
            usage = data.get("usage") or {}
            return {"kind": "says", "texts": self.lines(data.get("texts")), "model": str(data.get("model", "")),
                    "tokens": usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0),
                    "seconds": usage.get("seconds", 0.0)}  # fmt: skip
        if event.kind == "action":
            return self.action(event)
        if event.kind == "decision":
            return self.decision(data.get("decision") or {})
        return self.note(data) if event.kind == "note" else None

    def action(self, event: Event) -> Item:
        came = self.seen.get(event.id)
        item = {"kind": "acts", "tool": str(event.data.get("tool", "")), "input": self.cut(event.data.get("input", ""))}
        if came is None:
            return {**item, "note": "nothing came back: the run ended here", "error": True, "seconds": 0.0}
        observation = came.get("observation") or {}
        records = observation.get("records") or []
        kept = [one for at, one in enumerate(records) if at < self.caps.rows or one.get("id") in self.cited]
        return {
            **item,
            "seconds": came.get("seconds", 0.0),
            "error": bool(observation.get("error")),
            "note": self.cut(observation.get("note", "")),
            "tables": self.tables(kept),
            "shown": len(kept),
            "total": observation.get("total") or len(records),
        }

    def tables(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Records under a header, a new one where the columns change. The first cell of a row is the record's id."""
        tables: list[Item] = []
        for record in records:
            fields = dict(record.get("fields") or {})
            if record.get("text"):
                fields["text"] = record["text"]
            if record.get("source"):
                fields.setdefault("source", record["source"])
            columns = [self.cell(name) for name in fields]
            if not tables or tables[-1]["columns"] != columns:
                tables.append({"columns": columns, "rows": []})
            limits = [self.caps.text if name == "text" else self.caps.cell for name in fields]
            cells = [self.cell(value, most) for value, most in zip(fields.values(), limits, strict=True)]
            tables[-1]["rows"].append([str(record.get("id", "")), *cells])
        return tables

    def decision(self, data: Mapping[str, Any]) -> Item:
        ranking = data.get("ranking") or {}
        figures = _evidence(data).get("figures") or []
        return {
            "kind": "decides",
            "answer": self.cut(data.get("answer", "")),
            "stopped": str(data.get("stopped", "")),
            "reasons": self.lines(data.get("reasons")),
            "evidence": [str(name) for name in _evidence(data).get("ids", ())][:200],
            "unsupported": [self.cell(figure["text"]) for figure in figures if not figure.get("support")][:40],
            "ranking": [
                [self.cell(option["name"]), option["outcome"], option["name"] in (ranking.get("ties") or ())]
                for option in (ranking.get("options") or [])[:10]
            ],
            "measure": self.cut(ranking.get("measure", "")),
        }

    def note(self, data: Mapping[str, Any]) -> Item | None:
        if "usage" in data or data.get("name") in ("tree", "snapshot", "node"):
            return None  # told elsewhere
        rest = {key: value for key, value in data.items() if isinstance(value, str | int | float) and key != "text"}
        return {"kind": "notes", "about": self.pairs(rest), "text": self.cut(data.get("text", ""))}

    def pairs(self, data: Mapping[str, Any]) -> str:
        return ", ".join(f"{key} {self.cell(value)}" for key, value in data.items())

    def lines(self, texts: Any) -> list[str]:
        return [self.cut(text) for text in texts or ()]

    def cut(self, text: Any) -> str:
        return cut(str(text), self.caps.text)

    def cell(self, value: Any, most: int = 0) -> str:
        if isinstance(value, str):
            return cut(value, most or self.caps.cell)
        return cut(json.dumps(value, ensure_ascii=False, default=str), most or self.caps.cell)


def cut(text: str, most: int) -> str:
    """The beginning, and how much more there was.

    >>> cut("abcdefghij", 4)
    'abcd… (+6)'
    """
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,})"


def _evidence(data: Mapping[str, Any]) -> Mapping[str, Any]:
    decision = data.get("decision", data) or {}
    return decision.get("evidence") or {}
