"""One case through one technique: the decision, its score, and everything that is kept of both. Only here do a decision
and its gold answer meet; the technique gets the question and an environment."""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from decisor.benchmarks.protocol import Bench, Case, Score
from decisor.budget import Budget, Limits
from decisor.errors import LMError, SetupError
from decisor.evaluation.applying import DoesNotApply
from decisor.evaluation.marks import marks
from decisor.evaluation.timing import critical
from decisor.judging.auxiliary_lms import THIS_CASE, beside, own_lms, spent_by
from decisor.outcome import Outcome, State
from decisor.run import Run
from decisor.session.decide import NoLM, decide
from decisor.techniques.shared.part_lms import with_lms
from decisor.trace.events import Entry, RunStart, RunUsage, Trace
from decisor.trace.search_events import AnswerSnapshot
from decisor.types import LM, Completion, Decision, Message, Sampling, Technique, Usage


@dataclass(frozen=True)
class Attempt:
    """What a case is put to. ``benchmark``, ``technique`` and ``model`` are labels. ``experts``: the
    LMs that parts of the technique have of their own."""

    benchmark: str
    bench: Bench
    technique: str
    loop: Technique
    model: str = "none"
    lm: LM = field(default_factory=NoLM)
    limits: Limits = field(default_factory=Limits)
    repeat: int = 0
    experts: Mapping[str, LM] = field(default_factory=dict)


@dataclass
class Watched:
    """Remembers how the latest call failed, and any failure for good: a technique may go on without either."""

    held: LM
    failed: LMError | None = None
    halt: LMError | None = None

    @property
    def name(self) -> str:
        return self.held.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        try:
            reply = await self.held.complete(messages, sampling)
        except LMError as error:
            self.failed = error
            if error.permanent and error.kind not in THIS_CASE:
                self.halt = error
            raise
        self.failed = None
        return reply


async def run_case(case: Case, attempt: Attempt) -> tuple[Outcome, list[Entry]]:
    """The outcome and the trace. A limit, a failing endpoint and a bug are outcomes, not exceptions.

    Raises:
        LMError: the endpoint will not answer any case (key, quota, model).
        DoesNotApply: the technique cannot work in this environment, or with this LM.
        SetupError: the benchmark lacks something.
    """
    trace, budget, began = Trace(), Budget(attempt.limits), time.monotonic()
    lm = Watched(attempt.lm)
    experts = {part: Watched(one) for part, one in attempt.experts.items()}
    loop = with_lms(attempt.loop, experts) if experts else attempt.loop
    trace.add(RunStart(case.question, technique=attempt.technique, lm=attempt.model, benchmark=attempt.benchmark,
                       case=case.id, repeat=attempt.repeat))  # fmt: skip
    crash = ""
    score: Score | None = None
    held = Held()
    simulated = Usage()
    decision = Decision("", stopped="failed")
    try:
        async with attempt.bench.environment(case) as env:
            try:
                decision = await decided(case, loop, Run(lm, env, budget, trace))
            finally:
                simulated = spent_by(env)
            score = await attempt.bench.score(case, decision, trace.entries)
            held = await held_at(case, attempt.bench, decision, score, trace.entries)
            score = await judged(attempt.bench, score, case, decision)
    except DoesNotApply:
        raise
    except SetupError as error:
        raise SetupError(f"{attempt.technique} on {attempt.benchmark}: {error}") from error
    except Exception as error:
        crash = told(error)
    for halt in (lm.halt, *(one.halt for one in experts.values()), *(one.halt for one in own_lms(attempt.bench))):
        if halt is not None:
            raise halt
    if lm.failed is not None and not decision.answer:
        crash = crash or str(lm.failed)
    trace.add(RunUsage(budget.spent))
    path = critical(trace.entries)
    score = score or Score(None)
    return Outcome(
        attempt.benchmark, case.id, attempt.technique, attempt.model, attempt.repeat, state(decision, score, crash),
        case.group, score.answer, decision.answer, case.gold, decision.stopped,
        (*decision.reasons, crash) if crash else decision.reasons, score.failure,
        (*score.tags, *marks(trace.entries)), score.metrics, score.counts,
        budget.spent, round(max(time.monotonic() - began, path), 6), round(path, 6), held.right,
        beside(score.judging + held.judging, simulated),
    ), trace.entries  # fmt: skip


async def decided(case: Case, technique: Technique, run: Run) -> Decision:
    """The technique's decision. What it lacks is said of the technique, not of the benchmark."""
    try:
        return await decide(technique, case.question, run)
    except SetupError as error:
        raise DoesNotApply(str(error)) from error


def state(decision: Decision, score: Score, crash: str) -> State:
    """An answer that came from what the budget held back is judged like any other; ``stopped`` tells of the limit."""
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
class Held:
    """Calls -> whether the answer that was held then is right; ``judging``: what it cost to say so."""

    right: dict[int, bool] = field(default_factory=dict)
    judging: Usage = field(default_factory=Usage)


async def held_at(case: Case, bench: Bench, decision: Decision, score: Score, entries: Sequence[Entry]) -> Held:
    """Of the answers held on the way. The same answer is scored once; where no judge can say, it is left out."""
    held, known = Held(), {decision.answer: score.right}
    for at, entry in enumerate(entries, 1):
        if isinstance(entry.event, AnswerSnapshot):
            calls, answer = entry.event.calls, entry.event.answer
            if answer not in known:
                other = await bench.score(case, Decision(answer), entries[:at])
                known[answer], held.judging = other.right, held.judging + other.judging
            right = known[answer]
            if right is not None:
                held.right[calls] = right
    return held


def told(error: BaseException) -> str:
    """The error and where it was raised, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    named = str(error) if isinstance(error, LMError) else f"{type(error).__name__}: {error}{where}"
    return " ".join(named.split())
