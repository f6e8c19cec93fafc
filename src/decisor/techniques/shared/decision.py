"""From a final answer to a Decision: what it names, what it cites, and which of its figures that supports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from decisor.calls.prompt_parts import Template, Text
from decisor.errors import BudgetExceeded, Error, LMError, ParseError
from decisor.replies.cleaning import clean
from decisor.replies.figures import check_figures, citations, numbers_of, without_citations
from decisor.replies.form import Form
from decisor.replies.labelled import LABEL, LabelledReply, parse_answer, read_fields
from decisor.replies.numbers import numbers_in
from decisor.replies.shape import read_object
from decisor.run import Run
from decisor.techniques.shared.labelled_form import answer_shape
from decisor.techniques.shared.render import Rendering, renderings, show_steps
from decisor.trace.events import ActionResult, ActionStart, Conclusion
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
        return {record.id: record for observation in self.observations for record in observation.records}

    def show(self, thoughts: bool = True) -> Text:
        """The steps so far as the model reads them."""
        return show_steps(self.steps, thoughts, self.replans, self.observations)

    def decision(self, answer: str, because: str = "", stopped: Stopped = "answered") -> Decision:
        """The decision with the evidence it cites."""
        shown_records = self.shown_records()
        ids = tuple(dict.fromkeys(name for name in citations(f"{answer}\n{because}") if name in shown_records))
        name = without_citations(answer).strip(LEFT_OUT)
        cited = [shown_records[id] for id in ids]
        sources = [(one.id, numbers_of(one)) for one in cited]
        if ranking := self.ranking():
            sources.append((f"ranking of {ranking.measure}", [option.outcome for option in ranking.options]))
        sources.append(("question", list(numbers_in(str(self.question)))))
        sources += [(id, numbers_of(one)) for id, one in shown_records.items() if id not in ids]
        figures = check_figures(f"{name}\n{because}", sources, cited)
        reasons = (because.strip(),) if because else ()
        return Decision(
            name,
            Evidence(ids, figures),
            ranking=self.ranking(),
            plan=self.plan,
            replans=self.replans,
            reasons=reasons,
            stopped=stopped,
        )

    def ranking(self) -> Ranking | None:
        """The last one that a tool brought back."""
        rankings = [step.observation.ranking for step in self.steps if step.observation.ranking]
        return rankings[-1] if rankings else None


def decide(
    answer: str, because: str, trajectory: Trajectory, lenient: bool = False, rule: EvidenceRule = "required"
) -> Decision:
    """``lenient`` for the last call: what is missing is left out instead of asked for again. ``rule`` free takes an
    answer as it is, with what of its citations was shown.

    Raises:
        ParseError: a citation of something never shown (unknown_source), none at all (no_citation), or nothing was
            found yet that could support an answer (no_evidence).
    """
    shown_records = trajectory.shown_records()
    if NO_ANSWER.fullmatch(without_citations(answer)):
        return replace(trajectory.decision("", because), answer="", stopped="no_answer")
    cited_ids = citations(f"{answer}\n{because}")
    if rule == "free" and without_citations(answer).strip(LEFT_OUT):
        return trajectory.decision(answer, because)
    if not shown_records:
        if lenient:
            return replace(trajectory.decision("", because or answer), answer="", stopped="no_answer")
        raise ParseError("No record has come back yet, so nothing supports an answer. Query the data; if it cannot "
                         "be decided, write Final answer: none", "no_evidence")  # fmt: skip
    if (unknown := [id for id in cited_ids if id not in shown_records]) and not lenient:
        raise ParseError(f"You cite {', '.join(unknown)}, which you have not been shown.", "unknown_source")
    if not cited_ids and not lenient:
        raise ParseError("Cite the records your answer rests on, by the ids you were shown, like "
                         f"[{next(iter(shown_records))}].", "no_citation")  # fmt: skip
    if not without_citations(answer).strip(LEFT_OUT):
        raise ParseError("Your final answer names no candidate.", "missing_field")
    return trajectory.decision(answer, because)


Check = Callable[[str, str], Decision]


def check_by(rule: EvidenceRule, trajectory: Trajectory, lenient: bool = False) -> Check:
    """What makes a decision of an answer and its reason, for the replies to one call: ``asked`` complains once."""
    complaints = 0

    def check(answer: str, because: str) -> Decision:
        nonlocal complaints
        free = rule == "free" or (rule == "asked" and (complaints or lenient))
        try:
            return decide(answer, because, trajectory, lenient, "free" if free else "required")
        except ParseError as complaint:
            complaints += complaint.reason in ("no_citation", "no_evidence", "unknown_source")
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
    return (check or check_by("required", trajectory, lenient))(answer or "", because)


def read_final(value: Mapping[str, Value], check: Check) -> Decision:
    """The same from a JSON object with the keys final_answer and because."""
    written: LabelledReply = read_object(LabelledReply, value)
    if not written.answer:
        raise ParseError("final_answer is missing: write the name of the candidate.", "missing_field")
    answer, because = parse_answer({"answer": written.answer, "because": written.because})
    return check(answer or "", because)


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
    """The trajectory with one step more. Thinking to oneself returns nothing and costs no action."""
    assert move.call is not None
    action = Action(move.call.tool, move.call.input)
    if action.tool == THINK and THINK not in run.env.tools():
        start = run.trace.add(ActionStart(THINK, action.input), run.span_id)
        observation = Observation(note="(noted)")
        run.trace.add(ActionResult(start, observation), run.span_id)
    else:
        observation = await run.act(action)
    step = Step(action, observation, thought=move.thought, plan_step=move.current)
    return replace(trajectory, steps=(*trajectory.steps, step))


def ask_last(prompt: Sequence[Message], trajectory: Trajectory, run: Run) -> list[Message]:
    """The same prompt, asking for the answer instead of the next action."""
    last = prompt[-1]
    ask = LAST.substitute(form=run.wording(final_form(trajectory, FINAL)))
    return [*prompt[:-1], Message(last.role, last.content + "\n" + ask)]


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
    why = str(error) if error else f"The limit of {len(trajectory.steps)} steps is reached."
    try:
        decision = await run.ask(prompt, final_form(trajectory, FINAL, True, rule), final=True)
    except (BudgetExceeded, ParseError, LMError) as failure:
        if isinstance(failure, LMError) and failure.permanent:
            raise
        ranking = trajectory.ranking()
        best = ranking.options[0].name if ranking and ranking.options else ""
        decision = replace(trajectory.decision(best), reasons=(f"No last answer was given: {failure}",))
    return tell(replace(decision, reasons=(*decision.reasons, why), stopped=stopped), run)


def tell(decision: Decision, run: Run) -> Decision:
    """Into the trace, and on."""
    run.trace.add(Conclusion(decision), run.span_id)
    return decision


LAST = Template("""\
No more actions can be made. Write the answer that is best supported by what you have seen, as
$form""")

FINAL = """\
Final answer: the name or id of the candidate, and nothing else
Because: why, with the ids of the records it rests on
If nothing you have seen can decide, write Final answer: none
"""
