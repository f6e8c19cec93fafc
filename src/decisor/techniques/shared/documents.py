"""What techniques over documents share: finding passages, showing them with their ids, and a short cited answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from decisor.calls.prompt_parts import joined
from decisor.errors import BudgetExceeded, Error, LMError, ParseError, SetupError
from decisor.replies.cleaning import NO_HELP, clean
from decisor.replies.figures import citations, without_citations
from decisor.replies.form import Form
from decisor.replies.labelled import LabelledReply, parse_answer, read_fields
from decisor.replies.reasons import for_people
from decisor.replies.shape import read_object
from decisor.run import Run
from decisor.techniques.shared.decision import NO_ANSWER, Trajectory, tell
from decisor.techniques.shared.forms import forms_of
from decisor.techniques.shared.labelled_form import answer_shape
from decisor.techniques.shared.render import record_line, show_text, show_value
from decisor.types import Action, Decision, Environment, Message, Record, Step, Stopped, Value

PASSAGES = "passages"
NO_PASSAGES = ("sql", "cypher", "whatif", "calculator", "combine")
MAX_QUERY = 2_000
NO_IDS: Mapping[tuple[str, str], str] = MappingProxyType({})
ANSWER_IS = re.compile(r"^.*?\b(?:final )?answer(?: is\b\s*:?|\s*:)\s*(?=\S)", re.I)


def passages_tool(env: Environment) -> str:
    """The tool that finds passages: the one of that name, or the only one there is.

    Raises:
        SetupError: there is none, or there are several.
    """
    tools, forms = env.tools(), forms_of(env)
    finders = [name for name in tools if forms[name] == PASSAGES] or [name for name in tools if len(tools) == 1]
    if not finders or forms[finders[0]] in NO_PASSAGES:
        there = ", ".join(tools) or "none"
        raise SetupError(f"This technique reads passages, and the tools are: {there}. Give it documents, with --docs.")
    if len(finders) > 1:
        raise SetupError(f"This technique reads from one place, and there are {', '.join(finders)}: index "
                         "them together with decisor index, or take another technique.")  # fmt: skip
    return finders[0]


async def find(query: str, limit: int, trajectory: Trajectory, run: Run) -> Trajectory:
    """The trajectory with one retrieval more, of which the first ``limit`` passages are kept."""
    action = Action(passages_tool(run.env), " ".join(query.split())[:MAX_QUERY])
    observation = await run.act(action)
    first = replace(observation, records=observation.records[:limit])
    return replace(trajectory, steps=(*trajectory.steps, Step(action, first)))


def unique_passages(trajectory: Trajectory, most: int) -> tuple[Record, ...]:
    """Every passage of the trajectory once, under its first id, in the order it came; the first ``most`` of them."""
    first: dict[tuple[str, str], Record] = {}
    for step in trajectory.steps:
        for record in step.observation.records:
            first.setdefault((record.source, record.text), record)
    return tuple(first.values())[:most]


def all_records(trajectory: Trajectory) -> tuple[Record, ...]:
    """Every record of every retrieval, so that a passage found twice may be cited by either id."""
    return tuple(record for step in trajectory.steps for record in step.observation.records)


def first_ids(trajectory: Trajectory) -> dict[tuple[str, str], str]:
    """Of every passage by its source and text, the id under which it came first."""
    first: dict[tuple[str, str], str] = {}
    for record in all_records(trajectory):
        first.setdefault((record.source, record.text), record.id)
    return first


def show_passages(passages: Sequence[Record], first: Mapping[tuple[str, str], str] = NO_IDS) -> str:
    """Id, title, text, as ``show_records`` shows them. Of one that came under another of the ``first`` ids that id."""
    lines = []
    for one in passages:
        title = [show_value(one.fields["title"])] if "title" in one.fields else []
        before = first.get((one.source, one.text), one.id)
        text = show_text(one.text) if before == one.id else f"(the same as {before})"
        lines.append(record_line(one, " | ".join([f"[{one.id}]", *title, text])))
    return joined("\n", lines) or "(nothing was found)"


def parse_reading(reply: str, trajectory: Trajectory, passages: Sequence[Record] = ()) -> Decision:
    """A short answer and, where it rests on passages, their ids. An answer may cite nothing: it is then the model's own
    knowledge. A short reply of one line without labels is the answer, or what follows "the answer is" in it.

    Raises:
        ParseError: no answer, or a citation of something that is not among ``passages``.
    """
    text = clean(reply)
    answer, because = parse_answer(read_fields(text, []))
    if answer is None:
        if NO_HELP.search(text):
            raise ParseError("That is a refusal. Write a final answer.", "model_refusal")
        answer, because = parse_answer({"answer": ANSWER_IS.sub("", text)})
        if "\n" in text or len(text) > 200 or text.startswith("{"):
            raise ParseError("Write your answer as Final answer: and as few words as possible.", "missing_field")
    if not answer:
        raise ParseError("Your final answer is empty.", "missing_field")
    return reading(answer, because, trajectory, passages)


def read_reading(value: Mapping[str, Value], trajectory: Trajectory, passages: Sequence[Record] = ()) -> Decision:
    """The same from a JSON object with the keys final_answer and because."""
    written: LabelledReply = read_object(LabelledReply, value)
    if not written.answer:
        raise ParseError("final_answer is missing: write it in as few words as possible.", "missing_field")
    answer, because = parse_answer({"answer": written.answer, "because": written.because})
    return reading(answer or "", because, trajectory, passages)


def reading(answer: str, because: str, trajectory: Trajectory, passages: Sequence[Record]) -> Decision:
    """Raises ParseError where it cites something that is not among ``passages``."""
    earlier = trajectory.question.earlier.records if trajectory.question.earlier else ()
    records = {record.id: record for record in (*passages, *earlier)}
    cited_ids = citations(f"{answer}\n{because}", records)
    if unknown := [id for id in cited_ids if id not in records]:
        raise ParseError(f"You cite {', '.join(unknown)}, which you have not been shown.", "unknown_source")
    if NO_ANSWER.fullmatch(without_citations(answer)):
        return replace(trajectory.decision("", because), stopped="no_answer")
    return trajectory.decision(answer, because)


def reading_form(
    trajectory: Trajectory, passages: Sequence[Record], text: str, says: Mapping[str, str]
) -> Form[Decision]:
    return Form(
        "short answer",
        text,
        lambda reply: parse_reading(reply, trajectory, passages),
        LabelledReply,
        (answer_shape(says),),
        lambda value: read_reading(value, trajectory, passages),
    )


def cited_answer(trajectory: Trajectory, passages: Sequence[Record]) -> Form[Decision]:
    """The answer in few words, with the passages that it rests on."""
    return reading_form(trajectory, passages, CITED, SHORT_ANSWER)


async def ask_for_answer(
    prompt: str | Sequence[Message], form: Form[Decision], trajectory: Trajectory, run: Run, error: Error | None = None
) -> Decision:
    """Ask for the answer, with what the budget keeps back. After an ``error`` it says why the run ended early."""
    stopped: Stopped = "answered" if error is None else "budget" if isinstance(error, BudgetExceeded) else "failed"
    try:
        decision = await run.ask(prompt, form, final=True)
    except (BudgetExceeded, ParseError, LMError) as failure:
        if isinstance(failure, LMError):
            raise
        ended: Stopped = "budget" if isinstance(failure, BudgetExceeded) else "failed"
        return tell(
            replace(trajectory.decision("", stopped=ended), reasons=(f"No answer was given. {for_people(failure)}",)),
            run,
        )
    if error is not None:
        decision = replace(decision, reasons=(*decision.reasons, for_people(error)), stopped=stopped)
    return tell(decision, run)


CITED = """\
Final answer: as few words as possible, and nothing else
Because: one sentence, with the ids of the passages it rests on, like [o1.r3]
"""

SHORT_ANSWER = {
    "because": "one sentence, with the ids of the passages it rests on, like [o1.r3]",
    "final_answer": "as few words as possible, and nothing else",
}
