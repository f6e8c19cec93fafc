"""One case through one technique: the decision, its score, and everything that is kept of both. Only here do a decision
and its gold answer meet; the technique gets the question and an environment."""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from decisor.asking import USUAL, Asking
from decisor.benchmarks.protocol import Bench, Case, Score
from decisor.budget import Budget, Limits
from decisor.calling import Calling
from decisor.errors import LMError, SetupError
from decisor.evaluation.applicability import DoesNotApply
from decisor.evaluation.critical_path import critical
from decisor.evaluation.outages import EnvironmentWatch, LMWatch, Outages
from decisor.evaluation.trace_marks import marks
from decisor.judging.auxiliary_lms import beside, own_lms, usage_of
from decisor.outcome import Outcome, State
from decisor.run import Run, Technique
from decisor.secrets import redact
from decisor.session.decide import NoLM, decide
from decisor.techniques.shared.part_lms import with_lms
from decisor.trace.events import Entry, RunStart, RunUsage, Trace, UnreadableReply, events_of
from decisor.trace.search_events import AnswerSnapshot
from decisor.types import LM, Decision, Usage


@dataclass(frozen=True)
class Attempt:
    """What a case is put to. ``benchmark``, ``technique`` and ``model`` are labels. ``experts``: the
    LMs that parts of the technique have of their own. ``calling``: in which way replies are asked for."""

    benchmark: str
    bench: Bench
    technique: str
    loop: Technique
    model: str = "none"
    lm: LM = field(default_factory=NoLM)
    limits: Limits = field(default_factory=Limits)
    repeat: int = 0
    experts: Mapping[str, LM] = field(default_factory=dict)
    calling: Calling = "text"
    asking: Asking = USUAL
    outages: Outages = field(default_factory=Outages)

    def watch(self, lm: LM, case: Case) -> LMWatch:
        return LMWatch(lm, lm.name, case.id, self.outages)


async def run_case(case: Case, attempt: Attempt) -> tuple[Outcome, list[Entry]]:
    """The outcome and the trace. A limit, a failing endpoint, a lost database and a bug are outcomes, not exceptions.

    Raises:
        LMError: the endpoint will not answer any case (key, quota, model).
        DoesNotApply: the technique cannot work in this environment, or with this LM.
        SetupError: the benchmark lacks something.
    """
    trace, budget, began = Trace(), Budget(attempt.limits), time.monotonic()
    lm = attempt.watch(attempt.lm, case)
    experts = {part: attempt.watch(one, case) for part, one in attempt.experts.items()}
    loop = with_lms(attempt.loop, experts) if experts else attempt.loop
    trace.add(RunStart(case.question, technique=attempt.technique, lm=attempt.model, benchmark=attempt.benchmark,
                       case=case.id, repeat=attempt.repeat))  # fmt: skip
    crash, lost = "", dict[str, str]()
    score: Score | None = None
    snapshots = SnapshotScores()
    simulated = Usage()
    decision = Decision("", stopped="failed")
    try:
        async with attempt.bench.environment(case) as env:
            try:
                watch = EnvironmentWatch(env, attempt.benchmark, attempt.outages, lost)
                decision = await decide_case(
                    case, loop, Run(lm, watch, budget, trace, calling=attempt.calling, asking=attempt.asking)
                )
            finally:
                simulated = usage_of(env)
            score = await attempt.bench.score(case, decision, trace.entries)
            snapshots = await score_snapshots(case, attempt.bench, decision, score, trace.entries)
            score = await judged(attempt.bench, score, case, decision)
    except DoesNotApply:
        raise
    except SetupError as error:
        raise SetupError(f"{attempt.technique} on {attempt.benchmark}: {error}") from error
    except Exception as error:
        crash = describe(error)
    for halt in (lm.halt, *(one.halt for one in experts.values()), *(one.halt for one in own_lms(attempt.bench))):
        if halt is not None:
            raise halt
    if lm.failure is not None and not decision.answer:
        crash = crash or str(lm.failure)
    crash = crash or "; ".join(lost.values())
    trace.add(RunUsage(budget.spent))
    path = critical(trace.entries)
    score = score or Score(None)
    outcome = Outcome(
        benchmark=attempt.benchmark,
        case=case.id,
        technique=attempt.technique,
        model=attempt.model,
        repeat=attempt.repeat,
        state=state(decision, score, crash),
        group=case.group,
        answer=score.answer,
        text=decision.answer,
        gold=case.gold,
        stopped=decision.stopped,
        reasons=(*decision.reasons, crash) if crash else decision.reasons,
        failure=score.failure,
        tags=(*score.tags, *marks(trace.entries)),
        metrics=score.metrics,
        counts={**score.counts, **unread_replies(trace.entries)},
        usage=budget.spent,
        seconds=round(max(time.monotonic() - began, path), 6),
        critical=round(path, 6),
        snapshots=snapshots.right,
        beside=beside(score.judging + snapshots.judging, simulated),
    )
    return outcome, trace.entries


def unread_replies(entries: Sequence[Entry]) -> dict[str, int]:
    """How many of the LM's replies could not be read, where any could not."""
    count = sum(1 for _ in events_of(entries, UnreadableReply))
    return {"unread_replies": count} if count else {}


async def decide_case(case: Case, technique: Technique, run: Run) -> Decision:
    """The technique's decision. What it lacks is said of the technique, not of the benchmark."""
    try:
        return await decide(technique, case.question, run)
    except SetupError as error:
        raise DoesNotApply(str(error)) from error


def state(decision: Decision, score: Score, crash: str) -> State:
    """An answer that came from what the budget kept back is judged like any other; ``stopped`` tells of the limit."""
    if crash:
        return "crashed"
    if decision.stopped == "budget" and not decision.answer:
        return "over_budget"
    return "unscored" if score.right is None else "right" if score.right else "wrong"


async def judged(bench: Bench, score: Score, case: Case, decision: Decision) -> Score:
    """The score with what an LM judge adds, where the benchmark has one for final answers."""
    judge: Callable[..., Awaitable[Score]] | None = getattr(bench, "judged", None)
    return score if judge is None else await judge(score, case, decision)


@dataclass
class SnapshotScores:
    """``right``: calls -> whether the answer at that time is right; ``judging``: what it cost to say so."""

    right: dict[int, bool] = field(default_factory=dict)
    judging: Usage = field(default_factory=Usage)


async def score_snapshots(
    case: Case, bench: Bench, decision: Decision, score: Score, entries: Sequence[Entry]
) -> SnapshotScores:
    """Whether each answer on the way was right. The same answer is scored once; what no judge can say is left out."""
    scores, verdicts = SnapshotScores(), {decision.answer: score.right}
    for at, entry in enumerate(entries, 1):
        if isinstance(entry.event, AnswerSnapshot):
            calls, answer = entry.event.calls, entry.event.answer
            if answer not in verdicts:
                other = await bench.score(case, Decision(answer), entries[:at])
                verdicts[answer], scores.judging = other.right, scores.judging + other.judging
            right = verdicts[answer]
            if right is not None:
                scores.right[calls] = right
    return scores


def describe(error: BaseException) -> str:
    """The error and where it was raised, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = str(error) if isinstance(error, LMError) else f"{type(error).__name__}: {error}{where}"
    return redact(" ".join(text.split()))
