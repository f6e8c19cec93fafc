"""ToolBench as a benchmark: pass rate as ToolEval counts it, by a judging LLM, win rate, and failures of calls.

``right`` is the verdict of the LLM that ``judge`` names. Without a judge a run is unscored, unless no answer was
given, which fails in any case; ``valid`` (an answer was given) is RaD-Agent's own proxy. The same answer to the same
task is judged once in a run. Calls are answered as recorded, then by ``live``, then by ``simulate`` if they are named.

Failure classes count the whole trace of a run, abandoned branches too:

    hallucinated_tool  a function that does not exist was called         status 1
    tool_call_error    input that is no object, or that the API refused  2, 11
    unavailable        timeout, keys, subscriptions, limits, transport   5 to 10, 12
    decision_failure   not passed, and none of these

RaD-Agent ("Rational Decision-Making Agent with Internalized Utility Judgment", arXiv 2308.12519) names the classes;
its release has no script, so this rule is ours. ``not_recorded`` is ours too: a gap of the recorded data, no API's
failure. The incidence of a class is the share of runs that met it; its fix ratio is the share of these that passed in
spite of it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decisor.lab.benchmark import Case, Outcome, Score, compute_search_metrics, find_chosen_path
from decisor.lab.judges import JudgedAttempt, OwnLLM, PassJudge, PassResult, open_judge_run, solvable_pass_rate
from decisor.lab.toolbench.environment import (
    FINISH,
    UNAVAILABLE,
    ApiAnswers,
    By,
    LiveAnswers,
    RecordedAnswers,
    SimulatedAnswers,
    ToolServer,
    ToolTask,
    build_function_schema,
    describe_function,
    load_calls,
    load_tasks,
    status_of_error,
)
from decisor.system.secrets import Secret
from decisor.trace.events import SearchTree, TraceEntry, events_of, iterate_actions
from decisor.types import LLM, Decision, Environment, Question, Record, Usage

CLASSES: Mapping[str, frozenset[int]] = {
    "hallucinated_tool": frozenset({1}),
    "tool_call_error": frozenset({2, 11}),
    "unavailable": UNAVAILABLE,
}
DECISION, GAP, FIXED = "decision_failure", "not_recorded", "fixed:"
WHO: tuple[By, ...] = ("recorded", "live", "simulated")


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of one call: function, input, status, who answered, and the text that the LLM saw."""

    tool: str
    input: str
    status: int
    by: str
    response: str


def list_call_outcomes(events: Sequence[TraceEntry]) -> list[CallOutcome]:
    """Return the outcomes of the calls in time order. Actions without an observation are left out."""
    outcomes = []
    for action, result in iterate_actions(events):
        observation = result.observation
        record = observation.records[0] if observation.records else Record("", {})
        error, response = str(record.fields.get("error", "")), str(record.fields.get("response", ""))
        status = status_of_error(error)
        if action.tool == FINISH and not status:
            status = 3 if observation.answer else 4
        outcomes.append(CallOutcome(action.tool, action.input, status, record.source, f"{error} {response}".strip()))
    return outcomes


def find_met_classes(outcomes: Sequence[CallOutcome]) -> list[str]:
    """Return the failure classes that calls met, and the class of calls that were not recorded."""
    statuses = {one.status for one in outcomes}
    classes = [name for name, codes in CLASSES.items() if codes & statuses]
    return [*classes, GAP] if 13 in statuses else classes


def build_run_tags(outcomes: Sequence[CallOutcome], passed: bool | None) -> tuple[str, ...]:
    """Return the failure classes of a run and who answered.

    A class also has a ``fixed:`` tag if the run passed in spite of it.
    """
    classes = find_met_classes(outcomes)
    incidents = [name for name in classes if name in CLASSES]
    fixed = [f"{FIXED}{name}" for name in incidents] if passed else []
    # Only a run whose calls met nothing failed by its decision.
    decided = [DECISION] if passed is False and not incidents else []
    return (*classes, *decided, *fixed, *(f"by:{who}" for who in WHO if any(one.by == who for one in outcomes)))


@dataclass(frozen=True, slots=True)
class Incidence:
    """The incidence of a failure class over the judged runs."""

    runs: int
    """Number of judged runs."""
    met: int
    """Number of runs with the class."""
    fixed: int
    """Number of these that passed in spite of it."""

    @property
    def share(self) -> float:
        return self.met / self.runs if self.runs else 0.0

    @property
    def fix_ratio(self) -> float | None:
        """Share of the runs with the class that passed; None if no run had it."""
        return self.fixed / self.met if self.met else None


def compute_incidences(outcomes: Sequence[Outcome]) -> dict[str, Incidence]:
    """Return the incidence of each class over the outcomes that were judged right or wrong."""
    judged = [one for one in outcomes if one.state in ("right", "wrong")]
    count = Counter(tag for one in judged for tag in one.tags)
    return {name: Incidence(len(judged), count[name], count[f"{FIXED}{name}"]) for name in (*CLASSES, DECISION)}


RULES = (
    "Use the functions to do what the user asks for. What they return is all you know: make nothing up. When you know "
    "enough, or see that no function can help, call Finish with an answer that holds all that the user needs."
)


@dataclass(frozen=True)
class ToolBenchBench:
    """The benchmark ToolBench."""

    data: Path
    """Folder of the test instructions, and of ``recorded_calls.jsonl.gz`` if there is one."""
    split: str = "all"
    """all, or one such as G1_instruction."""
    judge: str = ""
    """LLM that judges, as MODEL@URL; '' for none."""
    simulate: str = ""
    """LLM that simulates APIs, as MODEL@URL; '' for none."""
    live: str = ""
    """Address of a server with ToolBench's interface; '' for none."""
    key_env: str = "TOOLBENCH_KEY"
    """Environment variable with the key of that server."""
    evaluations: int = 4
    """Number of judgements of one answer."""
    every_answer: bool = False
    """Judge every answer that a search reached; whether any of them passes is the metric ``found``, as the paper counts
    CoT@3."""
    name: str = "toolbench"

    @cached_property
    def tasks(self) -> dict[str, ToolTask]:
        return {task.id: task for task in load_tasks(self.data, self.split)}

    @cached_property
    def judging_llm(self) -> OwnLLM | None:
        return OwnLLM(self.judge) if self.judge else None

    @cached_property
    def simulating_llm(self) -> OwnLLM | None:
        return OwnLLM(self.simulate) if self.simulate else None

    @property
    def own_llms(self) -> tuple[OwnLLM, ...]:
        return tuple(one for one in (self.judging_llm, self.simulating_llm) if one is not None)

    @cached_property
    def recorded(self) -> RecordedAnswers:
        return RecordedAnswers(load_calls(self.data))

    @cached_property
    def answering(self) -> LiveAnswers | None:
        return LiveAnswers(self.live, Secret(os.environ.get(self.key_env, ""))) if self.live else None

    def answers(self) -> ApiAnswers:
        """Return the sources of answers for one run of a case, in which simulated answers are counted."""
        llm = self.simulating_llm
        simulated = None if llm is None else SimulatedAnswers(llm.for_case(), self.recorded)
        return ApiAnswers(self.recorded, self.answering, simulated)

    def cases(self) -> Sequence[Case]:
        return [
            Case(task.id, Question(task.query, RULES), group=task.split, facts={"relevant": task.relevant})
            for task in self.tasks.values()
        ]

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        yield ToolServer(self.tasks[case.id], self.answers())

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        outcomes = list_call_outcomes(events)
        # The judge reads the chosen sequence; failures of calls are counted over all that the search tried.
        steps = list_call_outcomes(find_chosen_path(events))
        attempt = self.attempt(case, decision.answer, steps)
        judge = self.judging_llm.for_case() if self.judging_llm is not None else None
        passed = await self.passed(attempt, judge)
        metrics = {"valid": float(attempt.has_answer), **compute_search_metrics(events)}
        if passed.right is not None:
            metrics["passed"] = float(passed.right)
            if self.every_answer:
                metrics["found"] = float(passed.right or await self.any_passed(case, decision, events, judge))
        if passed.statuses:
            metrics["solved"] = solvable_pass_rate(passed.statuses)
        incidents = (name for name in find_met_classes(outcomes) if name in CLASSES)
        counts = {
            "api_calls": sum(one.status not in (3, 4) for one in outcomes),
            "steps": len(steps),
            "judged": len(passed.votes),
        }
        return Score(
            passed.right,
            decision.answer,
            metrics,
            failure=next(incidents, DECISION) if passed.right is False else "",
            tags=build_run_tags(outcomes, passed.right),
            counts=counts,
            judging=Usage() if judge is None else judge.usage,
        )

    async def any_passed(self, case: Case, decision: Decision, events: Sequence[TraceEntry], judge: LLM | None) -> bool:
        """Return whether another answer than the decision's passes, judged by the answer alone."""
        nodes = [node for tree in events_of(events, SearchTree) for node in tree.nodes]
        for answer in dict.fromkeys(node.answer for node in nodes if node.ended == "answered"):
            # The decision has its verdict already.
            if answer != decision.answer and (await self.passed(self.attempt(case, answer, ()), judge)).right:
                return True
        return False

    def attempt(self, case: Case, answer: str, outcomes: Sequence[CallOutcome]) -> JudgedAttempt:
        functions = "\n\n".join(describe_function(build_function_schema(api)) for api in self.tasks[case.id].apis)
        steps = "\n".join(f"{one.tool} {one.input}\n-> {one.response}" for one in outcomes)
        return JudgedAttempt(case.question.text, functions, answer, steps, finished=bool(answer.strip()))

    async def passed(self, attempt: JudgedAttempt, judge: LLM | None) -> PassResult:
        if not attempt.has_answer:
            return PassResult(False)
        if judge is None:
            return PassResult(None)
        return await PassJudge(self.evaluations)(attempt, open_judge_run(judge))

    async def close(self) -> None:
        if self.answering is not None:
            await self.answering.close()
        for one in self.own_llms:
            await one.close()
