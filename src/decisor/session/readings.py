"""What a question means where its words leave it open: asked of a person, or computed both ways."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from decisor.definitions.readings.open import Interpreter, OpenReading
from decisor.errors import BudgetExceeded, ModelMistake, ToolError
from decisor.outside import one_line
from decisor.replies.reasons import for_people
from decisor.run import Run, Technique
from decisor.session.decide import decide
from decisor.session.definitions import Needs
from decisor.tools.databases.sandbox.audit import asked_by
from decisor.trace.events import OTHER_READING, MeaningChoice, Note
from decisor.types import Decision, Question, Record, Tool

HEAD = "What is meant, where words could mean two things:"


@dataclass(frozen=True)
class ReadingChoice:
    """``choice``: what ``words`` are taken to mean; ``by`` a person, or '' where nobody could be asked."""

    open: OpenReading
    choice: str
    by: str = ""

    @property
    def other(self) -> str:
        return next((text for text in self.open.choices if text != self.choice), "")

    def line(self) -> str:
        return f'- "{self.open.words}": {self.choice}'


def as_read(question: Question, choices: Sequence[ReadingChoice], instead: ReadingChoice | None = None) -> Question:
    """The question with what is meant; of one reading the other choice."""
    lines = [replace(one, choice=one.other).line() if one is instead else one.line() for one in choices]
    rules = "\n".join([*([question.rules.strip(), ""] if question.rules.strip() else []), HEAD, *lines])
    return replace(question, rules=rules)


async def of_documents(question: Question, documents: Sequence[Tool]) -> list[OpenReading]:
    """What could mean two things by what a search for the question brings of them; nothing of one where it fails."""
    from decisor.definitions.readings.passages import of_passages

    records: list[Record] = []
    for tool in documents:
        with asked_by("decisor"), suppress(ToolError):
            records += (await tool.call(question.text)).records
    return of_passages(question, records)


async def settle(
    question: Question, sources: Sequence[Tool], needs: Needs, suspects: Sequence[OpenReading], run: Run,
    reader: Interpreter | None,
) -> list[ReadingChoice]:  # fmt: skip
    """What is open is asked of the ``reader``; the first choice is taken where nobody can be asked, or knows."""
    if not sources:
        return []
    data, choices = "\n\n".join(tool.describe() for tool in sources), []
    for one in await judged(question, data, suspects, needs, run):
        answer = one.choice(await reader(one)) if reader else ""
        choices.append(ReadingChoice(one, one_line(answer, 300) or one.choices[0], "you" if answer else ""))
    return choices


async def judged(
    question: Question, data: str, suspects: Sequence[OpenReading], needs: Needs, run: Run
) -> Sequence[OpenReading]:
    """As the LM sees it, without what a definition settles; nothing where it cannot be asked."""
    from decisor.definitions.readings.ask_lm import ask_lm
    from decisor.definitions.readings.rules import settled

    with run.span("readings") as sub:
        try:
            open_readings = await ask_lm(question, data, suspects, sub)
        except (BudgetExceeded, ModelMistake) as error:
            sub.trace.add(
                Note(f"Whether the question has two readings could not be judged: {for_people(error)}"), sub.span_id
            )
            return ()
    return [one for one in open_readings if not any(settled(one, group) for group in needs.values())]


def without_answer(other: Decision) -> str:
    """Why it has none; '' where it has one."""
    if other.answer:
        return ""
    return one_line(other.reasons[0] if other.reasons else "it came to no answer", 200).rstrip(".")


def compared(decision: Decision, one: ReadingChoice, other: Decision | None, why: str = "") -> str:
    """What the other reading gives, and whether that changes the decision. ``why``: it was not computed."""
    begin = f'"{one.open.words}" was taken as {one.choice}; it could mean {one.other}'
    if other is None or not other.answer:
        return f"{begin}, which was not computed: {why}."
    if other.answer.casefold() == decision.answer.casefold():
        return f"{begin}. That gives the same answer, so the choice does not change the decision."
    return f"{begin}. That gives {other.answer}: the choice changes the decision."


def as_event(one: ReadingChoice, other: Decision | None = None, why: str = "") -> MeaningChoice:
    """For the trace: ``other`` is what the other choice gives, where it was computed."""
    return MeaningChoice(one.open.words, one.choice, one.by, one.other, other.answer if other else "", why)


async def with_readings(
    decision: Decision, question: Question, choices: Sequence[ReadingChoice], technique: Technique, run: Run
) -> Decision:
    """The decision, with what was taken among its assumptions. Where nobody said which reading is meant, the other ones
    are decided too, after it."""
    lines = []
    for one in choices:
        if one.by or not one.other:
            run.trace.add(as_event(one))
            continue
        other, why = None, "the run ended before"
        if decision.stopped in ("answered", "no_answer"):
            with run.span(f"{OTHER_READING}{one.other}") as sub:
                other = await decide(technique, as_read(question, choices, instead=one), sub)
            why = without_answer(other)
        run.trace.add(as_event(one, other, why))
        lines.append(compared(decision, one, other, why))
    means = [f'"{one.open.words}" means {one.choice}{f" (by {one.by})" if one.by else ""}' for one in choices]
    return replace(decision, reasons=(*decision.reasons, *lines), assumptions=(*decision.assumptions, *means))
