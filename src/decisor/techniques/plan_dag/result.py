"""From the answers of all nodes to a decision: what it rests on, what is missing, and what is counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from decisor.replies.attribution import NO_NAME, Attribution, holds, normal, words_of
from decisor.replies.figures import check_figures, numbers_of, without_citations
from decisor.replies.numbers import numbers_in
from decisor.replies.plan_graph import PlanGraph
from decisor.techniques.plan_dag.node_answer import show_graph
from decisor.techniques.shared.decision import LEFT_OUT, NO_ANSWER
from decisor.techniques.shared.objections import Claims, find_objections
from decisor.trace.graph_events import NodeAnswer
from decisor.types import Decision, Evidence, Objection, Question, Stopped

FALLBACK = "fallback"


def conclusion(
    question: Question,
    plan: PlanGraph,
    answers: Sequence[NodeAnswer],
    answer: str,
    because: str,
    stopped: Stopped = "answered",
) -> Decision:
    """The decision: its evidence are the documents that the nodes' answers stand in, its reasons the nodes."""
    none = bool(NO_ANSWER.fullmatch(without_citations(answer)))
    name = "" if none else without_citations(answer).strip(LEFT_OUT)
    records = [record for one in answers for record in one.documents]
    sources = [(record.id, numbers_of(record)) for record in records]
    sources += [(one.node, list(numbers_in(one.answer))) for one in answers]
    sources.append(("question", list(numbers_in(str(question)))))
    ids = tuple(dict.fromkeys(id for one in answers for id in (one.document, *one.also) if id))
    evidence = Evidence(ids, check_figures(f"{name}\n{because}", sources),
                        objections=objections_to(question, answers, name, because))  # fmt: skip
    if any(one.status == "budget" for one in answers) and stopped == "answered":
        stopped = "budget"
    if not name and stopped == "answered":
        stopped = "no_answer"
    reasons = [because] if because else []
    reasons += [reason_of(one) for one in answers]
    decision = Decision(name, evidence, plan=show_graph(plan), stopped=stopped)
    attribution, document = attribution_of(name, plan, answers)
    if name:
        reasons.append(WORDS[attribution].format(document=document))
    return replace(decision, reasons=tuple(reasons))


def objections_to(question: Question, answers: Sequence[NodeAnswer], name: str, because: str) -> tuple[Objection, ...]:
    """What of the answer neither the documents nor the answers of the nodes say."""
    records = {record.id: record for one in answers for record in one.documents}
    known = "\n".join(f"{one.question} {one.answer}" for one in answers)
    return (
        find_objections(Claims(name, because, "", tuple(records)), records, str(question), known=known)
        if records
        else ()
    )


def reason_of(one: NodeAnswer) -> str:
    """
    >>> reason_of(NodeAnswer("Q1.1", "Who wrote it?", "Ann", document="o1.r2"))
    'Q1.1: Who wrote it? -> Ann [o1.r2]'
    """
    if one.missing:
        return f"Missing: {one.node}: {one.question} ({one.status}: {one.why})"
    answer = one.answer or "unknown"
    cited = "".join(f" [{id}]" for id in (one.document, *one.also) if id)
    mark = cited if one.document else f" ({one.attribution.replace('_', ' ')})" if one.answer else ""
    return f"{one.node}: {one.question} -> {answer}{mark}" + ("" if one.sure else " (not certain)")


def only_last(question: Question, plan: PlanGraph, answers: Sequence[NodeAnswer]) -> NodeAnswer | None:
    """The one node that no other needs, where it is answered: what it says is the answer. None where there are several,
    something is missing, or the question wants a yes or no that the node does not say."""
    ids = {part.id for part in plan.sinks}
    last = [one for one in answers if one.node in ids]
    if len(last) != 1 or any(one.status != "answered" for one in answers):
        return None
    wants_word = YES_OR_NO.match(question.text.strip()) and normal(last[0].answer) not in NO_NAME
    return None if wants_word or question.rules or question.goal else last[0]


YES_OR_NO = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)\b", re.I)


def attribution_of(answer: str, plan: PlanGraph, answers: Sequence[NodeAnswer]) -> tuple[Attribution, str]:
    """Of the final answer: attributed where any node's document holds it, else as the last node that nothing needs."""
    if answer and normal(answer) not in NO_NAME:
        for one in reversed(answers):
            for document in one.documents:
                if holds(words_of(document), answer):
                    return "attributed", document.id
    sinks = {part.id for part in plan.sinks}
    last = [one for one in answers if one.node in sinks and one.status == "answered"]
    if not last or last[-1].attribution == "attributed":
        return "unattributed", ""
    return last[-1].attribution, last[-1].document


def counts_of(plan: PlanGraph, answers: Sequence[NodeAnswer]) -> dict[str, int]:
    """What is counted of one question. ``depth`` has the main question at 0, so 0 is: no plan."""
    counts = {
        "nodes": 0 if plan.simple else len(plan.parts),
        "depth": 0 if plan.simple else len(plan.levels),
        "plan_fallback": int(FALLBACK in plan.repairs),
        "degraded": sum(part.degraded for part in plan.parts),
        "missing": sum(one.missing for one in answers),
        "retrievals": sum(one.retrievals for one in answers),
        "nodes_one_document": sum(len(one.documents) == 1 for one in answers),
        "nodes_documents": sum(len(one.documents) > 1 for one in answers),
    }
    kinds = [one.attribution for one in answers if one.status == "answered"]
    return counts | {f"nodes_{kind}": kinds.count(kind) for kind in get_args(Attribution)}


WORDS = {
    "attributed": "The answer stands in [{document}].",
    "quoted": "The answer rests on words quoted from [{document}].",
    "model_knowledge": "The answer follows from those before, or is the model's own knowledge: "
    "no document was looked for.",
    "manual": "The answer was set by hand.",
    "unattributed": "No document that was read holds this answer.",
}
