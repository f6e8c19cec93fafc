"""Model first: the LLM writes the decision model, the machine computes every candidate.

    facts    <- FACTS(question)                    what is chosen, measures, what each sentence says -- run on the rows
    question <- question + PERSON(what is open)    where a person is there
    examples <- BY HAND(facts, two candidates)     from a few rows, by the calculator
    model    <- MODEL(facts)                       every check of the machine, the examples among them
    second   <- MODEL(what is chosen)              which reads the rules by itself; both on all candidates
    where they differ on a candidate
        example <- BY HAND(facts, the candidate)   and whose model it contradicts mends it
    return RANK(model)

Each step is checked on the real rows before the next, and mended ``repairs`` times at most. What cannot be mended, and
two models that still differ, end without an answer, and the models are shown. No LLM says which of two models is right:
rows do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from decisor.errors import BudgetExceeded, ModelMistake, ParseError, SetupError
from decisor.parsing.attribution import split_answer_sentences
from decisor.parsing.reply_form import Form
from decisor.parsing.toml_reply import Table, TomlReply, toml_form
from decisor.runtime.run import Run
from decisor.techniques.exact import collect_ranking_evidence, explain_ranking
from decisor.techniques.shared import model_draft as checks
from decisor.techniques.shared import model_draft as prompts
from decisor.techniques.shared.model_draft import format_query_rows
from decisor.trace.events import Conclusion
from decisor.types import LLM, Action, Decision, Message, Observation, Question, Sampling, Stopped

NAMES = ("First", "Second")
TOOL, PERSON, SECOND = "decision_model", "person", "#### second"
PLAIN = Sampling()
OTHERWISE = Sampling(temperature=0.7)
NO_TOOL = "model_first writes a decision model for a database: give one with --db, and no other environment."


class Undecided(ModelMistake):
    """A failure of a step that could not be repaired, or a difference between two models."""


@dataclass(frozen=True)
class WrittenModel:
    """A decision model that passed all checks."""

    text: str = ""
    doubts: Sequence[str] = ()
    """Findings that a person must judge."""


Models = tuple[WrittenModel, WrittenModel]
"""The first and the second."""
NO_FACTS, NO_ROWS = TomlReply("", {}), Observation()


@dataclass(frozen=True)
class ModelDraft:
    """The state of the work before the model."""

    question: Question
    facts: TomlReply = NO_FACTS
    """As the LLM wrote them."""
    candidates: Observation = NO_ROWS
    settled: Sequence[str] = ()
    """Open points with the answers of a person."""
    examples: Sequence[Table] = ()
    """As written in a model file."""

    @cached_property
    def sentences(self) -> Sequence[str]:
        """Sentences of the question. Pieces without a letter or digit do not count."""
        return [one for one in split_answer_sentences(str(self.question)) if re.search(r"\w", one)]

    def words(self) -> str:
        numbered = [f"{number}. {sentence}" for number, sentence in enumerate(self.sentences, 1)]
        return "\n".join([*numbered, *self.settled])


@dataclass(frozen=True)
class ModelFirst:
    """A decision model written by the LLM and computed for every candidate.

    ``repairs``: attempts to repair a step. ``looks``: rounds of queries for the examples. ``twice``: whether a second
    model is written; ``second`` is its LLM if it is another one. ``trials``: number of variations of the inputs in the
    ranking.
    """

    needs: ClassVar[tuple[str, ...]] = (TOOL,)

    repairs: int = 3
    looks: int = 4
    twice: bool = True
    trials: int = 200
    asks_person: bool = False
    second: LLM | None = field(default=None)

    async def __call__(self, question: Question, run: Run) -> Decision:
        """Write, check and rank the decision model.

        Raise SetupError if the environment cannot compute decision models.
        """
        if TOOL not in run.env.tools():
            raise SetupError(NO_TOOL)
        models, comparison = (WrittenModel(), WrittenModel()), NO_ROWS
        try:
            draft = await self.settle(await self.facts(ModelDraft(question), run), run)
            draft = await self.by_hand(draft, run)
            models = (await self.model(draft, run), WrittenModel())
            if self.twice:
                # The second model shares only what is chosen and measured: with the first one's facts it would share
                # their mistakes.
                apart = replace(draft, facts=checks.keep_choice_and_measures(draft.facts), examples=())
                models = (models[0], await self.model(apart, run.using(llm=self.second), OTHERWISE))
                models, comparison = await self.agree(draft, apart, models, run)
            decision = await self.decide(draft, models[0], comparison, run)
        except (Undecided, ParseError, BudgetExceeded) as error:
            texts = [f"{name} model:\n{one.text}" for name, one in zip(NAMES, models, strict=True) if one.text]
            stopped: Stopped = "budget" if isinstance(error, BudgetExceeded) else "no_answer"
            decision = Decision("", reasons=(str(error), *texts), stopped=stopped)
        run.trace.add(Conclusion(decision), run.span_id)
        return decision

    async def facts(self, draft: ModelDraft, run: Run) -> ModelDraft:
        """Ask for the facts of the question and check them.

        If the words of the question contradict the goal, the LLM is asked once more; after that the contradiction is
        reported with the decision.
        """
        asks = True

        def check(reply: TomlReply) -> None:
            nonlocal asks
            checks.check_facts(reply, draft.sentences)
            if asks and (why := checks.goal_against(reply, draft.sentences)):
                asks = False
                raise ParseError(f"{why} {checks.GOAL}", "shape")

        form = toml_form("facts", check)
        prompt = prompts.build_facts_prompt(run.env.describe(), draft.words())
        facts, candidates = await self.step("facts", prompt, form, lambda reply: f"facts\n{reply.text}", run)
        return replace(draft, facts=facts, candidates=candidates)

    async def settle(self, draft: ModelDraft, run: Run) -> ModelDraft:
        """Ask the person about each open point of the rules. Without a person the points stay open."""
        if PERSON not in run.env.tools():
            return draft
        for number, words in enumerate(checks.list_texts(draft.facts.content.get("open")), 1):
            reply = await run.act(Action(PERSON, words))
            answer = reply.records[0].fields["answer"] if reply.records else ""
            draft = replace(draft, settled=(*draft.settled, f"Settled {number}: {words} {answer}"))
        return draft

    async def by_hand(self, draft: ModelDraft, run: Run, sampling: Sampling = PLAIN) -> ModelDraft:
        """Work out outcomes and broken rules of the chosen candidates by hand, without a model.

        A condition that excludes a candidate by hand counts as a rule, whatever the facts call it.
        """
        seen: list[str] = []
        form = toml_form("examples", lambda reply: checks.check_example_reply(reply, draft.facts))
        facts = draft.facts
        prompt = prompts.build_examples_prompt(
            run.env.describe(), draft.words(), facts.text, draft.candidates, facts.content["measure"]
        )
        # After ``looks`` rounds of queries the prompt says that no more can be made.
        for look in range(self.looks + self.repairs):
            reply = await run.ask(prompts.add_rows_to_prompt(prompt, seen, look >= self.looks), form, sampling)
            if queries := checks.list_texts(reply.content.get("queries")):
                seen += [await self.look(query, run) for query in queries]
                continue
            lines = checks.list_example_expressions(reply, draft.facts)
            values = await run.act(Action(TOOL, "\n".join(["work", *lines])))
            if not values.error:
                worked = checks.build_worked_examples(reply, draft.facts, draft.candidates, values)
                return replace(draft, examples=worked, facts=checks.add_example_rules(draft.facts, worked))
            seen.append(f"Your examples could not be computed: {values.note}")
        raise Undecided("No example could be worked out by hand.")

    async def look(self, query: str, run: Run) -> str:
        tools = [name for name in run.env.tools() if name not in (TOOL, PERSON)]
        return format_query_rows(query, await run.act(Action(tools[0], query)))

    async def model(
        self, draft: ModelDraft, run: Run, sampling: Sampling = PLAIN, last: str = "", complaints: str = ""
    ) -> WrittenModel:
        """Write the model file with the examples below it, and repair it until all checks pass.

        If a reply says which row of an example was misread, the examples are worked out once more in a prompt without
        model and examples. ``last``: a file that exists already. ``complaints``: its defects.
        """
        form = toml_form("model", lambda reply: checks.check_model_reply(reply, draft.facts, draft.sentences))
        prompt = prompts.build_model_prompt(run.env.describe(), draft.words(), draft.facts.text)
        # An example may be blamed once: after that the model is repaired until it fits.
        again = bool(draft.examples)
        messages = prompts.build_repair_prompt(prompt, last, complaints, False) if last else prompt
        reply = NO_FACTS
        for _ in range(self.repairs + 1):
            before, reply = reply, await run.ask(messages, form, sampling)
            if "example_wrong" in reply.content and before.content:
                draft = await self.by_hand(replace(draft, examples=()), run, OTHERWISE) if again else draft
                again, reply = False, before
            last = checks.build_model_file(reply, draft.facts, draft.sentences, draft.examples)
            observation = await run.act(Action(TOOL, f"check\n{last}"))
            complaints = checks.list_check_errors(observation)
            if not complaints:
                return WrittenModel(last, checks.list_check_doubts(observation, "the model"))
            messages = prompts.build_repair_prompt(
                prompt, last, complaints, again and checks.is_about_example(observation)
            )
        raise Undecided(f"The model could not be mended: {complaints}\n{last}")

    async def agree(self, draft: ModelDraft, apart: ModelDraft, models: Models, run: Run) -> tuple[Models, Observation]:
        """Compare both models and return them with their difference.

        A candidate on which they differ is worked out by hand, and the model that this contradicts is repaired.
        """
        difference = await self.compare(models, run)
        candidate = checks.find_differing_candidate(difference)
        if not candidate.records:
            return models, difference
        hand = await self.by_hand(replace(apart, candidates=candidate), run, OTHERWISE)
        first, second = checks.explain_contradictions(candidate, hand.examples)
        # The example speaks against both or neither, so it does not tell which one to repair.
        if bool(first) == bool(second):
            return models, difference
        if first:
            draft = replace(draft, examples=[*draft.examples, *hand.examples])
            models = (await self.model(draft, run, PLAIN, models[0].text, first), models[1])
        else:
            other = await self.model(apart, run.using(llm=self.second), OTHERWISE, models[1].text, second)
            models = (models[0], other)
        return models, await self.compare(models, run)

    async def compare(self, models: Models, run: Run) -> Observation:
        return await run.act(Action(TOOL, f"compare\n{models[0].text}\n{SECOND}\n{models[1].text}"))

    async def decide(self, draft: ModelDraft, model: WrittenModel, comparison: Observation, run: Run) -> Decision:
        if difference := checks.list_check_errors(comparison):
            raise Undecided(f"Two models of the question differ: {difference}")
        observation = await run.act(Action(TOOL, f"rank\n{model.text}"))
        ranking = observation.ranking
        if ranking is None or not ranking.options:
            raise Undecided(observation.note or "No candidate keeps all rules.")
        open_points = checks.list_open_points(draft.facts, len(draft.settled))
        against = filter(None, (checks.goal_against(draft.facts, draft.sentences),))
        doubts = (*against, *model.doubts, *checks.list_check_doubts(comparison, "the comparison of the two models"))
        return Decision(
            ranking.options[0].name,
            collect_ranking_evidence(observation, ranking),
            ranking,
            plan=prompts.PLAN,
            # The last line of explain_ranking says that no LLM took part.
            reasons=(*explain_ranking(ranking)[:-1], *checks.explain_rules(observation), prompts.COMPUTED, *doubts),
            assumptions=(
                *open_points,
                *checks.list_certain_inputs(draft.facts),
                *checks.list_unused_sentences(draft.facts, draft.sentences),
            ),
        )

    async def step(
        self, name: str, prompt: list[Message], form: Form[Any], job: Callable[[Any], str], run: Run
    ) -> tuple[Any, Observation]:
        """Ask for a reply until the machine accepts it; return the reply and the machine's observation."""
        messages = prompt
        for _ in range(self.repairs + 1):
            reply = await run.ask(messages, form)
            observation = await run.act(Action(TOOL, job(reply)))
            if not observation.error:
                return reply, observation
            messages = prompts.build_repair_prompt(prompt, reply.text, observation.note, False)
        raise Undecided(f"The {name} could not be mended: {observation.note}")
