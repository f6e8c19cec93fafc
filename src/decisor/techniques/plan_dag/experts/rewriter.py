"""Writes another search where one found nothing that helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decisor.calls.prompt_parts import Template
from decisor.replies.form import Form
from decisor.replies.shape import Shape, read_object
from decisor.run import Run
from decisor.techniques.plan_dag.experts.labels import value_of
from decisor.techniques.plan_dag.node_answer import on_one_line
from decisor.types import Record


async def rewrite(run: Run, question: str, searches: Sequence[str], rejected: Sequence[Record]) -> str:
    titles = dict.fromkeys(str(record.fields.get("title") or record.text[:60]) for record in rejected)
    prompt = REWRITE.substitute(question=question, searches=as_list(searches), titles=as_list(titles) or "(nothing)",
                                form=run.wording(FORM))  # fmt: skip
    with run.span("rewrite") as sub:
        return await sub.ask(prompt, FORM)


def as_list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {on_one_line(text)}" for text in texts)


def read_search(reply: str) -> str:
    return search_of(value_of(reply, "search"))


def search_of(text: str) -> str:
    return " ".join(text.split()).strip("\"'")


@dataclass(frozen=True, slots=True)
class Search:
    search: str


FORM = Form(
    "search", "Search: a few words\n", read_search, Search,
    (Shape({"search": "a few words"}),),
    lambda value: search_of(read_object(Search, value).search),
)  # fmt: skip


REWRITE = Template("""\
Searches for a question found nothing that answers it. Write another search: other words for the same thing, the full
name, or the title that an encyclopedia article on it would have. Do not answer the question.

# Question
$question

# Searched so far
$searches

# Found, and of no help
$titles

# Form of your reply
$form""")
