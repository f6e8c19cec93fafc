"""The runner of suites: techniques x benchmarks x LLMs x repeats, many cases at once, into a run store.

A case is claimed, run and finished in the store, so any number of processes may work on one, and everything that was
finished or paid for before a crash is there when the same suite is run again. Only ``run_case`` brings a decision and
its gold answer together; the technique gets the question and an environment. Before anything is paid for, each
technique is begun on the benchmark's first case with an LLM and an environment that never answer: a complaint before
it asks for anything (documents, a database, a decision model) holds for every case.

A trace shows marks of any run, whatever the benchmark:

    unread_reply   a reply could not be read and went back to the LLM
    unknown_tool   a reply or an action named a tool that does not exist
    failed_action  an action was refused or failed
    cut_off        an action was under way when a limit ended the run

A benchmark's own failure classes stand beside these. The share of runs with a mark that were right is its fix ratio.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import PurePath

from decisor.errors import Error, LMError, OutageError, SetupError
from decisor.lab.benchmark import Bench, Case, Outcome, Score, State
from decisor.lab.evaluation.outages import PATIENCE_SECONDS, EnvironmentWatch, LMWatch, Outages
from decisor.lab.evaluation.store import CaseTask, Claim, Key, RunStore, StoreError, Writer
from decisor.lab.judges import environment_lm_usage, find_own_lms, usage_by_role
from decisor.llms.concurrency import LimitedLM, close_lm, find_slots, limit_concurrency
from decisor.llms.endpoint import Endpoint
from decisor.llms.journal import Journal
from decisor.llms.retry import Retries
from decisor.parsing.prompting import USUAL, Asking, Calling
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run, Technique
from decisor.session.run_setup import NoLM, decide_by_technique
from decisor.system.secrets import redact
from decisor.system.serialization import json_text
from decisor.system.tasks import collect_cycles_rarely
from decisor.techniques.shared.judge import set_part_lms
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    AnswerSnapshot,
    LMCall,
    RunStart,
    RunUsage,
    Trace,
    TraceEntry,
    UnreadableReply,
    events_of,
)
from decisor.types import (
    LM,
    Action,
    Completion,
    Decision,
    Environment,
    Message,
    Observation,
    Question,
    Sampling,
    Usage,
    Value,
)


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
            case LMCall(usage=usage, since=since):
                since = min(entry.id - 1 if since is None else since, len(longest) - 1)
                until = max(until, longest[since] + usage.seconds)
        longest.append(until)
    return longest[-1]


BEGIN_SECONDS = 30.0
"""So long a technique may think before it asks for anything."""


class DoesNotApply(SetupError):
    """An error: a technique cannot work in the environment of a benchmark, or with this LLM."""


@dataclass(frozen=True)
class SilentLM:
    """An LLM that never answers. request: set when the LLM is asked."""

    request: asyncio.Event
    name: str = "none"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.request.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@dataclass(frozen=True)
class StillEnvironment:
    """An environment that describes its tools and never does an action. request: set when an action is asked for."""

    environment: Environment
    request: asyncio.Event

    def tools(self) -> tuple[str, ...]:
        return self.environment.tools()

    def describe(self) -> str:
        return self.environment.describe()

    async def step(self, action: Action) -> Observation:
        self.request.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    def fork(self) -> StillEnvironment:
        return StillEnvironment(self.environment.fork(), self.request)


async def find_misfits(bench: Bench, case: Case, techniques: Mapping[str, Technique]) -> dict[str, str]:
    """Return, by label, why techniques cannot work on ``bench``, tried on one case.

    Raises:
        SetupError: the benchmark itself lacks something.
    """
    complaints: dict[str, str] = {}
    for exact in (False, True):  # two environments at most: nothing is done in them
        some = {label: one for label, one in techniques.items() if is_exact_label(label) is exact}
        try:
            if some:
                async with bench_for_technique(bench, next(iter(some))).environment(case) as env:
                    complaints |= {
                        label: await find_setup_complaint(one, case.question, env) for label, one in some.items()
                    }
        except SetupError:
            raise
        except Exception:  # what fails here fails in the run, where it is kept with its reason
            continue
    return {label: why for label, why in complaints.items() if why}


async def find_setup_complaint(technique: Technique, question: Question, env: Environment) -> str:
    """Return the complaint of a technique before its first call or action, empty if it lacks nothing."""
    request = asyncio.Event()
    began = asyncio.ensure_future(technique(question, Run(SilentLM(request), StillEnvironment(env, request))))
    asking = asyncio.create_task(request.wait())
    try:
        await asyncio.wait({began, asking}, timeout=BEGIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        done = began.done()
        began.cancel()
        asking.cancel()
        ended, _ = await asyncio.gather(began, asking, return_exceptions=True)
    return str(ended) if done and isinstance(ended, SetupError) else ""


def bench_for_technique(bench: Bench, technique: str) -> Bench:
    """Return the benchmark with the tools that ``exact`` needs for ``exact``, else unchanged."""
    with_tools: Callable[[], Bench] | None = getattr(bench, "for_exact", None)
    return with_tools() if with_tools is not None and is_exact_label(technique) else bench


def is_exact_label(technique: str) -> bool:
    """Return whether a label is that of the technique ``exact``."""
    return technique.split()[0] == "exact"


NO_TOOL = ("There is no tool", "There is no function")


def find_trace_marks(entries: Sequence[TraceEntry]) -> tuple[str, ...]:
    """Return each mark of a trace once, in the order above."""
    names = set(_iterate_marks(entries))
    return tuple(name for name in ("unread_reply", "unknown_tool", "failed_action", "cut_off") if name in names)


def _iterate_marks(entries: Sequence[TraceEntry]) -> Iterator[str]:
    complete = {result.action for result in events_of(entries, ActionResult)}
    for entry in entries:
        match entry.event:
            case UnreadableReply(reason=reason):
                yield "unread_reply"
                if reason == "unknown_tool":
                    yield "unknown_tool"
            case ActionStart() if entry.id not in complete:
                yield "cut_off"
            case ActionResult(observation=observation) if observation.error:
                yield "unknown_tool" if observation.note.startswith(NO_TOOL) else "failed_action"


@dataclass(frozen=True)
class CaseAttempt:
    """Everything with which a case is run. benchmark, technique, model: labels. experts:

    LLMs of single parts of the technique. calling: the way in which replies are asked for.
    """

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


async def run_case(case: Case, attempt: CaseAttempt) -> tuple[Outcome, list[TraceEntry]]:
    """Run a case and return its outcome and trace.

    A limit, a failing endpoint, a lost database and a bug are outcomes, not exceptions.

    Raises:
        LMError: the endpoint will not answer any case (key, quota, model).
        DoesNotApply: the technique cannot work in this environment, or with this LM.
        SetupError: the benchmark lacks something.
    """
    trace, budget, began = Trace(), Budget(attempt.limits), time.monotonic()
    lm = attempt.watch(attempt.lm, case)
    experts = {part: attempt.watch(one, case) for part, one in attempt.experts.items()}
    loop = set_part_lms(attempt.loop, experts) if experts else attempt.loop
    trace.add(
        RunStart(
            case.question,
            technique=attempt.technique,
            lm=attempt.model,
            benchmark=attempt.benchmark,
            case=case.id,
            repeat=attempt.repeat,
        )
    )
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
                simulated = environment_lm_usage(env)
            score = await attempt.bench.score(case, decision, trace.entries)
            snapshots = await score_snapshots(case, attempt.bench, decision, score, trace.entries)
            score = await add_judged_metrics(attempt.bench, score, case, decision)
    except DoesNotApply:
        raise
    except SetupError as error:
        raise SetupError(f"{attempt.technique} on {attempt.benchmark}: {error}") from error
    except Exception as error:
        crash = describe_crash(error)
    for halt in (lm.halt, *(one.halt for one in experts.values()), *(one.halt for one in find_own_lms(attempt.bench))):
        if halt is not None:
            raise halt
    if lm.failure is not None and not decision.answer:
        crash = crash or str(lm.failure)
    crash = crash or "; ".join(lost.values())
    trace.add(RunUsage(budget.spent))
    path = critical_seconds(trace.entries)
    score = score or Score(None)
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
        counts={**score.counts, **count_unread_replies(trace.entries)},
        usage=budget.spent,
        seconds=round(max(time.monotonic() - began, path), 6),
        critical=round(path, 6),
        snapshots=snapshots.right,
        beside=usage_by_role(score.judging + snapshots.judging, simulated),
    )
    return outcome, trace.entries


def count_unread_replies(entries: Sequence[TraceEntry]) -> dict[str, int]:
    """Return the count of LLM replies that could not be read; empty if all could be read."""
    count = sum(1 for _ in events_of(entries, UnreadableReply))
    return {"unread_replies": count} if count else {}


async def decide_case(case: Case, technique: Technique, run: Run) -> Decision:
    """Return the technique's decision.

    Raise DoesNotApply, not SetupError, as the technique lacks something, not the benchmark.
    """
    try:
        return await decide_by_technique(technique, case.question, run)
    except SetupError as error:
        raise DoesNotApply(str(error)) from error


def state_of_outcome(decision: Decision, score: Score, crash: str) -> State:
    """Return the state of an outcome.

    An answer that the budget's reserve paid for is judged like any other; ``stopped`` tells of the limit.
    """
    if crash:
        return "crashed"
    if decision.stopped == "budget" and not decision.answer:
        return "over_budget"
    return "unscored" if score.right is None else "right" if score.right else "wrong"


async def add_judged_metrics(bench: Bench, score: Score, case: Case, decision: Decision) -> Score:
    """Add the metrics of an LLM judge to a score, if the benchmark has one for final answers."""
    judge: Callable[..., Awaitable[Score]] | None = getattr(bench, "judged", None)
    return score if judge is None else await judge(score, case, decision)


@dataclass
class SnapshotScores:
    """The scores of the answers during a run. right: calls -> whether the answer at that time is right. judging: usage
    of the judge.
    """

    right: dict[int, bool] = field(default_factory=dict)
    judging: Usage = field(default_factory=Usage)


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
    text = str(error) if isinstance(error, LMError) else f"{type(error).__name__}: {error}{where}"
    return redact(" ".join(text.split()))


LOOK_AGAIN = 0.5
STOP_SECONDS = 5.0
Hear = Callable[[Outcome, Sequence[TraceEntry]], None]


@dataclass(frozen=True)
class Suite:
    """The techniques, benchmarks and LLMs of a run; their names are labels. alone: techniques that ask no LLM, which
    are run once instead of once per LLM. limit_cases: number of cases of each benchmark, evenly from its groups.
    parts: by technique, the LLMs of its single parts (a critic, a judge). callings: by technique, the way in which
    replies are asked for. patience: seconds to wait for a lost server.
    """

    benches: Mapping[str, Bench]
    techniques: Mapping[str, Technique]
    models: Mapping[str, LM] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    repeats: int = 1
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)
    limit_cases: int | None = None
    cases_at_once: int = 8
    calls_at_once: int = 32
    parts: Mapping[str, Mapping[str, LM]] = field(default_factory=dict)
    callings: Mapping[str, Calling] = field(default_factory=dict)
    askings: Mapping[str, Asking] = field(default_factory=dict)
    patience: float = PATIENCE_SECONDS

    def about(self) -> Mapping[str, Value]:
        """Return the settings that must not change between runs on one store.

        Everything else is in the keys of the cases.
        """
        return {"seed": self.seed, **{f"limit_{name}": value for name, value in asdict(self.limits).items()}}


@dataclass
class Tally:
    """The progress of a run. usage: what this process paid for. left_out: by labels of benchmark and technique, why the
    technique cannot work there and is not run; its cases are not in ``total``.
    """

    total: int = 0
    states: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        return self.states.total()

    @property
    def accuracy(self) -> float | None:
        """Share of right outcomes among all that were judged or ran over their budget. None if there are none."""
        counted = sum(self.states[name] for name in ("right", "wrong", "over_budget"))
        return self.states["right"] / counted if counted else None


@dataclass
class Stop:
    """A request to stop a run.

    After the first one the run starts no more work and gives running cases ``grace`` seconds; after the second it ends.
    """

    grace: float = 10.0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        (self.at_once if self.stopping.is_set() else self.stopping).set()

    async def over(self) -> None:
        """Wait until nothing may continue."""
        await self.stopping.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.grace):
                await self.at_once.wait()


async def evaluate_suite(
    suite: Suite,
    store: RunStore,
    stop: Stop | None = None,
    hear: Callable[[Tally], None] = lambda tally: None,
    finished: Hear = lambda outcome, events: None,
    say: Callable[[str], None] = lambda line: None,
) -> Tally:
    """Run all unfinished cases and wait for other processes until all is done or ``stop`` says so.

    Raises:
        LMError: an endpoint will not answer any case (key, quota, model).
        OutageError: an endpoint or a database was away for longer than ``suite.patience``.
        StoreError: the store cannot be written. None of these loses what is finished or paid for.
        SetupError: a benchmark cannot be used, no technique can work on any of them, or the store was begun with other
            settings.
    """
    cases = {
        label: {case.id: case for case in sample_cases(bench.cases(), suite.limit_cases)}
        for label, bench in suite.benches.items()
    }
    planned_tasks = list(plan_case_tasks(suite, cases))
    writer = Writer(store)
    own = [one for bench in suite.benches.values() for one in find_own_lms(bench)]
    experts = {(label, part): lm for label, parts in suite.parts.items() for part, lm in parts.items()}
    all_lms = [*suite.models.values(), *(one.open() for one in own), *experts.values()]
    every = limit_concurrency(all_lms, suite.calls_at_once, await find_slots(all_lms))
    lms = dict(zip(suite.models, every, strict=False))
    journal = Journal(writer, suite.seed)
    for one, lm in zip(own, every[len(lms) :], strict=False):
        one.use(lm, journal)
    limited = dict(zip(experts, every[len(lms) + len(own) :], strict=True))
    work = Work(
        suite=suite,
        cases=cases,
        lms=lms,
        experts=limited,
        writer=writer,
        journal=journal,
        stop=stop or Stop(),
        hear=hear,
        finished=finished,
        outages=Outages(suite.patience, say, list_breakers(every)),
    )
    async with AsyncExitStack() as ends:  # each runs whatever the others raise, the last first
        ends.callback(asyncio.create_task(interrupt_silent_store(work.stop, store)).cancel)
        for lm in (*lms.values(), *limited.values()):
            ends.push_async_callback(close_lm, lm)
        for bench in suite.benches.values():
            ends.push_async_callback(bench.close)
        ends.push_async_callback(writer.close)
        ends.push_async_callback(release_claims, writer)
        await writer.do(lambda store: store.begin(suite.about()))
        finished_states = await writer.do(states_by_key)
        work.outages.proven |= {key[3] for key, state in finished_states.items() if state != "crashed"}
        if any(task.key not in finished_states for task in planned_tasks):
            work.tally.left_out = await find_unfit_techniques(suite, cases)
            planned_tasks = [task for task in planned_tasks if (task.key[0], task.key[2]) not in work.tally.left_out]
        await writer.do(lambda store: store.plan(planned_tasks))
        await writer.look()
        work.tally.total = len(planned_tasks)
        work.tally.states = Counter(finished_states[task.key] for task in planned_tasks if task.key in finished_states)
        hear(work.tally)
        try:
            with collect_cycles_rarely():
                await work.all()
        except Error as error:
            error.spent = journal.bought
            raise
    if not work.tally.total:
        for (benchmark, technique), why in work.tally.left_out.items():
            raise SetupError(f"{technique} on {benchmark}: {why}")
    return work.tally


async def find_unfit_techniques(suite: Suite, cases: Mapping[str, Mapping[str, Case]]) -> dict[tuple[str, str], str]:
    """Return, by benchmark and technique, why the technique cannot work on the benchmark.

    Raise SetupError if a benchmark lacks something.
    """
    reasons = {}
    for label, some in cases.items():
        for first in list(some.values())[:1]:
            for technique, why in (await find_misfits(suite.benches[label], first, suite.techniques)).items():
                reasons[label, technique] = why
    return reasons


def list_breakers(lms: Iterable[LimitedLM]) -> dict[str, Retries]:
    """Return the retry layers of endpoints, by the names of their LLMs."""
    endpoints = {one.name: getattr(one.lm, "endpoint", None) for one in lms}
    return {name: endpoint.retries for name, endpoint in endpoints.items() if isinstance(endpoint, Endpoint)}


async def interrupt_silent_store(stop: Stop, store: RunStore) -> None:
    """Interrupt a store that gives no sign after the run has stopped."""
    await stop.over()
    await asyncio.sleep(STOP_SECONDS)
    store.interrupt()


async def release_claims(writer: Writer) -> None:
    """Release the cases that this process claimed, so that others can take them."""
    with suppress(StoreError):
        await writer.do(lambda store: store.release())


@dataclass
class Work:
    """The work of one process on a suite."""

    suite: Suite
    cases: Mapping[str, Mapping[str, Case]]
    lms: Mapping[str, LM]
    experts: Mapping[tuple[str, str], LM]
    writer: Writer
    journal: Journal
    stop: Stop
    hear: Callable[[Tally], None]
    finished: Hear
    outages: Outages
    tally: Tally = field(default_factory=Tally)

    async def all(self) -> None:
        """Work until every case is finished, by this process or by others."""
        while True:
            await self.round()
            if self.stop.stopping.is_set() or not await self.writer.do(lambda store: store.left()):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await self.stop.stopping.wait()

    async def round(self) -> None:
        """Run workers until there is nothing to claim or the run is over. Raise the first failure."""
        workers = {asyncio.create_task(self.worker()) for _ in range(self.suite.cases_at_once)}
        over, watch = asyncio.create_task(self.stop.over()), asyncio.create_task(self.outages.watch())
        failures: list[BaseException] = []
        try:
            while workers and not over.done():
                running = {*workers, over} if watch.done() else {*workers, over, watch}
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                workers -= done
                for failure in [task.exception() for task in done - {over}]:
                    if failure is not None:
                        failures.append(failure)
                        self.stop.stopping.set()
                        if isinstance(failure, StoreError | OutageError):
                            self.stop.at_once.set()
        finally:
            for task in (*workers, over, watch):
                task.cancel()
            await asyncio.gather(*workers, over, watch, return_exceptions=True)
        if failures:
            raise failures[0]

    async def worker(self) -> None:
        while not self.stop.stopping.is_set():
            claim = await self.writer.claim()
            if claim is None:
                return
            try:
                outcome, events = await self.run(claim)
            except DoesNotApply as why:
                await self.leave_out(claim, str(why))
                continue
            if await self.writer.do(partial(finish_claimed_case, outcome=outcome, events=events, fence=claim.fence)):
                self.tally.states[outcome.state] += 1
                self.finished(outcome, events)
            self.tally.usage = self.journal.bought
            self.hear(self.tally)

    async def leave_out(self, claim: Claim, why: str) -> None:
        """Leave a technique out of a benchmark after the run has begun."""
        benchmark, _, technique, _, _ = claim.key
        many = await self.writer.do(lambda store: store.leave_out(benchmark, technique))
        self.tally.total -= many  # in a line of its own: others come here while this one waits
        self.tally.left_out[benchmark, technique] = why
        self.hear(self.tally)

    async def run(self, claim: Claim) -> tuple[Outcome, list[TraceEntry]]:
        benchmark, case, technique, model, repeat = claim.key
        bench = self.suite.benches[benchmark]
        lm = self.journal.lm(self.lms[model], repeat) if model in self.lms else NoLM()
        experts = {
            part: self.journal.lm(one, repeat) for (label, part), one in self.experts.items() if label == technique
        }
        attempt = CaseAttempt(
            benchmark=benchmark,
            bench=bench_for_technique(bench, technique),
            technique=technique,
            loop=self.suite.techniques[technique],
            model=model,
            lm=lm,
            limits=self.suite.limits,
            repeat=repeat,
            experts=experts,
            calling=self.suite.callings.get(technique, "text"),
            asking=self.suite.askings.get(technique, USUAL),
            outages=self.outages,
        )
        return await run_case(self.cases[benchmark][case], attempt)


def finish_claimed_case(store: RunStore, outcome: Outcome, events: Sequence[TraceEntry], fence: int) -> bool:
    return store.finish(outcome, events, fence)


def states_by_key(store: RunStore) -> dict[Key, State]:
    """Return the state of every finished case by its key."""
    return {outcome.key: outcome.state for outcome in store.each_outcome()}


def plan_case_tasks(suite: Suite, cases: Mapping[str, Mapping[str, Case]]) -> Iterator[CaseTask]:
    """Yield the tasks in the order of work.

    Tasks that share a case, and so an environment and replies, follow each other.
    """
    for repeat in range(suite.repeats):
        for benchmark, some in cases.items():
            for case in some.values():
                content = hashlib.blake2b(json_text([case.question, case.gold]).encode(), digest_size=8).hexdigest()
                for technique in suite.techniques:
                    for model in ("none",) if technique in suite.alone else suite.models:
                        yield CaseTask((benchmark, case.id, technique, model, repeat), content)


def sample_cases(cases: Sequence[Case], limit: int | None) -> Sequence[Case]:
    """Return at most ``limit`` cases: the first of each group, then the second of each and so on.

    They keep their own order.

    >>> from decisor.types import Question
    >>> some = [Case(f"{group}{n}", Question(""), group=group) for group in "ab" for n in range(3)]
    >>> [case.id for case in sample_cases(some, 4)]
    ['a0', 'a1', 'b0', 'b1']
    """
    if limit is None or limit >= len(cases):
        return cases
    so_far: Counter[str] = Counter()
    ranks = []
    for at, case in enumerate(cases):
        ranks.append((so_far[case.group], at))
        so_far[case.group] += 1
    return [cases[at] for at in sorted(at for _, at in sorted(ranks)[:limit])]
