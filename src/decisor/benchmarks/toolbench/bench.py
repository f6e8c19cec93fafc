"""ToolBench for the runner: pass rate as ToolEval counts it, by a judging LM, and what went wrong with calls.

``right`` is what the LM that ``judge`` names says. Without one a run is unscored, unless no answer was given, which
fails in any case; ``valid`` (an answer was given) is RaD-Agent's own proxy. The same answer to the same task is judged
once in a run. Who answers the calls: what was recorded, then ``live``, then ``simulate`` where they are named.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decisor.benchmarks.protocol import Case, Score
from decisor.benchmarks.search_metrics import answers_on_the_way, chosen_path, search_metrics
from decisor.benchmarks.toolbench.answers import Answers, AnswersInOrder, LiveAnswers, RecordedAnswers, SimulatedAnswers
from decisor.benchmarks.toolbench.environment import ToolServer, describe_function
from decisor.benchmarks.toolbench.failures import CallOutcome, calls, failure, tags
from decisor.benchmarks.toolbench.functions import schema
from decisor.benchmarks.toolbench.load import Task, load_calls, load_tasks
from decisor.judging.auxiliary_lms import OwnLM
from decisor.judging.lm_judge import judging
from decisor.judging.pass_rate import Attempt, PassJudge, PassResult, solvable_pass_rate
from decisor.secrets import Secret
from decisor.trace.events import Entry
from decisor.types import LM, Decision, Environment, Question, Usage

RULES = (
    "Use the functions to do what the user asks for. What they return is all you know: make nothing up. When you know "
    "enough, or see that no function can help, call Finish with an answer that holds all that the user needs."
)


@dataclass(frozen=True)
class ToolBenchBench:
    """``data``: the folder of the test instructions, and of ``recorded_calls.jsonl.gz`` if there are any. ``split``:
    all, or one such as G1_instruction. ``judge`` and ``simulate``: LMs, as MODEL@URL. ``live``: the address of a
    server with ToolBench's interface; the environment variable ``key_env`` holds its key. ``evaluations``: of one
    answer. ``every_answer`` has the judge read every answer that a search reached: whether any of them passes is
    ``found``, as the paper counts CoT@3."""

    data: Path
    split: str = "all"
    judge: str = ""
    simulate: str = ""
    live: str = ""
    key_env: str = "TOOLBENCH_KEY"
    evaluations: int = 4
    every_answer: bool = False
    name: str = "toolbench"

    @cached_property
    def tasks(self) -> dict[str, Task]:
        return {task.id: task for task in load_tasks(self.data, self.split)}

    @cached_property
    def judging_lm(self) -> OwnLM | None:
        return OwnLM(self.judge) if self.judge else None

    @cached_property
    def simulating_lm(self) -> OwnLM | None:
        return OwnLM(self.simulate) if self.simulate else None

    @property
    def own_lms(self) -> tuple[OwnLM, ...]:
        return tuple(one for one in (self.judging_lm, self.simulating_lm) if one is not None)

    @cached_property
    def recorded(self) -> RecordedAnswers:
        return RecordedAnswers(load_calls(self.data))

    @cached_property
    def answering(self) -> LiveAnswers | None:
        return LiveAnswers(self.live, Secret(os.environ.get(self.key_env, ""))) if self.live else None

    def answers(self) -> AnswersInOrder:
        """For one run of a case: what its simulated answers cost is counted in it."""
        sources: list[Answers] = [self.recorded]
        if self.answering is not None:
            sources.append(self.answering)
        if self.simulating_lm is not None:
            sources.append(SimulatedAnswers(self.simulating_lm.for_case(), self.recorded))
        return AnswersInOrder(sources)

    def cases(self) -> Sequence[Case]:
        return [
            Case(task.id, Question(task.query, RULES), group=task.split, facts={"relevant": task.relevant})
            for task in self.tasks.values()
        ]

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        yield ToolServer(self.tasks[case.id], self.answers())

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        outcomes = calls(events)
        steps = calls(chosen_path(events))
        attempt = self.attempt(case, decision.answer, steps)
        judge = self.judging_lm.for_case() if self.judging_lm is not None else None
        passed = await self.passed(attempt, judge)
        metrics = {"valid": float(attempt.has_answer), **search_metrics(events)}
        if passed.right is not None:
            metrics["passed"] = float(passed.right)
            if self.every_answer:
                metrics["found"] = float(passed.right or await self.any_passed(case, decision, events, judge))
        if passed.statuses:
            metrics["solved"] = solvable_pass_rate([passed.statuses])[0]
        counts = {"api_calls": sum(one.status not in (3, 4) for one in outcomes),
                  "steps": len(steps), "judged": len(passed.votes)}  # fmt: skip
        return Score(
            passed.right,
            decision.answer,
            metrics,
            failure=failure(outcomes, passed.right),
            tags=tags(outcomes, passed.right),
            counts=counts,
            judging=Usage() if judge is None else judge.usage,
        )

    async def any_passed(self, case: Case, decision: Decision, events: Sequence[Entry], judge: LM | None) -> bool:
        """Whether another answer than the decision's passes; judged by the answer alone."""
        for answer in answers_on_the_way(events):
            if answer != decision.answer and (await self.passed(self.attempt(case, answer, ()), judge)).right:
                return True
        return False

    def attempt(self, case: Case, answer: str, outcomes: Sequence[CallOutcome]) -> Attempt:
        functions = "\n\n".join(describe_function(schema(api)) for api in self.tasks[case.id].apis)
        steps = "\n".join(f"{one.tool} {one.input}\n-> {one.response}" for one in outcomes)
        return Attempt(case.question.text, functions, answer, steps, finished=bool(answer.strip()))

    async def passed(self, attempt: Attempt, judge: LM | None) -> PassResult:
        if not attempt.has_answer:
            return PassResult(False)
        if judge is None:
            return PassResult(None)
        return await PassJudge(self.evaluations)(attempt, judging(judge))

    async def close(self) -> None:
        if self.answering is not None:
            await self.answering.close()
        for one in self.own_lms:
            await one.close()
