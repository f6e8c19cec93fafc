"""What a question means where its words leave it open: asked of a person, or computed both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from decisor.definitions.readings.open import OpenReading, Reader, Readings
from decisor.errors import BudgetExceeded, ModelMistake, ToolError
from decisor.outside import one_line
from decisor.run import Run
from decisor.tools.databases.sandbox.audit import asked_by
from decisor.trace.events import MeaningChoice, Note
from decisor.types import Decision, Question, Record, Tool

if TYPE_CHECKING:
    from decisor.definitions.format import Definition

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


@dataclass
class Settled:
    """What was open of a question, and what was taken."""

    question: Question
    choices: list[ReadingChoice] = field(default_factory=list)

    def whole(self, instead: ReadingChoice | None = None) -> Question:
        """The question with what is meant; of one reading the other choice."""
        if not self.choices:
            return self.question
        lines = [replace(one, choice=one.other).line() if one is instead else one.line() for one in self.choices]
        rules = "\n".join([*([self.question.rules.strip(), ""] if self.question.rules.strip() else []), HEAD, *lines])
        return replace(self.question, rules=rules)


async def settle(
    question: Question, databases: Sequence[Tool], documents: Sequence[Tool],
    needs: Mapping[str, Sequence[Definition]], run: Run, reader: Reader | None, readings: Readings,
) -> Settled:  # fmt: skip
    """What is open is asked of the ``reader``; the first choice is taken where nobody can be asked, or knows."""
    settled = Settled(question)
    sources: Sequence[Any] = databases
    if readings == "off" or not (sources or documents):
        return settled
    from decisor.definitions.readings.rules import suspicions

    suspects = [one for tool in sources for one in suspicions(question, tool.tables, needs.get(tool.name, ()))]
    suspects += await of_documents(question, documents)
    if not suspects and readings == "auto":
        return settled
    data = "\n\n".join(tool.describe() for tool in (*sources, *documents))
    for one in await judged(question, data, suspects, needs, run):
        answer = one.choice(await reader(one)) if reader else ""
        settled.choices.append(ReadingChoice(one, one_line(answer, 300) or one.choices[0], "you" if answer else ""))
    return settled


async def of_documents(question: Question, documents: Sequence[Tool]) -> list[OpenReading]:
    """What the passages make suspect that a search for the question brings; nothing where it fails."""
    from decisor.definitions.readings.passages import of_passages

    records: list[Record] = []
    for tool in documents:
        with asked_by("decisor"), suppress(ToolError):
            records += (await tool.call(question.text)).records
    return of_passages(question, records)


async def judged(
    question: Question, data: str, suspects: Sequence[OpenReading], needs: Mapping[str, Sequence[Definition]], run: Run
) -> Sequence[OpenReading]:
    """As the LM sees it, without what a definition settles; nothing where it cannot be asked."""
    from decisor.definitions.readings.ask_lm import ask_lm
    from decisor.definitions.readings.rules import settled

    with run.span("readings") as sub:
        try:
            open_readings = await ask_lm(question, data, suspects, sub)
        except (BudgetExceeded, ModelMistake) as error:
            sub.trace.add(Note(f"Whether the question has two readings could not be judged: {error}"), sub.span_id)
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


def with_readings(decision: Decision, settled: Settled, lines: Sequence[str]) -> Decision:
    """The decision, with what was taken among its assumptions."""
    means = [f'"{one.open.words}" means {one.choice}{f" (by {one.by})" if one.by else ""}'
               for one in settled.choices]  # fmt: skip
    return replace(decision, reasons=(*decision.reasons, *lines), assumptions=(*decision.assumptions, *means))
