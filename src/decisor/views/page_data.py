"""The story of one case as JSON for the page: plan, queries, observations, replans, decision, evidence.

Cut to a number of characters. What is cut is said; records that the decision cites are always kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from decisor.parsing.prompting import explain_reason
from decisor.system.text import format_number
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    AnswerSnapshot,
    Conclusion,
    FailedCall,
    GraphPlan,
    GraphResult,
    LMCall,
    MeaningChoice,
    NodeResult,
    NodeSpan,
    Note,
    Plan,
    PlanChange,
    QueryScores,
    RunStart,
    RunUsage,
    SearchMatch,
    SearchNode,
    SearchProblem,
    SearchTree,
    ShortenedPrompt,
    Span,
    TechniqueChoice,
    TraceEntry,
    UnreadableReply,
    UnscoredAnswer,
    events_of,
)
from decisor.types import Decision, Question, Record
from decisor.views.transcript import pitfall_lines, runner_up_lines

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoryCaps:
    """Limits of a story: characters of a text and a cell, rows of an observation, items of a span."""

    text: int
    cell: int
    rows: int
    items: int


LEVELS = (
    StoryCaps(6000, 300, 40, 400),
    StoryCaps(1600, 160, 12, 160),
    StoryCaps(500, 90, 6, 80),
    StoryCaps(160, 60, 3, 40),
    StoryCaps(80, 40, 2, 14),
)


def story_json(entries: Sequence[TraceEntry], most: int = 60_000) -> str:
    """Return a story as JSON of at most about ``most`` characters.

    It is the least cut version that fits, else the most cut one.
    """
    text = ""
    for caps in LEVELS:
        text = json.dumps(story_item(entries, caps), ensure_ascii=False, default=str, separators=(",", ":"))
        if len(text) <= most:
            break
    return text.encode("utf-8", "replace").decode()  # an LLM of one's own may write half characters


def story_item(entries: Sequence[TraceEntry], caps: StoryCaps) -> Item:
    question = next((start.question for start in events_of(entries, RunStart)), Question(""))
    return {
        "question": cut_text(question.text, 4 * caps.text),
        "goal": cut_text(question.goal, caps.text),
        "rules": cut_text(question.rules, 2 * caps.text),
        "items": StoryWriter(entries, caps).items(0),
    }


class StoryWriter:
    """A writer of the items of each span; an observation is part of its action's item."""

    def __init__(self, entries: Sequence[TraceEntry], caps: StoryCaps) -> None:
        self.caps = caps
        self.cited = {id for one in events_of(entries, Conclusion) for id in one.decision.evidence.ids}
        self.results = {result.action: result for result in events_of(entries, ActionResult)}
        self.inside: dict[int, list[TraceEntry]] = defaultdict(list)
        for entry in entries:
            self.inside[entry.span].append(entry)

    def items(self, span: int) -> list[Item]:
        """Return the items of a span in order; if they are too many, the middle is left out."""
        items = [item for entry in self.inside.get(span, ()) if (item := self.item(entry))]
        if len(items) <= self.caps.items:
            return items
        ending = self.caps.items // 3
        skipped = len(items) - self.caps.items
        return [*items[: self.caps.items - ending], {"kind": "cut", "items": skipped}, *items[-ending:]]

    def item(self, entry: TraceEntry) -> Item | None:
        """Return an entry as the page's script draws it; None if it has no drawing of its own.

        Such an entry is drawn elsewhere, or is for programs only.
        """
        match event := entry.event:
            case Span(name=name):
                return self.span(name, {}, entry)
            case NodeSpan(node=node, question=question, source=source):
                item = self.span("node", {"node": node, "ask": question, "source": source}, entry)
                return {**item, "entry": entry.id, "node": node, "ask": self.cut(question), "source": source}
            case Plan(steps=steps) | GraphPlan(steps=steps):
                return {"kind": "plan", "plan": self.lines(steps)}
            case PlanChange(after_step=after, why=why, steps=steps):
                return {"kind": "replan", "after": after, "why": self.cut(why), "plan": self.lines(steps)}
            case LMCall(texts=texts, model=model, usage=usage):
                return {
                    "kind": "says",
                    "texts": self.lines(texts),
                    "model": model,
                    "tokens": usage.tokens,
                    "seconds": usage.seconds,
                }
            case ActionStart():
                return {**self.action(event, self.results.get(entry.id)), "entry": entry.id}
            case Conclusion(decision=decision):
                return self.decision(decision)
            case UnreadableReply(reason=reason):
                return self.note({"problem": "reply", "reason": reason}, explain_reason(reason))
            case FailedCall(reason=reason, text=text):
                return self.note({"problem": "lm", "reason": reason}, text)
            case ShortenedPrompt(text=text):
                return self.note({"problem": "shortened"}, text)
            case UnscoredAnswer(text=text):
                return self.note({"problem": "unscored"}, text)
            case SearchProblem(problem=problem, text=text):
                return self.note({"problem": problem}, text)
            case TechniqueChoice(technique=technique, why=why):
                return self.note({"auto": technique}, why)
            case GraphResult(attribution=attribution, document=document):
                return self.note({"attribution": attribution, "document": document})
            case QueryScores(queries=queries, scores=scores):
                return self.note({"scores": ""}, "\n".join(f"{s:g} {q}" for s, q in zip(scores, queries, strict=False)))
            case SearchMatch(nodes=nodes, score=score):
                return self.note({"match": f"{nodes[0]} against {nodes[1]}", "score": score})
            case NodeResult(answer=answer):
                words = answer.answer if answer.status == "answered" else f"{answer.status}: {answer.why}"
                note = self.note({"node": answer.node, "attribution": answer.attribution}, words)
                return {**note, "attribution": answer.attribution}
            case Note(text=text):
                return self.note({}, text)
            case RunStart() | ActionResult() | MeaningChoice() | RunUsage():
                return None
            case SearchNode() | SearchTree() | AnswerSnapshot():
                return None
            case _:
                assert_never(event)

    def span(self, name: str, about: Mapping[str, str], entry: TraceEntry) -> Item:
        return {"kind": "span", "name": self.cut(name), "about": self.pairs(about), "items": self.items(entry.id)}

    def action(self, start: ActionStart, result: ActionResult | None) -> Item:
        item = {"kind": "acts", "tool": start.tool, "input": self.cut(start.input)}
        if result is None:
            return {**item, "note": "nothing came back: the run ended here", "error": True, "seconds": 0.0}
        observation = result.observation
        records = observation.records
        visible = [one for at, one in enumerate(records) if at < self.caps.rows or one.id in self.cited]
        return {
            **item,
            "seconds": result.seconds,
            "error": observation.error,
            "note": self.cut(observation.note),
            "tables": self.tables(visible),
            "shown": len(visible),
            "total": observation.total or len(records),
        }

    def tables(self, records: Iterable[Record]) -> list[Item]:
        """Group records under headers, a new one where the columns change.

        The first cell of a row is the record's id.
        """
        tables: list[Item] = []
        for record in records:
            fields: dict[str, Any] = dict(record.fields)
            if record.text:
                fields["text"] = record.text
            if record.source:
                fields.setdefault("source", record.source)
            columns = [self.cell(name) for name in fields]
            if not tables or tables[-1]["columns"] != columns:
                numeric = [isinstance(value, int | float) for value in fields.values()]
                tables.append({"columns": columns, "numeric": numeric, "rows": []})
            limits = [self.caps.text if name == "text" else self.caps.cell for name in fields]
            cells = [self.cell(value, most) for value, most in zip(fields.values(), limits, strict=True)]
            tables[-1]["rows"].append([record.id, *cells])
        return tables

    def decision(self, decision: Decision) -> Item:
        ranking = decision.ranking
        options = ranking.options[:10] if ranking else ()
        ties = ranking.ties if ranking else ()
        return {
            "kind": "decides",
            "answer": self.cut(decision.answer),
            "stopped": decision.stopped,
            "reasons": self.lines((*decision.reasons, *runner_up_lines(decision))),
            "evidence": list(decision.evidence.ids)[:200],
            "objections": self.lines(one.text for one in decision.evidence.objections),
            "doubts": self.lines(pitfall_lines(decision)),
            "ranking": [[self.cell(option.name), option.outcome, option.name in ties] for option in options],
            "measure": self.cut(ranking.measure if ranking else ""),
        }

    def note(self, about: Mapping[str, str | float], text: str = "") -> Item:
        return {"kind": "notes", "about": self.pairs(about), "text": self.cut(text)}

    def pairs(self, data: Mapping[str, str | float]) -> str:
        return ", ".join(f"{key} {self.cell(value)}".strip() for key, value in data.items())

    def lines(self, texts: Iterable[str]) -> list[str]:
        return [self.cut(text) for text in texts]

    def cut(self, text: str) -> str:
        return cut_text(text, self.caps.text)

    def cell(self, value: object, most: int = 0) -> str:
        if isinstance(value, str):
            return cut_text(value, most or self.caps.cell)
        if isinstance(value, float):
            return format_number(value)
        return cut_text(json.dumps(value, ensure_ascii=False, default=str), most or self.caps.cell)


def cut_text(text: str, most: int) -> str:
    """Cut a text and say how much more there was.

    >>> cut_text("abcdefghij", 4)
    'abcd… (+6)'
    """
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,})"
