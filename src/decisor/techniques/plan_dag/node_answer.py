"""What becomes of a node of a reasoning DAG, and how that is told: to its children, to the aggregator, in the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from decisor.calls.prompt_parts import joined
from decisor.replies.attribution import attribute, rests_on
from decisor.replies.plan_graph import Part, PlanGraph
from decisor.run import Run
from decisor.techniques.shared.render import record_line, show_value
from decisor.trace.graph_events import NodeAnswer, NodeResult
from decisor.types import Record

MOST_DOCUMENTS = 20


class Chunk(NamedTuple):
    """What a generator wrote: an answer ('' = unknown), and the words of a document that it rests on."""

    text: str
    quote: str = ""


def node_answer(
    part: Part, question: str, chunk: Chunk, documents: Sequence[Record], retrievals: int, sure: bool
) -> NodeAnswer:
    """A node's answer with its attribution. An empty answer is an unknown one; of many rows the first are kept."""
    attribution, document, support = attribute(chunk.text, chunk.quote, documents, retrievals > 0)
    cited = {document, *rests_on(chunk.text, chunk.quote, documents)}
    return NodeAnswer(
        node=part.id,
        question=question,
        answer=chunk.text,
        status="answered" if chunk.text else "unknown",
        attribution=attribution,
        document=document,
        support=support,
        documents=tuple(one for at, one in enumerate(documents) if at < MOST_DOCUMENTS or one.id in cited),
        retrievals=retrievals,
        sure=sure,
        query=part.query,
        also=tuple(sorted(cited - {document, ""})),
    )


def answer_line(answer: NodeAnswer) -> str:
    """An answer in one line, for the model.

    >>> answer_line(NodeAnswer("Q1.1", "Who wrote it?", "Ann"))
    'Q1.1: Who wrote it? -> Ann'
    """
    words = answer.answer if answer.status == "answered" else f"({answer.status})"
    return f"{answer.node}: {on_one_line(answer.question)} -> {on_one_line(words)}" + (
        "" if answer.sure else " (not certain)"
    )


def on_one_line(text: str) -> str:
    """On one line: what a model or a document wrote may not look like a part of the prompt."""
    flat = " ".join(text.split())
    return flat if flat == text.strip() else show_value(flat)


def show_documents(documents: Sequence[Record], most: int = 4_000) -> str:
    """Numbered from 1, title first; rows as name and value. Long ones are cut at ``most`` characters."""
    lines = []
    for number, record in enumerate(documents, 1):
        fields = ", ".join(
            f"{show_value(name)} {show_value(value)}" for name, value in record.fields.items() if name != "title"
        )
        title = record.fields.get("title")
        text = " ".join(record.text.split())
        text = text if len(text) <= most else text[:most] + " (cut)"
        parts = [part for part in (on_one_line(str(title or "")), fields, text) if part]
        lines.append(record_line(record, f"[{number}] " + " | ".join(parts)))
    return joined("\n", lines) or "(none)"


def show_graph(plan: PlanGraph) -> tuple[str, ...]:
    """The plan as lines, for people."""
    return tuple(
        f"{part.id}: {part.query}"
        + (f" (after {', '.join(part.parents)})" if set(part.parents) - set(part.tags) else "")
        + (f" [{part.source}]" if part.source else "")
        for part in plan.parts
    )


def note(answer: NodeAnswer, run: Run, reused: bool = False) -> NodeAnswer:
    """Into the trace, whole: a later run may take it from there."""
    run.trace.add(NodeResult(answer, reused), run.span_id)
    return answer
