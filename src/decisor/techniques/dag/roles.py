"""The signatures of the experts of a reasoning DAG, and the input of a node: source, question and context.

A function of the right signature is an expert. The question of a node has the answers of its parents in the place of
its tags.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from decisor.parsing.plan import TAG, PlanGraph, PlanPart
from decisor.runtime.run import Run
from decisor.techniques.dag.experts import (
    NONE,
    aggregate,
    choose_documents,
    criticise,
    generate_answer,
    plan_parts,
    resolve,
    rewrite,
    write_query,
)
from decisor.techniques.dag.nodes import Chunk, format_answer_line
from decisor.techniques.shared.observations import find_copies
from decisor.techniques.shared.passages import PASSAGES
from decisor.trace.events import NodeAnswer
from decisor.types import LLM, Question, Record

P = ParamSpec("P")
T = TypeVar("T")


Planner = Callable[[Run, Question, int], Awaitable[PlanGraph]]
"""Writes a plan of at most so many parts. Raises ParseError if no plan is readable after one repair."""
DynamicQuery = Callable[[Run, str, Sequence[NodeAnswer]], Awaitable[str]]
"""Returns a question with its tags replaced by the parents' answers."""
Generator = Callable[..., Awaitable[Chunk]]
"""Takes the run, question, context, documents, the text so far (None: the whole answer is wanted) and, where a part has
a length, its tokens. Returns the answer, or its next part; empty at the end."""
Critic = Callable[[Run, str, str, str, Sequence[Record]], Awaitable[bool]]
"""Takes the run, question, context, chunk and documents. Returns True if outside evidence is needed."""
Relevance = Callable[[Run, str, str, Sequence[Record], bool], Awaitable[tuple[Record, ...]]]
"""Returns the document that helps, or several if the last is True; empty if none helps."""
Rewriter = Callable[[Run, str, Sequence[str], Sequence[Record]], Awaitable[str]]
"""Takes the run, question, searches and rejected documents. Returns another search for the same question."""
QueryWriter = Callable[[Run, str, str, str, Sequence[tuple[str, str]]], Awaitable[str]]
"""Takes the run, question, context, the source, and earlier queries, each with why it failed. Returns a query."""
Aggregator = Callable[[Run, Question, Sequence[NodeAnswer]], Awaitable[tuple[str, str]]]
"""Returns the answer to the main question and its explanation."""


def ask_expert_with(
    llm: LLM, expert: Callable[Concatenate[Run, P], Coroutine[object, object, T]]
) -> Callable[Concatenate[Run, P], Coroutine[object, object, T]]:
    """Return the same expert, asked of another LLM.

    Example: ``Experts(criticise=ask_expert_with(small, criticise))``.
    """

    async def other(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await expert(run.using(llm=llm), *args, **kwargs)

    return other


@dataclass(frozen=True)
class Experts:
    """The experts of a reasoning DAG, one function for each role. A role may have another LLM."""

    plan: Planner = plan_parts
    resolve: DynamicQuery = resolve
    generate: Generator = generate_answer
    criticise: Critic = criticise
    choose: Relevance = choose_documents
    rewrite: Rewriter = rewrite
    write_query: QueryWriter = write_query
    aggregate: Aggregator = aggregate


OURS = Experts()


def choose_part_sources(part: PlanPart, forms: Mapping[str, str]) -> tuple[str, ...]:
    """Choose the tools that serve a node.

    The plan's source comes first, else all document tools, else the only tool; without any the source is ``none``.

    >>> choose_part_sources(PlanPart("Q", "Who?"), {"sql": "sql", "reports": "passages", "letters": "passages"})
    ('reports', 'letters')
    """
    if part.source:
        return (part.source,)
    documents = tuple(name for name, form in forms.items() if form == PASSAGES)
    return documents or (tuple(forms) if len(forms) == 1 else (NONE,))


def drop_repeated_records(records: Sequence[Record]) -> list[Record]:
    """Drop passages whose words came before; a corpus may contain a passage twice."""
    # Rows have no text, and two equal rows may both count.
    copies = find_copies([record for record in records if record.text])
    return [record for record in records if record.id not in copies]


def name_tags(query: str) -> str:
    """Replace the tags of a planned question by the names of their parts.

    >>> name_tags("Where was <A1.1> born?")
    'Where was (the answer of Q1.1) born?'
    """
    return TAG.sub(lambda tag: f"(the answer of Q{tag[1]})", query)


def replace_tag(parent: NodeAnswer) -> str:
    """Return the text that replaces a tag: the answer, or the question in brackets."""
    return " ".join(parent.answer.split()) if parent.status == "answered" else f"[{parent.question}]"


def build_node_context(parents: Sequence[NodeAnswer], question: Question | None, hint: str) -> str:
    """Build the context of a node beside its question.

    It has the parents' answers, the main question if a required parent was lost (the caller decides), and a hint if a
    person gave one.
    """
    parts = []
    if parents:
        parts.append("\n# Known answers\n" + "\n".join(format_answer_line(parent) for parent in parents) + "\n")
    if question is not None:
        parts.append(f"\n# The question that this one is a part of\n{question}\n")
    if hint:
        parts.append(f"\n# Also known\n{hint}\n")
    return "".join(parts)
