"""Model first: the LM writes the decision model, the machine computes every candidate.

    facts    <- FACTS(question)                    what is chosen, measures, rules word for word     -- run on the rows
    question <- question + PERSON(what is open)    where a person is there
    examples <- BY HAND(facts, two candidates)     from a few rows, by the calculator
    model    <- MODEL(facts)                       every check of the machine, the examples among them
    second   <- MODEL(facts)                       independent of the first; both on all candidates and on shaken rows
    return RANK(model)

Each step is checked on the real rows before the next, and mended ``repairs`` times at most. What cannot be mended, and
two models that do not agree after one look at both, end without an answer, and the models are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from decisor.errors import BudgetExceeded, ModelMistake, ParseError, SetupError
from decisor.replies.form import Form
from decisor.replies.toml_reply import TomlReply, toml_form
from decisor.run import Run
from decisor.techniques.exact import evidence, reasons
from decisor.techniques.shared import model_first_checks as checks
from decisor.techniques.shared import model_first_prompts as prompts
from decisor.techniques.shared.model_first_prompts import show_rows
from decisor.trace.events import Conclusion
from decisor.types import LM, Action, Decision, Message, Observation, Question, Sampling, Stopped

TOOL, PERSON, SECOND = "decision_model", "person", "#### second"
PLAIN = Sampling()
OTHERWISE = Sampling(temperature=0.7)
NO_TOOL = "model_first writes a decision model for a database: give one with --db, and no other environment."


class Undecided(ModelMistake):
    """A step could not be mended, or two models differ."""


NO_FACTS, NO_ROWS = TomlReply("", {}), Observation()


@dataclass(frozen=True)
class Draft:
    """What is known so far. ``system`` begins every prompt; ``facts`` as the LM wrote them; ``examples`` as TOML."""

    question: Question
    facts: TomlReply = NO_FACTS
    candidates: Observation = NO_ROWS
    settled: Sequence[str] = ()
    examples: str = ""

    def words(self) -> str:
        return "\n".join([str(self.question), *self.settled])


@dataclass(frozen=True)
class ModelFirst:
    """``repairs``: of a step. ``looks``: rounds of queries for the examples. ``twice``: whether a second model is
    written, by ``second`` where that is another LM. ``trials``: how often inputs vary in the ranking."""

    needs: ClassVar[tuple[str, ...]] = (TOOL,)

    repairs: int = 3
    looks: int = 4
    twice: bool = True
    trials: int = 200
    asks_person: bool = False
    second: LM | None = field(default=None)

    async def __call__(self, question: Question, run: Run) -> Decision:
        """Raises SetupError where the environment computes no decision models."""
        if TOOL not in run.env.tools():
            raise SetupError(NO_TOOL)
        model = other = ""
        doubts: tuple[str, ...] = ()
        try:
            draft = await self.settle(await self.facts(Draft(question), run), run)
            draft = await self.by_hand(draft, run)
            model = await self.model(draft, run)
            if self.twice:
                other = await self.model(replace(draft, examples=""), run.using(lm=self.second), OTHERWISE)
                model, other, doubts = await self.agree(draft, model, other, run)
            decision = await self.decide(draft, model, run)
            decision = replace(decision, reasons=(*decision.reasons, *doubts))
        except (Undecided, ParseError, BudgetExceeded) as error:
            models = [f"{name} model:\n{text}" for name, text in (("First", model), ("Second", other)) if text]
            stopped: Stopped = "budget" if isinstance(error, BudgetExceeded) else "no_answer"
            decision = Decision("", reasons=(str(error), *models), stopped=stopped)
        run.trace.add(Conclusion(decision), run.span_id)
        return decision

    async def facts(self, draft: Draft, run: Run) -> Draft:
        def check(reply: TomlReply) -> None:
            checks.facts(reply, draft.words())

        form = toml_form("facts", prompts.FACTS_FORM, check)
        prompt = prompts.facts(run.env.describe(), draft.words())
        facts, candidates = await self.step("facts", prompt, form, lambda reply: f"facts\n{reply.text}", run)
        return replace(draft, facts=facts, candidates=candidates)

    async def settle(self, draft: Draft, run: Run) -> Draft:
        """What the rules leave open, asked of the person one by one; where nobody is there it stays open."""
        if PERSON not in run.env.tools():
            return draft
        for number, words in enumerate(checks.texts(draft.facts.content.get("open")), 1):
            reply = await run.act(Action(PERSON, words))
            answer = reply.records[0].fields["answer"] if reply.records else ""
            draft = replace(draft, settled=(*draft.settled, f"Settled {number}: {words} {answer}"))
        return draft

    async def by_hand(self, draft: Draft, run: Run, sampling: Sampling = PLAIN) -> Draft:
        """Outcomes and broken rules of the candidates that the machine picked, worked out without a model."""
        seen: list[str] = []
        form = toml_form("examples", prompts.EXAMPLES_FORM, lambda reply: checks.examples(reply, draft.facts))
        prompt = prompts.examples(run.env.describe(), draft.words(), draft.facts.text, draft.candidates)
        for look in range(self.looks + self.repairs):
            reply = await run.ask(prompts.with_rows(prompt, seen, look >= self.looks), form, sampling)
            if queries := checks.texts(reply.content.get("queries")):
                seen += [await self.look(query, run) for query in queries]
                continue
            lines = checks.expressions(reply, draft.facts)
            values = await run.act(Action(TOOL, "\n".join(["work", *lines])))
            if not values.error:
                return replace(draft, examples=checks.worked(reply, draft.facts, draft.candidates, values))
            seen.append(f"Your examples could not be computed: {values.note}")
        raise Undecided("No example could be worked out by hand.")

    async def look(self, query: str, run: Run) -> str:
        tools = [name for name in run.env.tools() if name not in (TOOL, PERSON)]
        return show_rows(query, await run.act(Action(tools[0], query)))

    async def model(self, draft: Draft, run: Run, sampling: Sampling = PLAIN) -> str:
        """The file, with the examples below it. A reply that says which row of an example was read wrongly has the
        examples worked out once more, by somebody who has seen neither model nor examples."""
        form = toml_form("model", prompts.MODEL_FORM, lambda reply: checks.model(reply, draft.facts))
        prompt = prompts.model(run.env.describe(), draft.words(), draft.facts.text)
        again = bool(draft.examples)
        messages, last = prompt, ""
        for _ in range(self.repairs + 1):
            reply = await run.ask(messages, form, sampling)
            if again and "example_wrong" in reply.content and last:
                again = False
                draft = await self.by_hand(replace(draft, examples=""), run, OTHERWISE)
                reply = replace(reply, text=last)
            last = checks.without_examples(reply.text)
            observation = await run.act(Action(TOOL, f"check\n{last}{draft.examples}"))
            complaints = checks.complaints(observation)
            if not complaints:
                return last + draft.examples
            messages = prompts.mend(prompt, last + draft.examples, complaints, again and checks.of_example(observation))
        raise Undecided(f"The model could not be mended: {complaints}\n{last}{draft.examples}")

    async def agree(self, draft: Draft, model: str, other: str, run: Run) -> tuple[str, str, tuple[str, ...]]:
        """Both models, as they are where they agree; where they do not, after one look at both. And what of the
        comparison is in doubt."""
        difference, doubts = await self.compare(model, other, run)
        if not difference:
            return model, other, doubts
        form = toml_form("the right model", prompts.DIFFER_FORM, checks.right_one)
        prompt = prompts.differ(run.env.describe(), draft.words(), draft.facts.text, (model, other), difference)
        reply = await run.ask(prompt, form)
        right = checks.without_examples(checks.without(reply.text, "wrong"))
        if reply.content["wrong"] in ("first", "both"):
            model = right + draft.examples
        if reply.content["wrong"] in ("second", "both"):
            other = right
        complaints = checks.complaints(await run.act(Action(TOOL, f"check\n{model}")))
        if reply.content["wrong"] != "both" and not complaints:
            still, doubts = await self.compare(model, other, run)
            if not still:
                return model, other, doubts
        raise Undecided(f"Two models of the question differ: {difference}")

    async def compare(self, model: str, other: str, run: Run) -> tuple[str, tuple[str, ...]]:
        """How they differ, '' where they do not; and what is in doubt."""
        observation = await run.act(Action(TOOL, f"compare\n{model}\n{SECOND}\n{other}"))
        return checks.complaints(observation), checks.doubts(observation)

    async def decide(self, draft: Draft, model: str, run: Run) -> Decision:
        observation = await run.act(Action(TOOL, f"rank\n{model}"))
        ranking = observation.ranking
        if ranking is None or not ranking.options:
            raise Undecided(observation.note or "No candidate keeps all rules.")
        open_points = checks.open_points(draft.facts, len(draft.settled))
        return Decision(
            ranking.options[0].name, evidence(observation, ranking), ranking, plan=prompts.PLAN,
            reasons=(*reasons(ranking)[:-1], *checks.rule_lines(observation), prompts.COMPUTED),
            assumptions=(*open_points, *checks.certain(draft.facts)),
        )  # fmt: skip

    async def step(
        self, name: str, prompt: list[Message], form: Form[Any], job: Callable[[Any], str], run: Run
    ) -> tuple[Any, Observation]:
        """A reply that the machine has nothing to say against, and what it said."""
        messages = prompt
        for _ in range(self.repairs + 1):
            reply = await run.ask(messages, form)
            observation = await run.act(Action(TOOL, job(reply)))
            if not observation.error:
                return reply, observation
            messages = prompts.mend(prompt, reply.text, observation.note, False)
        raise Undecided(f"The {name} could not be mended: {observation.note}")
