"""From a final answer to a Decision: what it names, what it cites, and which of its figures that supports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from decisor.errors import BudgetExceeded, Error, LMError, ParseError
from decisor.replies.fields import LABEL, Written, parse_answer, read_fields
from decisor.replies.figures import citations, numbers_in, numbers_of, supported, without_citations
from decisor.replies.text import clean
from decisor.run import Run
from decisor.techniques.shared.render import shown_records
from decisor.trace.events import ActionResult, ActionStart, Conclusion
from decisor.types import Action, Decision, Evidence, Message, Observation, Question, Ranking, Replan, Step, Stopped

THINK = "think"
NO_ANSWER = re.compile(r"\W*(none|no answer|unknown|undecidable|cannot decide|not enough data|n/?a)\W*", re.I)
LEFT_OUT = " \t\r\n.*_`\"'\u201c\u201d"


@dataclass(frozen=True)
class Story:
    """What a technique has when it decides: the question, its steps, its plan, how that changed, and how it began."""

    question: Question
    steps: tuple[Step, ...] = ()
    plan: tuple[str, ...] = ()
    replans: tuple[Replan, ...] = ()
    first_plan: tuple[str, ...] = ()

    def decision(self, answer: str, because: str = "", stopped: Stopped = "answered") -> Decision:
        """The decision with the evidence it cites."""
        shown = shown_records(self.steps)
        ids = tuple(dict.fromkeys(name for name in citations(f"{answer}\n{because}") if name in shown))
        name = without_citations(answer).strip(LEFT_OUT)
        sources = [(id, numbers_of(shown[id])) for id in ids]
        if ranking := self.ranking():
            sources.append((f"ranking of {ranking.measure}", [option.outcome for option in ranking.options]))
        asked = list(numbers_in(str(self.question)))
        figures = supported(f"{name}\n{because}", [*sources, ("question", asked)])
        reasons = (without_citations(because),) if because else ()
        return Decision(name, Evidence(ids, figures), self.ranking(), self.plan, self.replans, reasons, stopped)

    def ranking(self) -> Ranking | None:
        """The last one that a tool brought back."""
        found = [step.observation.ranking for step in self.steps if step.observation.ranking]
        return found[-1] if found else None


def decide(answer: str, because: str, story: Story, lenient: bool = False) -> Decision:
    """``lenient`` for the last call: what is missing is left out instead of asked for again.

    Raises:
        ParseError: a citation of something never shown (unknown_source), none at all (no_citation), or nothing was
            found yet that could support an answer (no_evidence).
    """
    shown = shown_records(story.steps)
    if NO_ANSWER.fullmatch(without_citations(answer)):
        return replace(story.decision("", because), answer="", stopped="no_answer")
    cited = citations(f"{answer}\n{because}")
    if not shown:
        if lenient:
            return replace(story.decision("", because or answer), answer="", stopped="no_answer")
        raise ParseError("No record has come back yet, so nothing supports an answer. Query the data; if it cannot "
                         "be decided, write Final answer: none", "no_evidence")  # fmt: skip
    if (unknown := [id for id in cited if id not in shown]) and not lenient:
        raise ParseError(f"You cite {', '.join(unknown)}, which you have not been shown.", "unknown_source")
    if not cited and not lenient:
        raise ParseError("Cite the records your answer rests on, by the ids you were shown, like "
                         f"[{next(iter(shown))}].", "no_citation")  # fmt: skip
    if not without_citations(answer).strip(LEFT_OUT):
        raise ParseError("Your final answer names no candidate.", "missing_field")
    return story.decision(answer, because)


def parse_final(reply: str, story: Story, lenient: bool = False) -> Decision:
    """A reply that must hold a final answer."""
    fields = read_fields(clean(reply), [])
    if not fields.get("answer"):
        if not lenient or LABEL.search(reply) or len(reply) > 200:
            raise ParseError("Write it as Final answer: and the name of the candidate.", "missing_field")
        fields["answer"] = reply.strip()
    answer, because = parse_answer(fields)
    return decide(answer or "", because, story, lenient)


async def retrieve(said: Written, story: Story, run: Run) -> Story:
    """The story with one step more. Thinking to oneself returns nothing and costs no action."""
    assert said.call is not None
    action = Action(said.call.tool, said.call.input)
    if action.tool == THINK and THINK not in run.env.tools():
        start = run.trace.add(ActionStart(THINK, action.input), run.span_id)
        observation = Observation(note="(noted)")
        run.trace.add(ActionResult(start, observation), run.span_id)
    else:
        observation = await run.act(action)
    step = Step(action, observation, said.thought, said.current)
    return replace(story, steps=(*story.steps, step))


def ask_last(prompt: Sequence[Message]) -> list[Message]:
    """The same prompt, asking for the answer instead of the next action."""
    last = prompt[-1]
    return [*prompt[:-1], Message(last.role, f"{last.content}\n{LAST}")]


async def conclude(prompt: Sequence[Message], story: Story, run: Run, error: Error | None = None) -> Decision:
    """The last call, from what the budget keeps back: the best supported answer, or the best known one.

    Raises:
        LMError: the endpoint will not answer at all (key, quota, model).
    """
    stopped: Stopped = "steps" if error is None else "budget" if isinstance(error, BudgetExceeded) else "failed"
    why = str(error) if error else f"The limit of {len(story.steps)} steps is reached."
    try:
        decision = await run.ask(prompt, lambda reply: parse_final(reply, story, lenient=True), final=True)
    except (BudgetExceeded, ParseError, LMError) as failure:
        if isinstance(failure, LMError) and failure.permanent:
            raise
        ranking = story.ranking()
        best = ranking.options[0].name if ranking and ranking.options else ""
        decision = replace(story.decision(best), reasons=(f"No last answer was given: {failure}",))
    return tell(replace(decision, reasons=(*decision.reasons, why), stopped=stopped), run)


def tell(decision: Decision, run: Run) -> Decision:
    """Into the trace, and on."""
    run.trace.add(Conclusion(decision), run.span_id)
    return decision


LAST = """\
No more actions can be made. Write the answer that is best supported by what you have seen, as
Final answer: the name or id of the candidate, and nothing else
Because: why, with the ids of the records it rests on
If nothing you have seen can decide, write Final answer: none
"""
