"""A Case from any of the sets, and a passage with a stable id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from decisor.benchmarks.protocol import Case
from decisor.tools.documents.passage import Passage
from decisor.types import Question, Value

SHORT = "Answer with as few words as possible: a name, a date, a number, yes or no, or a short phrase."
YES_NO = "Answer yes or no."


def qa_case(
    id: str,
    text: str,
    gold: Sequence[str],
    passages: Sequence[str] = (),
    *,
    group: str = "",
    goal: str = SHORT,
    facts: Mapping[str, Value] | None = None,
) -> Case:
    """``gold``: accepted answers, the main one first. ``passages``: ids of the passages that the answer needs.

    Raises:
        ValueError: there is no question or no answer.
    """
    answers = tuple(dict.fromkeys(answer.strip() for answer in gold if answer.strip()))
    if not text.strip() or not answers:
        raise ValueError("the question or its answer is empty")
    all_facts: dict[str, Value] = {"passages": list(dict.fromkeys(passages)), **(facts or {})}
    return Case(id, Question(text.strip(), goal=goal), answers, group, all_facts)


def passage(title: str, text: str) -> Passage:
    """With an id that is the same wherever the same paragraph occurs: its title and eight digits of a hash."""
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:8]
    return Passage(f"{title}#{digest}", text, title)


def distinct(passages: Iterator[Passage]) -> Iterator[Passage]:
    """Each passage once."""
    ids: set[str] = set()
    for one in passages:
        if one.id not in ids:
            ids.add(one.id)
            yield one
