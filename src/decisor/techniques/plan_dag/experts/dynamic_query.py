"""Writes the question of a node again, with what was answered in the place of its tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from decisor.calls.prompt_parts import Template
from decisor.errors import ParseError
from decisor.replies.form import Form
from decisor.replies.shape import Shape, read_object
from decisor.run import Run
from decisor.techniques.plan_dag.experts.labels import value_of
from decisor.techniques.plan_dag.node_answer import answer_line
from decisor.trace.graph_events import NodeAnswer


async def resolve(run: Run, question: str, parents: Sequence[NodeAnswer]) -> str:
    prompt = RESOLVE.substitute(question=question, parents="\n".join(answer_line(parent) for parent in parents),
                                form=run.wording(FORM))  # fmt: skip
    with run.span("dynamic query") as sub:
        return await sub.ask(prompt, FORM)


def read_question(reply: str) -> str:
    return check_question(value_of(reply, "question", 60))


def check_question(text: str) -> str:
    """Raises ParseError where a tag is left."""
    if re.search(r"<A\d", text) or len(text) > 1_000 or not re.search(r"\w", text):
        raise ParseError("Write the question alone, with every tag replaced.", "shape")
    return text.strip("\"' ")


@dataclass(frozen=True, slots=True)
class WholeQuestion:
    question: str


FORM = Form(
    "question", "Question: ...\n", read_question, WholeQuestion,
    (Shape({"question": "the question alone, with every tag replaced"}),),
    lambda value: check_question(read_object(WholeQuestion, value).question),
)  # fmt: skip


RESOLVE = Template("""\
A question refers by tags like <A1.1> to the answers of earlier questions. Write the question again with what was
answered in the place of the tags, so that it can be understood alone. Do not answer it, and add nothing.

# Earlier questions and answers
$parents

# Question
$question

# Form of your reply
$form""")
