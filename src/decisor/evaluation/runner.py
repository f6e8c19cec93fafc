"""Runs a suite: techniques x benchmarks x models x repeats, many cases at once, into a run store.

A case is claimed, run and finished in the store, so any number of processes may work on one, and what was finished or
bought before a crash is there when the same suite is run again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial

from decisor.asking import USUAL, Asking
from decisor.benchmarks.protocol import Bench, Case
from decisor.budget import Limits
from decisor.calling import Calling
from decisor.cycles import seldom_collected
from decisor.encoding import json_text
from decisor.errors import Error, OutageError, SetupError
from decisor.evaluation.applicability import DoesNotApply, fitting, misfits
from decisor.evaluation.case_run import Attempt, run_case
from decisor.evaluation.outages import PATIENCE_SECONDS, Outages
from decisor.evaluation.store.protocol import Claim, Key, Store, StoreError, Task
from decisor.evaluation.store.writer import Writer
from decisor.judging.auxiliary_lms import own_lms
from decisor.lms.closing import close_lm
from decisor.lms.concurrency import LimitedLM, limit_concurrency, slots_of
from decisor.lms.endpoint import Endpoint
from decisor.lms.journal import Journal
from decisor.lms.retry import Retries
from decisor.outcome import Outcome, State
from decisor.run import Technique
from decisor.session.decide import NoLM
from decisor.trace.events import Entry
from decisor.types import LM, Usage, Value

LOOK_AGAIN = 0.5
STOP_SECONDS = 5.0
Hear = Callable[[Outcome, Sequence[Entry]], None]


@dataclass(frozen=True)
class Suite:
    """What is to be run; the names are labels. ``alone``: techniques that ask no LM, so they are run once, not once
    for each model. ``limit_cases``: so many of each benchmark, evenly from its groups. ``parts``: by technique, the LMs
    that parts of it have of their own (a critic, a judge); ``callings``: by technique, in which way replies are asked
    for. ``patience``: seconds to wait for what went away."""

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
        """What must not change between runs on one store; the rest is in the keys of the cases."""
        return {"seed": self.seed, **{f"limit_{name}": value for name, value in asdict(self.limits).items()}}


@dataclass
class Tally:
    """Where a run stands. ``usage``: what this process paid for. ``left_out``: why a technique that cannot work on a
    benchmark is not run there, by their labels; its cases are not in ``total``."""

    total: int = 0
    states: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        return self.states.total()

    @property
    def accuracy(self) -> float | None:
        """Right ones of those that were judged or ran over their budget."""
        counted = sum(self.states[name] for name in ("right", "wrong", "over_budget"))
        return self.states["right"] / counted if counted else None


@dataclass
class Stop:
    """Asked once, a run takes no more work and gives what is under way ``grace`` seconds; asked twice, it ends."""

    grace: float = 10.0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        (self.at_once if self.stopping.is_set() else self.stopping).set()

    async def over(self) -> None:
        """Returns when nothing may go on."""
        await self.stopping.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.grace):
                await self.at_once.wait()


async def evaluate(
    suite: Suite, store: Store, stop: Stop | None = None, hear: Callable[[Tally], None] = lambda tally: None,
    finished: Hear = lambda outcome, events: None, say: Callable[[str], None] = lambda line: None,
) -> Tally:  # fmt: skip
    """Run what is not finished yet, wait for what other processes do, and return when all is done or ``stop`` says so.

    Raises:
        LMError: an endpoint will not answer any case (key, quota, model).
        OutageError: an endpoint or a database was away for longer than ``suite.patience``.
        StoreError: the store cannot be written. None of these loses what is finished or paid for.
        SetupError: a benchmark cannot be used, no technique can work on any of them, or the store was begun with other
            settings.
    """
    cases = {label: {case.id: case for case in sample_cases(bench.cases(), suite.limit_cases)}
             for label, bench in suite.benches.items()}  # fmt: skip
    planned_tasks = list(tasks(suite, cases))
    writer = Writer(store)
    own = [one for bench in suite.benches.values() for one in own_lms(bench)]
    experts = {(label, part): lm for label, parts in suite.parts.items() for part, lm in parts.items()}
    all_lms = [*suite.models.values(), *(one.open() for one in own), *experts.values()]
    every = limit_concurrency(all_lms, suite.calls_at_once, await slots_of(all_lms))
    lms = dict(zip(suite.models, every, strict=False))
    journal = Journal(writer, suite.seed)
    for one, lm in zip(own, every[len(lms) :], strict=False):
        one.use(lm, journal)
    limited = dict(zip(experts, every[len(lms) + len(own) :], strict=True))
    work = Work(
        suite=suite, cases=cases, lms=lms, experts=limited, writer=writer, journal=journal, stop=stop or Stop(),
        hear=hear, finished=finished, outages=Outages(suite.patience, say, breakers_of(every)),
    )  # fmt: skip
    async with AsyncExitStack() as ends:  # each runs whatever the others raise, the last first
        ends.callback(asyncio.create_task(interrupt(work.stop, store)).cancel)
        for lm in (*lms.values(), *limited.values()):
            ends.push_async_callback(close_lm, lm)
        for bench in suite.benches.values():
            ends.push_async_callback(bench.close)
        ends.push_async_callback(writer.close)
        ends.push_async_callback(release, writer)
        await writer.do(lambda store: store.begin(suite.about()))
        finished_states = await writer.do(states)
        work.outages.proven |= {key[3] for key, state in finished_states.items() if state != "crashed"}
        if any(task.key not in finished_states for task in planned_tasks):
            work.tally.left_out = await unfit(suite, cases)
            planned_tasks = [task for task in planned_tasks if (task.key[0], task.key[2]) not in work.tally.left_out]
        await writer.do(lambda store: store.plan(planned_tasks))
        await writer.look()
        work.tally.total = len(planned_tasks)
        work.tally.states = Counter(finished_states[task.key] for task in planned_tasks if task.key in finished_states)
        hear(work.tally)
        try:
            with seldom_collected():
                await work.all()
        except Error as error:
            error.spent = journal.bought
            raise
    if not work.tally.total:
        for (benchmark, technique), why in work.tally.left_out.items():
            raise SetupError(f"{technique} on {benchmark}: {why}")
    return work.tally


async def unfit(suite: Suite, cases: Mapping[str, Mapping[str, Case]]) -> dict[tuple[str, str], str]:
    """Benchmark and technique -> why the one cannot work on the other. Raises SetupError where a benchmark lacks
    something."""
    reasons = {}
    for label, some in cases.items():
        for first in list(some.values())[:1]:
            for technique, why in (await misfits(suite.benches[label], first, suite.techniques)).items():
                reasons[label, technique] = why
    return reasons


def breakers_of(lms: Iterable[LimitedLM]) -> dict[str, Retries]:
    """The retry layers of endpoints, by the names of their LMs."""
    endpoints = {one.name: getattr(one.lm, "endpoint", None) for one in lms}
    return {name: endpoint.retries for name, endpoint in endpoints.items() if isinstance(endpoint, Endpoint)}


async def interrupt(stop: Stop, store: Store) -> None:
    """A store that gives no sign when nothing may go on is not waited for."""
    await stop.over()
    await asyncio.sleep(STOP_SECONDS)
    store.interrupt()


async def release(writer: Writer) -> None:
    """What this process claimed is free for others."""
    with suppress(StoreError):
        await writer.do(lambda store: store.release())


@dataclass
class Work:
    """One process's share of a suite."""

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
        """Until every case is finished, by us or by others."""
        while True:
            await self.round()
            if self.stop.stopping.is_set() or not await self.writer.do(lambda store: store.left()):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await self.stop.stopping.wait()

    async def round(self) -> None:
        """Workers until there is nothing to claim, or it is over. Raises the first failure."""
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
            if await self.writer.do(partial(finish, outcome=outcome, events=events, fence=claim.fence)):
                self.tally.states[outcome.state] += 1
                self.finished(outcome, events)
            self.tally.usage = self.journal.bought
            self.hear(self.tally)

    async def leave_out(self, claim: Claim, why: str) -> None:
        """What was noticed only on the way: the technique is not run on this benchmark any more."""
        benchmark, _, technique, _, _ = claim.key
        many = await self.writer.do(lambda store: store.leave_out(benchmark, technique))
        self.tally.total -= many  # in a line of its own: others come here while this one waits
        self.tally.left_out[benchmark, technique] = why
        self.hear(self.tally)

    async def run(self, claim: Claim) -> tuple[Outcome, list[Entry]]:
        benchmark, case, technique, model, repeat = claim.key
        bench = self.suite.benches[benchmark]
        lm = self.journal.lm(self.lms[model], repeat) if model in self.lms else NoLM()
        experts = {
            part: self.journal.lm(one, repeat) for (label, part), one in self.experts.items() if label == technique
        }
        attempt = Attempt(
            benchmark=benchmark,
            bench=fitting(bench, technique),
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


def finish(store: Store, outcome: Outcome, events: Sequence[Entry], fence: int) -> bool:
    return store.finish(outcome, events, fence)


def states(store: Store) -> dict[Key, State]:
    """Of every finished case."""
    return {outcome.key: outcome.state for outcome in store.each_outcome()}


def tasks(suite: Suite, cases: Mapping[str, Mapping[str, Case]]) -> Iterator[Task]:
    """In the order of work: what shares a case, and so an environment and replies, is side by side."""
    for repeat in range(suite.repeats):
        for benchmark, some in cases.items():
            for case in some.values():
                content = hashlib.blake2b(json_text([case.question, case.gold]).encode(), digest_size=8).hexdigest()
                for technique in suite.techniques:
                    for model in ("none",) if technique in suite.alone else suite.models:
                        yield Task((benchmark, case.id, technique, model, repeat), content)


def sample_cases(cases: Sequence[Case], limit: int | None) -> Sequence[Case]:
    """At most ``limit`` cases: the first of each group, then the second of each, and so on; in their own order.

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
