"""Model first: the LM writes the decision model, the machine computes every candidate.

    facts    <- FACTS(question)                    what is chosen, measures, what each sentence says -- run on the rows
    question <- question + PERSON(what is open)    where a person is there
    examples <- BY HAND(facts, two candidates)     from a few rows, by the calculator
    model    <- MODEL(facts)                       every check of the machine, the examples among them
    second   <- MODEL(what is chosen)              which reads the rules by itself; both on all candidates
    where they differ on a candidate
        example <- BY HAND(facts, the candidate)   and whose model it contradicts mends it
    return RANK(model)

Each step is checked on the real rows before the next, and mended ``repairs`` times at most. What cannot be mended, and
two models that still differ, end without an answer, and the models are shown. No LM says which of two models is right:
rows do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from decisor.errors import BudgetExceeded, ModelMistake, ParseError, SetupError
from decisor.replies.attribution import sentences
from decisor.replies.form import Form
from decisor.replies.toml_reply import Table, TomlReply, toml_form
from decisor.run import Run
from decisor.techniques.exact import evidence, reasons
from decisor.techniques.shared import model_first_checks as checks
from decisor.techniques.shared import model_first_prompts as prompts
from decisor.techniques.shared.model_first_prompts import show_rows
from decisor.trace.events import Conclusion
from decisor.types import LM, Action, Decision, Message, Observation, Question, Sampling, Stopped

NAMES = ("First", "Second")
TOOL, PERSON, SECOND = "decision_model", "person", "#### second"
PLAIN = Sampling()
OTHERWISE = Sampling(temperature=0.7)
NO_TOOL = "model_first writes a decision model for a database: give one with --db, and no other environment."


class Undecided(ModelMistake):
    """A step could not be mended, or two models differ."""


@dataclass(frozen=True)
class Written:
    """A model that no check has anything to say against; ``doubts``: what they leave a person to judge."""

    text: str = ""
    doubts: Sequence[str] = ()


Models = tuple[Written, Written]
"""The first and the second."""
NO_FACTS, NO_ROWS = TomlReply("", {}), Observation()


@dataclass(frozen=True)
class Draft:
    """What is known so far. ``facts`` as the LM wrote them; ``examples`` as they stand in a model file."""

    question: Question
    facts: TomlReply = NO_FACTS
    candidates: Observation = NO_ROWS
    settled: Sequence[str] = ()
    examples: Sequence[Table] = ()

    @cached_property
    def sentences(self) -> Sequence[str]:
        """Of the question. What has neither a letter nor a digit is none."""
        return [one for one in sentences(str(self.question)) if re.search(r"\w", one)]

    def words(self) -> str:
        numbered = [f"{number}. {sentence}" for number, sentence in enumerate(self.sentences, 1)]
        return "\n".join([*numbered, *self.settled])


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
        models, comparison = (Written(), Written()), NO_ROWS
        try:
            draft = await self.settle(await self.facts(Draft(question), run), run)
            draft = await self.by_hand(draft, run)
            models = (await self.model(draft, run), Written())
            if self.twice:
                apart = replace(draft, facts=checks.apart(draft.facts), examples=())
                models = (models[0], await self.model(apart, run.using(lm=self.second), OTHERWISE))
                models, comparison = await self.agree(draft, apart, models, run)
            decision = await self.decide(draft, models[0], comparison, run)
        except (Undecided, ParseError, BudgetExceeded) as error:
            texts = [f"{name} model:\n{one.text}" for name, one in zip(NAMES, models, strict=True) if one.text]
            stopped: Stopped = "budget" if isinstance(error, BudgetExceeded) else "no_answer"
            decision = Decision("", reasons=(str(error), *texts), stopped=stopped)
        run.trace.add(Conclusion(decision), run.span_id)
        return decision

    async def facts(self, draft: Draft, run: Run) -> Draft:
        """A goal that the question's own words speak against is asked about once, and then said with the decision."""
        asks = True

        def check(reply: TomlReply) -> None:
            nonlocal asks
            checks.facts(reply, draft.sentences)
            if asks and (why := checks.goal_against(reply, draft.sentences)):
                asks = False
                raise ParseError(f"{why} {checks.GOAL}", "shape")

        form = toml_form("facts", check)
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
        """Outcomes and broken rules of the candidates that the machine picked, worked out without a model. What rules a
        candidate out by hand is a rule, whatever the facts take it for."""
        seen: list[str] = []
        form = toml_form("examples", lambda reply: checks.examples(reply, draft.facts))
        facts = draft.facts
        prompt = prompts.examples(
            run.env.describe(), draft.words(), facts.text, draft.candidates, facts.content["measure"]
        )
        for look in range(self.looks + self.repairs):
            reply = await run.ask(prompts.with_rows(prompt, seen, look >= self.looks), form, sampling)
            if queries := checks.texts(reply.content.get("queries")):
                seen += [await self.look(query, run) for query in queries]
                continue
            lines = checks.expressions(reply, draft.facts)
            values = await run.act(Action(TOOL, "\n".join(["work", *lines])))
            if not values.error:
                worked = checks.worked(reply, draft.facts, draft.candidates, values)
                return replace(draft, examples=worked, facts=checks.with_rules(draft.facts, worked))
            seen.append(f"Your examples could not be computed: {values.note}")
        raise Undecided("No example could be worked out by hand.")

    async def look(self, query: str, run: Run) -> str:
        tools = [name for name in run.env.tools() if name not in (TOOL, PERSON)]
        return show_rows(query, await run.act(Action(tools[0], query)))

    async def model(
        self, draft: Draft, run: Run, sampling: Sampling = PLAIN, last: str = "", complaints: str = ""
    ) -> Written:
        """The file, with the examples below it. A reply that says which row of an example was read wrongly has the
        examples worked out once more, by somebody who has seen neither model nor examples. ``last``: a file that was
        written already, and what is wrong with it."""
        form = toml_form("model", lambda reply: checks.model(reply, draft.facts, draft.sentences))
        prompt = prompts.model(run.env.describe(), draft.words(), draft.facts.text)
        again = bool(draft.examples)
        messages = prompts.mend(prompt, last, complaints, False) if last else prompt
        reply = NO_FACTS
        for _ in range(self.repairs + 1):
            before, reply = reply, await run.ask(messages, form, sampling)
            if "example_wrong" in reply.content and before.content:
                draft = await self.by_hand(replace(draft, examples=()), run, OTHERWISE) if again else draft
                again, reply = False, before
            last = checks.whole(reply, draft.facts, draft.sentences, draft.examples)
            observation = await run.act(Action(TOOL, f"check\n{last}"))
            complaints = checks.complaints(observation)
            if not complaints:
                return Written(last, checks.doubts(observation, "the model"))
            messages = prompts.mend(prompt, last, complaints, again and checks.of_example(observation))
        raise Undecided(f"The model could not be mended: {complaints}\n{last}")

    async def agree(self, draft: Draft, apart: Draft, models: Models, run: Run) -> tuple[Models, Observation]:
        """Both models, and how they differ. A candidate on which they do is worked out by hand, and the model that this
        contradicts is mended."""
        difference = await self.compare(models, run)
        candidate = checks.candidate(difference)
        if not candidate.records:
            return models, difference
        hand = await self.by_hand(replace(apart, candidates=candidate), run, OTHERWISE)
        first, second = checks.contradictions(candidate, hand.examples)
        if bool(first) == bool(second):
            return models, difference
        if first:
            draft = replace(draft, examples=[*draft.examples, *hand.examples])
            models = (await self.model(draft, run, PLAIN, models[0].text, first), models[1])
        else:
            other = await self.model(apart, run.using(lm=self.second), OTHERWISE, models[1].text, second)
            models = (models[0], other)
        return models, await self.compare(models, run)

    async def compare(self, models: Models, run: Run) -> Observation:
        return await run.act(Action(TOOL, f"compare\n{models[0].text}\n{SECOND}\n{models[1].text}"))

    async def decide(self, draft: Draft, model: Written, comparison: Observation, run: Run) -> Decision:
        if difference := checks.complaints(comparison):
            raise Undecided(f"Two models of the question differ: {difference}")
        observation = await run.act(Action(TOOL, f"rank\n{model.text}"))
        ranking = observation.ranking
        if ranking is None or not ranking.options:
            raise Undecided(observation.note or "No candidate keeps all rules.")
        open_points = checks.open_points(draft.facts, len(draft.settled))
        against = filter(None, (checks.goal_against(draft.facts, draft.sentences),))
        doubts = (*against, *model.doubts, *checks.doubts(comparison, "the comparison of the two models"))
        return Decision(
            ranking.options[0].name, evidence(observation, ranking), ranking, plan=prompts.PLAN,
            reasons=(*reasons(ranking)[:-1], *checks.rule_lines(observation), prompts.COMPUTED, *doubts),
            assumptions=(*open_points, *checks.certain(draft.facts), *checks.unused(draft.facts, draft.sentences)),
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
