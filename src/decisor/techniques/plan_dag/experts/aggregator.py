"""Answers the main question from the answers of all nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from decisor.calls.prompt_parts import Template
from decisor.errors import ParseError
from decisor.replies.cleaning import clean
from decisor.replies.form import Form
from decisor.replies.labelled import LabelledReply, parse_answer, read_fields
from decisor.replies.shape import read_object
from decisor.run import Run
from decisor.techniques.plan_dag.experts.labels import TRIES
from decisor.techniques.plan_dag.node_answer import answer_line
from decisor.techniques.plan_dag.result import objections_to
from decisor.techniques.shared.labelled_form import answer_shape
from decisor.trace.graph_events import NodeAnswer
from decisor.types import Message, Question, Value


async def aggregate(run: Run, question: Question, answers: Sequence[NodeAnswer]) -> tuple[str, str]:
    parts = "\n".join(answer_line(answer) for answer in answers)
    lost = ", ".join(answer.node for answer in answers if answer.missing)
    prompt = AGGREGATE.substitute(question=question, parts=parts, lost=f"\nMissing: {lost}\n" if lost else "",
                                  form=run.wording(FORM))  # fmt: skip
    with run.span("aggregator") as sub:
        form = replace(FORM, objections=lambda rank_text: objections_to(question, answers, *rank_text))
        return await sub.ask([Message("user", prompt)], form, final=True, tries=TRIES)


def read_aggregate(reply: str) -> tuple[str, str]:
    """The answer and why."""
    answer, because = parse_answer(read_fields(clean(reply), []))
    if not answer:
        raise ParseError("Write it as Final answer: and the answer alone.", "missing_field")
    return answer, because


def read_object_of_aggregate(value: Mapping[str, Value]) -> tuple[str, str]:
    written: LabelledReply = read_object(LabelledReply, value)
    answer, because = parse_answer({"answer": written.answer or "", "because": written.because})
    if not answer:
        raise ParseError("final_answer is missing.", "missing_field")
    return answer, because


TEXT = """\
Final answer: as short as the question allows (a name, a date, a number, yes or no), and nothing else
Because: one or two sentences, naming the parts that decide
"""
SAYS = {
    "because": "one or two sentences, naming the parts that decide",
    "final_answer": "as short as the question allows (a name, a date, a number, yes or no), and nothing else",
}
FORM = Form("answer from parts", TEXT, read_aggregate, LabelledReply, (answer_shape(SAYS),), read_object_of_aggregate)


AGGREGATE = Template("""\
A question was taken apart, and its parts were answered one by one. Answer the question from these answers. Where they
contradict what you believe, they count. Where a part is missing or unknown and the others do not decide without it,
the final answer is none.
$lost
# Parts and their answers
$parts

# Question
$question

# Form of your reply
$form""")
