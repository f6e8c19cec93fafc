"""Marked runs as questions of one's own: a line of JSON each, which ``decisor eval --questions`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from decisor.encoding import json_text
from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.store import ALL, History
from decisor.trace.decoding import decoder
from decisor.trace.events import RunStart, events_of
from decisor.types import Earlier


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """``answer``: the right one, '' where only a ``wrong`` one is known. ``note``: what came of it."""

    question: str
    id: str = ""
    rules: str = ""
    goal: str = ""
    answer: str = ""
    wrong: str = ""
    note: str = ""
    earlier: Earlier | None = None


def marked(history: History, owner: str = "") -> Iterator[OwnQuestion]:
    """The oldest first."""
    for run in reversed(history.list(owner, most=ALL)):
        if run.mark is not None and (run.answer or run.mark.answer):
            yield question_of(history, run)


def question_of(history: History, run: PastRun) -> OwnQuestion:
    assert run.mark is not None
    start = next(events_of(history.entries(run.number, run.owner), RunStart), None)
    is_right, question = run.mark.verdict == "right", run.question
    return OwnQuestion(
        question.text, f"run-{run.number}", question.rules, question.goal,
        answer=run.answer if is_right else run.mark.answer, wrong="" if is_right else run.answer,
        note=run.mark.came_of, earlier=start.question.earlier if start else None,
    )  # fmt: skip


def line_of(question: OwnQuestion) -> str:
    return json_text({name: value for name, value in fields_of(question) if value}) + "\n"


def fields_of(question: OwnQuestion) -> Iterator[tuple[str, object]]:
    for name in OwnQuestion.__slots__:
        yield name, getattr(question, name)


def read_questions(path: Path) -> list[OwnQuestion]:
    """From a file of such lines; those without an id are numbered.

    Raises:
        SetupError: it cannot be read, a line is no question, none has an answer, or an id comes twice.
    """
    try:
        lines = [line for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"Cannot read the questions in {path}: {error}") from error
    questions: dict[str, OwnQuestion] = {}
    for number, line in enumerate(lines, 1):
        try:
            question = decoder(OwnQuestion)({"id": f"line-{number}", **json.loads(line)})
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise SetupError(
                f'{path}, line {number}: {error}. A line is such as {{"question": "Which site?", "answer": "elm"}}'
            ) from error
        if not (question.answer or question.wrong):
            raise SetupError(f"{path}, line {number}, has no answer: what would be right, or wrong?")
        if question.id in questions:
            raise SetupError(f"{path}, line {number}: the id {question.id} is there twice.")
        questions[question.id] = question
    if not questions:
        raise SetupError(f"{path} holds no questions. Mark runs, and write them: decisor history export > mine.jsonl")
    return list(questions.values())
