"""The story of one case as JSON for the page: plan, queries, observations, replans, decision, evidence.

Cut to a number of characters. What is cut is said; records that the decision cites are always kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from decisor.render.text import number
from decisor.replies.reasons import in_words
from decisor.story.decision import beside, doubts
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    Entry,
    FailedCall,
    LMCall,
    MeaningChoice,
    Note,
    Plan,
    PlanChange,
    RunStart,
    RunUsage,
    ShortenedPrompt,
    Span,
    TechniqueChoice,
    UnreadableReply,
    UnscoredAnswer,
    events_of,
)
from decisor.trace.graph_events import GraphPlan, GraphResult, NodeResult, NodeSpan
from decisor.trace.search_events import AnswerSnapshot, QueryScores, SearchMatch, SearchNode, SearchProblem, SearchTree
from decisor.types import Decision, Question, Record

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


def story(entries: Sequence[Entry], most: int = 60_000) -> str:
    """JSON of at most about ``most`` characters: the least cut version that fits, else the most cut one."""
    text = ""
    for caps in LEVELS:
        text = json.dumps(story_item(entries, caps), ensure_ascii=False, default=str, separators=(",", ":"))
        if len(text) <= most:
            break
    return text.encode("utf-8", "replace").decode()  # an LLM of one's own may write half characters


def story_item(entries: Sequence[Entry], caps: Caps) -> Item:
    question = next((start.question for start in events_of(entries, RunStart)), Question(""))
    return {
        "question": cut(question.text, 4 * caps.text),
        "goal": cut(question.goal, caps.text),
        "rules": cut(question.rules, 2 * caps.text),
        "items": Teller(entries, caps).items(0),
    }


class Teller:
    """Walks the entries of each span; an observation is told with its action."""

    def __init__(self, entries: Sequence[Entry], caps: Caps) -> None:
        self.caps = caps
        self.cited = {id for one in events_of(entries, Conclusion) for id in one.decision.evidence.ids}
        self.results = {result.action: result for result in events_of(entries, ActionResult)}
        self.inside: dict[int, list[Entry]] = defaultdict(list)
        for entry in entries:
            self.inside[entry.span].append(entry)

    def items(self, span: int) -> list[Item]:
        """What happened in a span, in order; in the middle left out where it is too long."""
        items = [item for entry in self.inside.get(span, ()) if (item := self.item(entry))]
        if len(items) <= self.caps.items:
            return items
        ending = self.caps.items // 3
        skipped = len(items) - self.caps.items
        return [*items[: self.caps.items - ending], {"kind": "cut", "items": skipped}, *items[-ending:]]

    def item(self, entry: Entry) -> Item | None:
        """What the page's script draws; None for what is told elsewhere, or is for programs only."""
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
                return {"kind": "says", "texts": self.lines(texts), "model": model, "tokens": usage.tokens,
                        "seconds": usage.seconds}  # fmt: skip
            case ActionStart():
                return {**self.action(event, self.results.get(entry.id)), "entry": entry.id}
            case Conclusion(decision=decision):
                return self.decision(decision)
            case UnreadableReply(reason=reason):
                return self.note({"problem": "reply", "reason": reason}, in_words(reason))
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

    def span(self, name: str, about: Mapping[str, str], entry: Entry) -> Item:
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
        """Records under a header, a new one where the columns change. The first cell of a row is the record's id."""
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
            "reasons": self.lines((*decision.reasons, *beside(decision))),
            "evidence": list(decision.evidence.ids)[:200],
            "objections": self.lines(one.text for one in decision.evidence.objections),
            "doubts": self.lines(doubts(decision)),
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
        return cut(text, self.caps.text)

    def cell(self, value: object, most: int = 0) -> str:
        if isinstance(value, str):
            return cut(value, most or self.caps.cell)
        if isinstance(value, float):
            return number(value)
        return cut(json.dumps(value, ensure_ascii=False, default=str), most or self.caps.cell)


def cut(text: str, most: int) -> str:
    """The beginning, and how much more there was.

    >>> cut("abcdefghij", 4)
    'abcd… (+6)'
    """
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,})"
