"""From a final answer to a Decision: what it names, what it cites, and which of its figures that supports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from decisor.calls.prompt_parts import Template, Text
from decisor.errors import BudgetExceeded, Error, LMError, ParseError
from decisor.replies.cleaning import clean
from decisor.replies.figures import check_figures, citations, numbers_of, without_citations
from decisor.replies.form import Form
from decisor.replies.labelled import LABEL, LabelledReply, parse_answer, read_fields
from decisor.replies.numbers import numbers_in
from decisor.replies.reasons import for_people, unread_line
from decisor.replies.shape import read_object
from decisor.run import Run
from decisor.techniques.shared.compared import ADVICE, not_best, not_compared
from decisor.techniques.shared.departure import departure, fullest
from decisor.techniques.shared.labelled_form import ASSUMPTIONS, RUNNER_UP, TABLE, answer_shape
from decisor.techniques.shared.objections import Claims, find_objections
from decisor.techniques.shared.render import Rendering, renderings, show_steps
from decisor.trace.events import ActionResult, ActionStart, Conclusion, LMCall, UnreadableReply, events_of
from decisor.types import (
    Action,
    Decision,
    Evidence,
    Message,
    Observation,
    Question,
    Ranking,
    Record,
    Replan,
    Step,
    Stopped,
    Value,
)

THINK = "think"
RAN_BEFORE = "You ran this as"
EvidenceRule = Literal["required", "asked", "free"]
"""Whether a final answer must cite records: it must; it is asked for them once and then taken as it is; it need not."""
NO_ANSWER = re.compile(r"\W*(none|no answer|unknown|undecidable|cannot decide|not enough data|n/?a)\W*", re.I)
LEFT_OUT = " \t\r\n.*_`\"'\u201c\u201d"


@dataclass(frozen=True)
class Trajectory:
    """What a technique has when it decides: the question, its steps, its plan, how that changed, how that began, and
    its observations as the model reads them."""

    question: Question
    steps: tuple[Step, ...] = ()
    plan: tuple[str, ...] = ()
    replans: tuple[Replan, ...] = ()
    first_plan: tuple[str, ...] = ()
    observations: tuple[Rendering, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "observations", renderings(self.steps, self.observations))

    def shown_records(self) -> dict[str, Record]:
        """The records that the model was really shown, by id."""
        earlier = self.question.earlier.records if self.question.earlier else ()
        seen = [record for observation in self.observations for record in observation.records]
        return {record.id: record for record in (*earlier, *seen)}

    @property
    def seen(self) -> int:
        """Observations so far, with those that the question goes on from: what an answer may rest on."""
        return len(self.steps) + (len(self.question.earlier.steps) if self.question.earlier else 0)

    @property
    def actions(self) -> int:
        """Steps, without thoughts to oneself."""
        return sum(step.action.tool != THINK for step in self.steps)

    def goes_on(self, max_steps: int) -> bool:
        """Whether another reply is wanted: fewer actions than this, and at most as many thoughts to oneself."""
        return self.actions < max_steps and len(self.steps) < 2 * max_steps

    def show(self, thoughts: bool = True) -> Text:
        """The steps so far as the model reads them."""
        return show_steps(self.steps, thoughts, self.replans, self.observations)

    def decision(self, answer: str, because: str = "", stopped: Stopped = "answered", runner_up: str = "") -> Decision:
        """The decision with the evidence that it cites, for its runner-up too."""
        shown_records, text = self.shown_records(), f"{answer}\n{because}\n{runner_up}"
        ids = tuple(name for name in citations(text, shown_records) if name in shown_records)
        name = without_citations(answer).strip(LEFT_OUT)
        figures = check_figures(f"{name}\n{because}\n{runner_up}", self.figures(shown_records, ids))
        fullest_one = fullest([step.observation for step in self.steps])
        claims = Claims(name, because, runner_up, citations(f"{answer}\n{because}", shown_records))
        objections = find_objections(claims, shown_records, str(self.question), fullest_one, self.known())
        departs = "" if any(one.kind == "ranking" for one in objections) else departure(name, fullest_one)
        reasons = tuple(line for line in (because.strip(), departs) if line)
        return Decision(
            name,
            Evidence(ids, figures, objections=objections),
            ranking=self.ranking(),
            plan=self.plan,
            replans=self.replans,
            reasons=reasons,
            stopped=stopped,
            runner_up=runner_up,
        )

    def known(self) -> str:
        """What the model was told beside records, and the queries that it wrote."""
        earlier = self.question.earlier
        steps = [*(earlier.steps if earlier else ()), *self.steps]
        texts = [f"{step.action.input}\n{step.observation.note}\n{step.observation.total or ''}" for step in steps]
        return "\n".join([*(earlier.before if earlier else ()), *texts])

    def figures(self, shown_records: Mapping[str, Record], cited: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
        """What a figure may be from, with its numbers: the records that are cited come first."""
        yield from ((id, numbers_of(shown_records[id])) for id in cited)
        if ranking := self.ranking():
            yield f"ranking of {ranking.measure}", [option.outcome for option in ranking.options]
        yield "question", list(numbers_in(str(self.question)))
        yield from ((id, numbers_of(one)) for id, one in shown_records.items() if id not in cited)

    def ranking(self) -> Ranking | None:
        """The one that compared most."""
        observation = fullest([step.observation for step in self.steps])
        return observation.ranking if observation else None


def decide(
    reply: LabelledReply, trajectory: Trajectory, lenient: bool = False, rule: EvidenceRule = "required",
    compares: bool = False,
) -> Decision:  # fmt: skip
    """Of a reply with an answer. ``lenient`` for the last call: what is missing is left out instead of asked for again.
    By the ``rule`` free it is taken as it is, with what of its citations was shown.

    Raises:
        ParseError: a citation of something never shown (unknown_source), none at all (no_citation), nothing was found
            yet that could support an answer (no_evidence), or, where it ``compares``, it was compared with nothing.
    """
    shown_records, answer, because = trajectory.shown_records(), reply.answer or "", reply.because
    if NO_ANSWER.fullmatch(without_citations(answer)):
        return replace(trajectory.decision("", because), answer="", stopped="no_answer")
    cited_ids = citations(f"{answer}\n{because}", shown_records)
    free = rule == "free"
    if not shown_records and not free:
        if lenient:
            return replace(trajectory.decision("", because or answer), answer="", stopped="no_answer")
        raise ParseError("No record has come back yet, so nothing supports an answer. Query the data; if it cannot "
                         "be decided, write Final answer: none", "no_evidence")  # fmt: skip
    if (unknown := [id for id in cited_ids if id not in shown_records]) and not (lenient or free):
        raise ParseError(f"You cite {', '.join(unknown)}, which you have not been shown.", "unknown_source")
    if not (cited_ids or lenient or free):
        raise ParseError("Cite the records your answer rests on, by the ids you were shown, like "
                         f"[{next(iter(shown_records))}].", "no_citation")  # fmt: skip
    if not without_citations(answer).strip(LEFT_OUT):
        raise ParseError("Your final answer names no candidate.", "missing_field")
    decision = trajectory.decision(answer, because, runner_up=in_words(reply.runner_up))
    cited = [shown_records[id] for id in decision.evidence.ids]
    alone = "" if free else not_compared(decision.answer, cited, trajectory.question, trajectory.steps)
    if alone and compares:
        raise ParseError(f"{alone} {ADVICE}", "not_compared")
    weak = alone or ("" if free else not_best(decision.answer, cited, trajectory.steps))
    reasons = (*decision.reasons, weak) if weak else decision.reasons
    return replace(decision, assumptions=each_in_words(reply.assumptions), reasons=reasons)


def in_words(text: str) -> str:
    """On one line; '' where it says that there is none.

    >>> in_words("None."), in_words("elm, with 412 [o1.r2]")
    ('', 'elm, with 412 [o1.r2]')
    """
    text = " ".join(text.split())
    return "" if NO_ANSWER.fullmatch(text) else text


def each_in_words(text: str) -> tuple[str, ...]:
    """
    >>> each_in_words("- rents are monthly\\n- oak is open; elm too"), each_in_words("none")
    (('rents are monthly', 'oak is open', 'elm too'), ())
    """
    parts = re.split(r"\n|;\s", text)
    return tuple(
        part for part in (in_words(re.sub(r"^\s*(?:[-*]|\d{1,2}[.)])\s+", "", part)) for part in parts) if part
    )


Check = Callable[[LabelledReply], Decision]


def check_by(rule: EvidenceRule, trajectory: Trajectory, lenient: bool = False, compares: bool = False) -> Check:
    """What makes a decision of a reply with an answer, for the replies to one call: ``asked`` complains once. So does
    ``compares``, where other candidates can still be looked for, of an answer that nothing was compared with."""
    complaints = alone = 0

    def check(reply: LabelledReply) -> Decision:
        nonlocal complaints, alone
        free = rule == "free" or (rule == "asked" and (complaints or lenient))
        try:
            return decide(reply, trajectory, lenient, "free" if free else "required", compares and not alone)
        except ParseError as complaint:
            complaints += complaint.reason in ("no_citation", "no_evidence", "unknown_source")
            alone += complaint.reason == "not_compared"
            raise

    return check


def parse_final(reply: str, trajectory: Trajectory, lenient: bool = False, check: Check | None = None) -> Decision:
    """A reply that must hold a final answer."""
    fields = read_fields(clean(reply), [])
    if not fields.get("answer"):
        if not lenient or LABEL.search(reply) or len(reply) > 200:
            raise ParseError("Write it as Final answer: and the name of the candidate.", "missing_field")
        fields["answer"] = reply.strip()
    answer, because = parse_answer(fields)
    runner_up, assumptions = fields.get("runner_up", ""), fields.get("assumptions", "")
    whole = LabelledReply(answer=answer, because=because, runner_up=runner_up, assumptions=assumptions)
    return (check or check_by("required", trajectory, lenient))(whole)


def read_final(value: Mapping[str, Value], check: Check) -> Decision:
    """The same from a JSON object with the keys final_answer and because."""
    written: LabelledReply = read_object(LabelledReply, value)
    if not written.answer:
        raise ParseError("final_answer is missing: write the name of the candidate.", "missing_field")
    answer, because = parse_answer({"answer": written.answer, "because": written.because})
    return check(replace(written, answer=answer, because=because))


def final_form(
    trajectory: Trajectory, text: str, lenient: bool = False, rule: EvidenceRule = "required"
) -> Form[Decision]:
    check = check_by(rule, trajectory, lenient)
    return Form(
        "final answer",
        text,
        lambda reply: parse_final(reply, trajectory, lenient, check),
        LabelledReply,
        (answer_shape(),),
        lambda value: read_final(value, check),
    )


async def retrieve(move: LabelledReply, trajectory: Trajectory, run: Run) -> Trajectory:
    """The trajectory with one step more. Thinking to oneself returns nothing and costs no action. A query that brings
    again what it brought is answered with where that stands.

    Raises:
        ParseError: it is made a third time (repeated).
    """
    assert move.call is not None
    action = Action(move.call.tool, move.call.input)
    earlier = [step for step in trajectory.steps if same_action(step.action, action)]
    if any(step.observation.note.startswith(RAN_BEFORE) for step in earlier):
        raise ParseError("You made the same query three times.", "repeated")
    if action.tool == THINK and THINK not in run.env.tools():
        start = run.trace.add(ActionStart(THINK, action.input), run.span_id)
        observation = Observation(note="(noted)")
        run.trace.add(ActionResult(start, observation), run.span_id)
    else:
        observation = await run.act(action)
    if earlier and same_records(earlier[0].observation, observation):
        observation = Observation(note=ran_before(earlier[0], trajectory), error=observation.error)
    step = Step(action, observation, thought=move.thought, plan_step=move.current)
    return replace(trajectory, steps=(*trajectory.steps, step))


def same_action(a: Action, b: Action) -> bool:
    return a.tool == b.tool and (a.input == b.input or on_one_line(a.input) == on_one_line(b.input))


@lru_cache(maxsize=4096)
def on_one_line(query: str) -> str:
    return " ".join(query.split()).rstrip("; ")


def same_records(a: Observation, b: Observation) -> bool:
    """Whatever their ids are."""
    if len(a.records) != len(b.records) or (a.note, a.error) != (b.note, b.error):
        return False
    return all(x.fields == y.fields and x.text == y.text for x, y in zip(a.records, b.records, strict=True))


def ran_before(step: Step, trajectory: Trajectory) -> str:
    records = step.observation.records
    name = records[0].id.partition(".")[0] if records else f"step {trajectory.steps.index(step) + 1}"
    came = "it failed in the same way" if step.observation.error else "the same came back"
    return f"{RAN_BEFORE} {name}, and {came}. Use that, or ask for something else."


def last_words(trajectory: Trajectory, run: Run) -> str:
    """The end of the last prompt, in the place of what asks for the next action."""
    return LAST.substitute(form=run.wording(final_form(trajectory, FINAL)))


async def conclude(
    prompt: Sequence[Message],
    trajectory: Trajectory,
    run: Run,
    error: Error | None = None,
    rule: EvidenceRule = "required",
) -> Decision:
    """The last call, from what the budget keeps back: the best supported answer, or the best known one.

    Raises:
        LMError: the endpoint will not answer at all (key, quota, model).
    """
    stopped: Stopped = "steps" if error is None else "budget" if isinstance(error, BudgetExceeded) else "failed"
    steps = trajectory.actions or len(trajectory.steps)
    why = for_people(error) if error else f"The limit of {steps} steps is reached."
    try:
        decision = await run.ask(prompt, final_form(trajectory, FINAL, True, rule), final=True)
    except (BudgetExceeded, ParseError, LMError) as failure:
        if isinstance(failure, LMError) and failure.permanent:
            raise
        ranking = trajectory.ranking()
        best = ranking.options[0].name if ranking and ranking.options else ""
        decision = replace(trajectory.decision(best), reasons=(f"No last answer was given. {for_people(failure)}",))
    reasons = decision.reasons if any(why in reason for reason in decision.reasons) else (*decision.reasons, why)
    return tell(replace(decision, reasons=reasons, stopped=stopped), run)


def tell(decision: Decision, run: Run) -> Decision:
    """Into the trace, and on. Where many replies could not be read, the decision says so."""
    replies = sum(1 for _ in events_of(run.trace.entries, LMCall))
    if line := unread_line(sum(1 for _ in events_of(run.trace.entries, UnreadableReply)), replies, run.calling):
        decision = replace(decision, reasons=(*decision.reasons, line))
    run.trace.add(Conclusion(decision), run.span_id)
    return decision


LAST = Template("""\
# Answer
No more actions can be made. Write the answer that is best supported by what you have seen, as
$form""")

FINAL = f"""\
Final answer: the name or id of the candidate, and nothing else
Because: why, with the ids of the records it rests on
Runner-up: {RUNNER_UP}
Assumptions: {ASSUMPTIONS}
If nothing you have seen can decide, write Final answer: none
Where a table or a series is wanted: Final answer: {TABLE}
"""
