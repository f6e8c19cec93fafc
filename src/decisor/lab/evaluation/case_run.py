"""Run one case of a suite: its trace, the marks in it, and its longest chain of steps."""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from decisor.errors import LLMError, SetupError
from decisor.lab.benchmark import Bench, Case, DecidingEnvironment, Outcome, Score, State
from decisor.lab.evaluation.outages import EnvironmentWatch, LLMWatch, Outages
from decisor.lab.judges import find_own_llms
from decisor.parsing.prompting import USUAL, Asking, Calling
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run, Technique
from decisor.session.run_setup import NoLLM, decide_by_technique
from decisor.system.secrets import redact
from decisor.techniques.shared.judge import set_part_llms
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    AnswerSnapshot,
    LLMCall,
    RunStart,
    RunUsage,
    Trace,
    TraceEntry,
    UnreadableReply,
    events_of,
)
from decisor.types import LLM, Decision, Usage


class DoesNotApply(SetupError):
    """An error: a technique cannot work in the environment of a benchmark, or with this LLM."""


def critical_seconds(entries: Sequence[TraceEntry]) -> float:
    """Return the seconds along the longest chain of dependent calls and actions.

    A call may have waited for everything that had ended when it began; that is read from the order of entries, not
    from the clock, so a replayed run gives the same.
    """
    longest = [0.0]  # until the entry of each id
    began: dict[int, float] = {}
    for entry in entries:
        until = longest[-1]
        match entry.event:
            case ActionStart():
                began[entry.id] = until
            case ActionResult(action=action, seconds=seconds):
                until = max(until, began.get(action, 0.0) + seconds)
            case LLMCall(usage=usage, since=since):
                # A call without ``since`` may have waited for everything before it; a damaged trace may name an entry
                # that is not there yet.
                since = min(entry.id - 1 if since is None else since, len(longest) - 1)
                until = max(until, longest[since] + usage.seconds)
        longest.append(until)
    return longest[-1]


NO_TOOL = ("There is no tool", "There is no function")


def find_trace_marks(entries: Sequence[TraceEntry]) -> tuple[str, ...]:
    """Return each mark of a trace once, in a fixed order."""
    # An action without a result was under way when the run ended.
    complete = {result.action for result in events_of(entries, ActionResult)}
    marks = set()
    for entry in entries:
        match entry.event:
            case UnreadableReply(reason=reason):
                marks |= {"unread_reply", "unknown_tool"} if reason == "unknown_tool" else {"unread_reply"}
            case ActionStart() if entry.id not in complete:
                marks.add("cut_off")
            case ActionResult(observation=observation) if observation.error:
                marks.add("unknown_tool" if observation.note.startswith(NO_TOOL) else "failed_action")
    return tuple(name for name in ("unread_reply", "unknown_tool", "failed_action", "cut_off") if name in marks)


@dataclass(frozen=True)
class CaseAttempt:
    """The technique, benchmark and LLMs with which a case is run."""

    benchmark: str
    """Label of the benchmark in the store."""
    bench: Bench
    technique: str
    """Label of the technique, with settings."""
    loop: Technique
    model: str = "none"
    """Label of the LLM."""
    llm: LLM = field(default_factory=NoLLM)
    limits: Limits = field(default_factory=Limits)
    repeat: int = 0
    experts: Mapping[str, LLM] = field(default_factory=dict)
    """LLMs of single parts of the technique."""
    calling: Calling = "text"
    """The way in which replies are asked for."""
    asking: Asking = USUAL
    outages: Outages = field(default_factory=Outages)

    def watch(self, llm: LLM, case: Case) -> LLMWatch:
        return LLMWatch(llm.name, case.id, self.outages)


async def run_case(case: Case, attempt: CaseAttempt) -> tuple[Outcome, list[TraceEntry]]:
    """Run a case and return its outcome and trace.

    A limit, a failing endpoint, a lost database and a bug are outcomes, not exceptions.

    Raises:
        LLMError: the endpoint will not answer any case (key, quota, model).
        DoesNotApply: the technique cannot work in this environment, or with this LLM.
        SetupError: the benchmark lacks something.
    """
    # Prepare: the LLMs report their failures, and the trace begins with the question.
    trace, budget, began = Trace(), Budget(attempt.limits), time.monotonic()
    watch = attempt.watch(attempt.llm, case)
    part_watches = {part: attempt.watch(llm, case) for part, llm in attempt.experts.items()}
    experts = {part: part_watches[part].attach(llm) for part, llm in attempt.experts.items()}
    loop = set_part_llms(attempt.loop, experts) if experts else attempt.loop
    trace.add(
        RunStart(
            case.question,
            technique=attempt.technique,
            llm=attempt.model,
            benchmark=attempt.benchmark,
            case=case.id,
            repeat=attempt.repeat,
        )
    )
    # Run and score. The benchmark's gold answer meets the decision only in here.
    crash, lost = "", dict[str, str]()
    score: Score | None = None
    snapshots = SnapshotScores()
    simulated = Usage()
    decision = Decision("", stopped="failed")
    try:
        async with attempt.bench.environment(case) as env:
            try:
                watched = EnvironmentWatch(env, attempt.benchmark, attempt.outages, lost)
                run = Run(
                    watch.attach(attempt.llm), watched, budget, trace, calling=attempt.calling, asking=attempt.asking
                )
                try:
                    decide = env.decide if isinstance(env, DecidingEnvironment) else decide_by_technique
                    decision = await decide(loop, case.question, run)
                except SetupError as error:  # the technique lacks something, not the benchmark
                    raise DoesNotApply(str(error)) from error
            finally:
                # Read before the environment closes, and even if the technique failed: its simulator was paid for.
                simulated = getattr(env, "llm_usage", Usage())
            score = await attempt.bench.score(case, decision, trace.entries)
            snapshots = await score_snapshots(case, attempt.bench, decision, score, trace.entries)
            judge: Callable[..., Awaitable[Score]] | None = getattr(attempt.bench, "judged", None)
            if judge is not None:
                score = await judge(score, case, decision)
    except DoesNotApply:
        raise
    except SetupError as error:
        raise SetupError(f"{attempt.technique} on {attempt.benchmark}: {error}") from error
    except Exception as error:
        crash = describe_crash(error)
    # An error that holds for every case ends the run. Techniques may have caught it, so it is looked for here.
    for halt in (
        watch.halt,
        *(part_watch.halt for part_watch in part_watches.values()),
        *(own.halt for own in find_own_llms(attempt.bench)),
    ):
        if halt is not None:
            raise halt
    # A technique may go on after a failed call; without an answer the failure, not the technique, is what went wrong.
    if watch.failure is not None and not decision.answer:
        crash = crash or str(watch.failure)
    crash = crash or "; ".join(lost.values())
    # Put the outcome together.
    trace.add(RunUsage(budget.spent))
    path = critical_seconds(trace.entries)
    score = score or Score(None)
    unread = sum(1 for _ in events_of(trace.entries, UnreadableReply))
    beside = {"judge": score.judging + snapshots.judging, "simulator": simulated}
    outcome = Outcome(
        benchmark=attempt.benchmark,
        case=case.id,
        technique=attempt.technique,
        model=attempt.model,
        repeat=attempt.repeat,
        state=state_of_outcome(decision, score, crash),
        group=case.group,
        answer=score.answer,
        text=decision.answer,
        gold=case.gold,
        stopped=decision.stopped,
        reasons=(*decision.reasons, crash) if crash else decision.reasons,
        failure=score.failure,
        tags=(*score.tags, *find_trace_marks(trace.entries)),
        metrics=score.metrics,
        counts={**score.counts, **({"unread_replies": unread} if unread else {})},
        usage=budget.spent,
        # A replayed run takes no time; its longest chain has the seconds of the first one.
        seconds=round(max(time.monotonic() - began, path), 6),
        critical=round(path, 6),
        snapshots=snapshots.right,
        beside={name: usage for name, usage in beside.items() if usage.calls or usage.tokens},
    )
    return outcome, trace.entries


def state_of_outcome(decision: Decision, score: Score, crash: str) -> State:
    """Return the state of an outcome.

    An answer that the budget's reserve paid for is judged like any other; ``stopped`` tells of the limit.
    """
    if crash:
        return "crashed"
    if decision.stopped == "budget" and not decision.answer:
        return "over_budget"
    return "unscored" if score.right is None else "right" if score.right else "wrong"


@dataclass
class SnapshotScores:
    """The scores of the answers during a run."""

    right: dict[int, bool] = field(default_factory=dict)
    """Number of calls -> whether the answer at that time is right."""
    judging: Usage = field(default_factory=Usage)
    """Usage of the judge."""


async def score_snapshots(
    case: Case, bench: Bench, decision: Decision, score: Score, entries: Sequence[TraceEntry]
) -> SnapshotScores:
    """Score each answer that a run had on the way.

    The same answer is scored once; answers that no judge can score are left out.
    """
    scores, verdicts = SnapshotScores(), {decision.answer: score.right}
    for at, entry in enumerate(entries, 1):
        if isinstance(entry.event, AnswerSnapshot):
            calls, answer = entry.event.calls, entry.event.answer
            # Judging may cost a call, and most snapshots repeat the answer before.
            if answer not in verdicts:
                other = await bench.score(case, Decision(answer), entries[:at])
                verdicts[answer], scores.judging = other.right, scores.judging + other.judging
            right = verdicts[answer]
            if right is not None:
                scores.right[calls] = right
    return scores


def describe_crash(error: BaseException) -> str:
    """Return the error and the place where it was raised, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = str(error) if isinstance(error, LLMError) else f"{type(error).__name__}: {error}{where}"
    return redact(" ".join(text.split()))
