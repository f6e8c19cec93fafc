"""Says whether an answer must be looked up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from decisor.calls.prompt_parts import Template
from decisor.errors import ParseError
from decisor.replies.cleaning import clean
from decisor.replies.form import Form
from decisor.replies.shape import Shape, read_object
from decisor.run import Run
from decisor.techniques.plan_dag.experts.labels import labels
from decisor.techniques.plan_dag.node_answer import show_documents
from decisor.types import Record


async def criticise(run: Run, question: str, context: str, chunk: str, documents: Sequence[Record]) -> bool:
    values = {
        "question": question,
        "context": context,
        "chunk": chunk or "unknown",
        "documents": show_documents(documents),
        "form": run.wording(FORM),
    }
    with run.span("critic") as sub:
        return await sub.ask(CRITICISE.substitute(values), FORM)


def read_yes(reply: str) -> bool:
    """
    >>> read_yes("Evidence needed: Yes, nothing supports the year."), read_yes("no")
    (True, False)
    """
    text = labels(reply, "evidence needed").get("evidence needed", clean(reply))
    words = re.findall(r"^\W*(yes|no|true|false)\b(?! or )", text.lower())
    if not words:
        raise ParseError("Write Evidence needed: yes or Evidence needed: no", "missing_field")
    return words[0] in ("yes", "true")


@dataclass(frozen=True, slots=True)
class Judgement:
    evidence_needed: bool


FORM: Form[bool] = Form(
    "evidence needed", "Evidence needed: yes or no\n", read_yes, Judgement,
    (Shape({"evidence_needed": "whether the answer must be looked up"}),),
    lambda value: read_object(Judgement, value).evidence_needed,
)  # fmt: skip

CRITICISE = Template("""\
Judge whether an answer must be looked up. It must be where the documents do not show it to be right, or where it is
unsure or unknown. It need not be where a document shows it, where it is general knowledge (what a word means, how many
days a week has), or where it follows from the question and the known answers by calculation or comparison alone. For
facts about particular people, works, places, times or amounts, your own knowledge is not enough.
$context
# Documents
$documents

# Question
$question

# Answer
$chunk

# Form of your reply
$form""")
