"""The answer of a node of a reasoning DAG, its texts for experts and trace, and the decision from all nodes.

The decision tells the documents that it rests on, the missing answers and the counts. Experts write a few labels, each
its own, which are read here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

from decisor.errors import ParseError
from decisor.parsing.attribution import (
    NO_NAME,
    Attribution,
    attribute_answer,
    contains_phrase,
    find_supporting_documents,
    join_record_words,
    normalize_answer,
)
from decisor.parsing.cleaning import NO_HELP, clean_reply, refuse_copies
from decisor.parsing.figures import check_figures, collect_record_numbers, iterate_numbers, without_citations
from decisor.parsing.plan import PlanGraph, PlanPart
from decisor.runtime.prompt import join_texts
from decisor.runtime.run import Run
from decisor.techniques.shared.answer import LEFT_OUT, NO_ANSWER
from decisor.techniques.shared.objections import Claims, find_objections
from decisor.techniques.shared.observations import build_record_line, show_value
from decisor.trace.events import NodeAnswer, NodeResult
from decisor.types import Decision, Evidence, Objection, Question, Record, Stopped

MOST_DOCUMENTS = 20


class Chunk(NamedTuple):
    """A text of the generator (empty if unknown), with the words of a document that it rests on."""

    text: str
    quote: str = ""


def build_node_answer(
    part: PlanPart, question: str, chunk: Chunk, documents: Sequence[Record], retrievals: int, sure: bool
) -> NodeAnswer:
    """Build the answer of a node with its attribution.

    An empty text means unknown; beyond 20 documents only cited ones are kept.
    """
    # Attribution as in section 4 of the paper: the answer is a part of its document.
    attribution, document, support = attribute_answer(chunk.text, chunk.quote, documents, retrievals > 0)
    cited = {document, *find_supporting_documents(chunk.text, chunk.quote, documents)}
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


def format_answer_line(answer: NodeAnswer) -> str:
    """Format an answer as one line for the LLM.

    >>> format_answer_line(NodeAnswer("Q1.1", "Who wrote it?", "Ann"))
    'Q1.1: Who wrote it? -> Ann'
    """
    words = answer.answer if answer.status == "answered" else f"({answer.status})"
    return f"{answer.node}: {put_on_one_line(answer.question)} -> {put_on_one_line(words)}" + (
        "" if answer.sure else " (not certain)"
    )


def put_on_one_line(text: str) -> str:
    """Put a text on one line, quoted if it had several.

    A text of an LLM or a document must not look like a part of the prompt.
    """
    flat = " ".join(text.split())
    return flat if flat == text.strip() else show_value(flat)


def format_documents(documents: Sequence[Record], most: int = 4_000) -> str:
    """Format documents, numbered from 1, title first.

    Rows are names and values; texts are cut at ``most`` characters.
    """
    lines = []
    for number, record in enumerate(documents, 1):
        fields = ", ".join(
            f"{show_value(name)} {show_value(value)}" for name, value in record.fields.items() if name != "title"
        )
        title = record.fields.get("title")
        text = " ".join(record.text.split())
        text = text if len(text) <= most else text[:most] + " (cut)"
        parts = [part for part in (put_on_one_line(str(title or "")), fields, text) if part]
        lines.append(build_record_line(record, f"[{number}] " + " | ".join(parts)))
    return join_texts("\n", lines) or "(none)"


def format_plan_graph(plan: PlanGraph) -> tuple[str, ...]:
    """Format the plan as lines for people."""
    return tuple(
        f"{part.id}: {part.query}"
        + (f" (after {', '.join(part.parents)})" if set(part.parents) - set(part.tags) else "")
        + (f" [{part.source}]" if part.source else "")
        for part in plan.parts
    )


def record_node_answer(answer: NodeAnswer, run: Run, reused: bool = False) -> NodeAnswer:
    """Add the whole answer of a node to the trace and return it. A later run may reuse it."""
    run.trace.add(NodeResult(answer, reused), run.span_id)
    return answer


MOST_WORDS = 15
TRIES = 5
"""How often an expert is asked without whom a node, and all that need it, would fail."""


def read_expert_labels(reply: str, *names: str) -> dict[str, str]:
    """Read ``Name: value`` by name, in any case and with markdown around it. A value may continue over lines.

    >>> read_expert_labels("**Answer:** Lyon\\nquote: in\\nLyon", "answer", "quote")
    {'answer': 'Lyon', 'quote': 'in\\nLyon'}
    """
    shape = re.compile(rf"^[ \t]*(?:[*_#>-]+[ \t]*)?({'|'.join(map(re.escape, names))})[*_]*[ \t]*:[*_]*", re.M | re.I)
    text = clean_reply(reply)
    matches = list(shape.finditer(text))
    ends = [label.start() for label in matches[1:]] + [len(text)]
    return {label[1].lower(): text[label.end() : end].strip() for label, end in zip(matches, ends, strict=False)}


def read_expert_value(reply: str, name: str, most_words: int = MOST_WORDS) -> str:
    """Read the value after a label, or a whole short reply without the label. Prose about how to go on is no value.

    >>> read_expert_value("Search: Arrival film", "search"), read_expert_value("Arrival film", "search")
    ('Arrival film', 'Arrival film')

    Raises:
        ParseError: it is no value (missing_field), or the form's own text (copied).
    """
    text = read_expert_labels(reply, name).get(name)
    if text is None:
        text = " ".join(clean_reply(reply).split())
        if NO_HELP.search(text):
            raise ParseError("That is a refusal. Write a reply in the form asked for.", "model_refusal")
        # A reply that is only the beginning of its label was cut off.
        cut_off = f"{name}:".startswith(text.casefold())
        if cut_off or len(text.split()) > most_words or re.search(r"[.!:]\s+\S|^[{\[(]?[\"{]", text):
            raise ParseError(f"Write it as {name.capitalize()}: and nothing else.", "missing_field")
    refuse_copies(name, text)
    return text


def build_graph_decision(
    question: Question,
    plan: PlanGraph,
    answers: Sequence[NodeAnswer],
    answer: str,
    because: str,
    stopped: Stopped = "answered",
) -> Decision:
    """Build the decision from the answers of all nodes.

    Its evidence is the documents of the nodes' answers, its reasons are the nodes.
    """
    none = bool(NO_ANSWER.fullmatch(without_citations(answer)))
    name = "" if none else without_citations(answer).strip(LEFT_OUT)
    records = [record for one in answers for record in one.documents]
    sources = [(record.id, collect_record_numbers(record)) for record in records]
    # A figure may rest on the answer of a node too, which itself rests on documents.
    sources += [(one.node, list(iterate_numbers(one.answer))) for one in answers]
    sources.append(("question", list(iterate_numbers(str(question)))))
    ids = tuple(dict.fromkeys(id for one in answers for id in (one.document, *one.also) if id))
    evidence = Evidence(
        ids,
        check_figures(f"{name}\n{because}", sources),
        objections=find_graph_objections(question, answers, name, because),
    )
    if any(one.status == "budget" for one in answers) and stopped == "answered":
        stopped = "budget"
    if not name and stopped == "answered":
        stopped = "no_answer"
    reasons = [because] if because else []
    reasons += [explain_node(one) for one in answers]
    decision = Decision(name, evidence, plan=format_plan_graph(plan), stopped=stopped)
    attribution, document = attribute_graph_answer(name, plan, answers)
    if name:
        reasons.append(WORDS[attribution].format(document=document))
    return replace(decision, reasons=tuple(reasons))


def find_graph_objections(
    question: Question, answers: Sequence[NodeAnswer], name: str, because: str
) -> tuple[Objection, ...]:
    """Find the statements of the answer that neither documents nor node answers support. Empty without documents."""
    records = {record.id: record for one in answers for record in one.documents}
    known = "\n".join(f"{one.question} {one.answer}" for one in answers)
    return (
        find_objections(Claims(name, because, "", tuple(records)), records, str(question), known=known)
        if records
        else ()
    )


def explain_node(one: NodeAnswer) -> str:
    """Explain the answer of a node in one line.

    >>> explain_node(NodeAnswer("Q1.1", "Who wrote it?", "Ann", document="o1.r2"))
    'Q1.1: Who wrote it? -> Ann [o1.r2]'
    """
    if one.missing:
        return f"Missing: {one.node}: {one.question} ({one.status}: {one.why})"
    answer = one.answer or "unknown"
    cited = "".join(f" [{id}]" for id in (one.document, *one.also) if id)
    mark = cited if one.document else f" ({one.attribution.replace('_', ' ')})" if one.answer else ""
    return f"{one.node}: {one.question} -> {answer}{mark}" + ("" if one.sure else " (not certain)")


def find_deciding_node(question: Question, plan: PlanGraph, answers: Sequence[NodeAnswer]) -> NodeAnswer | None:
    """Return the one node that no other node needs, if its answer is the final answer.

    None if there are several, an answer is missing, the question has rules or a goal, or it wants a yes or no that the
    node does not give.
    """
    ids = {part.id for part in plan.sinks}
    last = [one for one in answers if one.node in ids]
    if len(last) != 1 or any(one.status != "answered" for one in answers):
        return None
    wants_word = YES_OR_NO.match(question.text.strip()) and normalize_answer(last[0].answer) not in NO_NAME
    return None if wants_word or question.rules or question.goal else last[0]


YES_OR_NO = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)\b", re.I)


def attribute_graph_answer(answer: str, plan: PlanGraph, answers: Sequence[NodeAnswer]) -> tuple[Attribution, str]:
    """Return attribution and document of the final answer.

    It is attributed if a document of any node contains it, else it has the attribution of the last node that no other
    needs.
    """
    if answer and normalize_answer(answer) not in NO_NAME:
        # The last nodes first: they are nearest to the final answer.
        for one in reversed(answers):
            for document in one.documents:
                if contains_phrase(join_record_words(document), answer):
                    return "attributed", document.id
    sinks = {part.id for part in plan.sinks}
    last = [one for one in answers if one.node in sinks and one.status == "answered"]
    if not last or last[-1].attribution == "attributed":
        return "unattributed", ""
    return last[-1].attribution, last[-1].document


def count_graph(plan: PlanGraph, answers: Sequence[NodeAnswer]) -> dict[str, int]:
    """Count nodes, depth, retrievals and attributions of one question.

    The main question has depth 0, so depth 0 means no plan.
    """
    counts = {
        "nodes": 0 if plan.simple else len(plan.parts),
        "depth": 0 if plan.simple else len(plan.levels),
        "plan_fallback": int(plan.is_fallback),
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
