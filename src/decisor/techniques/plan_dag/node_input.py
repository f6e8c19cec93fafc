"""What a node of a reasoning DAG works from: its source, its question with the tags filled in, and its context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decisor.replies.plan_drafts import TAG
from decisor.replies.plan_graph import Part
from decisor.techniques.plan_dag.experts.planner import NONE
from decisor.techniques.plan_dag.node_answer import answer_line
from decisor.techniques.shared.documents import PASSAGES
from decisor.trace.graph_events import NodeAnswer
from decisor.types import Question, Record


def sources_of(part: Part, forms: Mapping[str, str]) -> tuple[str, ...]:
    """The tools that serve a node: what the plan says, else all documents, else the only one there is, else none.

    >>> sources_of(Part("Q", "Who?"), {"sql": "sql", "reports": "passages", "letters": "passages"})
    ('reports', 'letters')
    """
    if part.source:
        return (part.source,)
    documents = tuple(name for name, form in forms.items() if form == PASSAGES)
    return documents or (tuple(forms) if len(forms) == 1 else (NONE,))


def once(records: Sequence[Record]) -> list[Record]:
    """Without those whose text came before: corpora hold passages twice."""
    first: dict[str, Record] = {}
    for record in records:
        first.setdefault(record.text or record.id, record)
    return list(first.values())


def bare(query: str) -> str:
    """A question as it was planned, its tags named instead of filled in.

    >>> bare("Where was <A1.1> born?")
    'Where was (the answer of Q1.1) born?'
    """
    return TAG.sub(lambda tag: f"(the answer of Q{tag[1]})", query)


def in_place(parent: NodeAnswer) -> str:
    """What stands in the place of a tag."""
    return " ".join(parent.answer.split()) if parent.status == "answered" else f"[{parent.question}]"


def context_of(parents: Sequence[NodeAnswer], question: Question | None, hint: str) -> str:
    """What a node is told beside its question: its parents' answers; the main question only where a parent that the
    plan should have had was lost; a hint only from a person."""
    parts = []
    if parents:
        parts.append("\n# Known answers\n" + "\n".join(answer_line(parent) for parent in parents) + "\n")
    if question is not None:
        parts.append(f"\n# The question that this one is a part of\n{question}\n")
    if hint:
        parts.append(f"\n# Also known\n{hint}\n")
    return "".join(parts)
