"""The runner of suites: techniques x benchmarks x LLMs x repeats, many cases at once, into a run store.

A case is claimed, run and finished in the store, so any number of processes may work on one, and everything that was
finished or paid for before a crash is there when the same suite is run again. Only ``run_case`` brings a decision and
its gold answer together; the technique gets the question and an environment. A technique that says what it lacks
(documents, a database, a decision model), which it does before it asks for anything, is left out of the benchmark.

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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial

from decisor.errors import Error, OutageError, SetupError
from decisor.lab.benchmark import Bench, Case, Outcome, State
from decisor.lab.evaluation.case_run import CaseAttempt, DoesNotApply, run_case
from decisor.lab.evaluation.outages import PATIENCE_SECONDS, Outages
from decisor.lab.evaluation.store import CaseTask, Claim, Key, RunStore, StoreJobs, StoreThread, Writer
from decisor.lab.evaluation.store_file import StoreError
from decisor.lab.judges import find_own_llms
from decisor.llms.endpoint import Endpoint
from decisor.llms.facts import find_slots
from decisor.llms.retry import Retries
from decisor.llms.shared import UNBOUNDED, Journal, SharedLLM, Spending, close_llm, limit_concurrency
from decisor.parsing.prompting import USUAL, Asking, Calling
from decisor.runtime.budget import Limits
from decisor.runtime.run import Technique
from decisor.session.run_setup import NoLLM
from decisor.system.serialization import json_text
from decisor.system.tasks import collect_cycles_rarely
from decisor.system.wording import format_count
from decisor.trace.events import TraceEntry
from decisor.types import LLM, Usage, Value


@dataclass(frozen=True)
class CaseSample:
    """The part of a benchmark's cases that is run."""

    limit: int | None = None
    """Number of cases, evenly from the groups. None means all."""
    share: float = 1.0
    """Share of each group, drawn by a hash of the ids: a tenth is part of every larger share."""
    ids: tuple[str, ...] = ()
    """Ids of cases; empty means any."""

    def draw(self, cases: Sequence[Case]) -> Sequence[Case]:
        """Return the part, in the order of the cases.

        >>> from decisor.types import Question
        >>> some = [Case(f"{group}{n}", Question(""), group=group) for group in "ab" for n in range(3)]
        >>> [case.id for case in CaseSample(4).draw(some)], [case.id for case in CaseSample(ids=("b1",)).draw(some)]
        (['a0', 'a1', 'b0', 'b1'], ['b1'])

        Raises:
            SetupError: an id is of no case.
        """
        if unknown := set(self.ids) - {case.id for case in cases}:
            raise SetupError(f"There is no case {min(unknown)!r} among {format_count(len(cases), 'case')}.")
        drawn = {case.id for case in cases if not self.ids or case.id in self.ids}
        if self.share < 1:
            drawn &= draw_share(cases, self.share)
        return limit_by_group([case for case in cases if case.id in drawn], self.limit)


LOOK_AGAIN = 0.5


@dataclass(frozen=True)
class Suite:
    """The techniques, benchmarks and LLMs of a run; their names are labels."""

    benches: Mapping[str, Bench]
    techniques: Mapping[str, Technique]
    models: Mapping[str, LLM] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    """Techniques that ask no LLM, which are run once instead of once per LLM."""
    repeats: int = 1
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)
    sample: CaseSample = CaseSample()
    """Which cases of each benchmark are run."""
    most: Spending = UNBOUNDED
    """Upper bounds for what one process buys."""
    cases_at_once: int = 8
    calls_at_once: int = 32
    parts: Mapping[str, Mapping[str, LLM]] = field(default_factory=dict)
    """By technique, the LLMs of its single parts (a critic, a judge)."""
    callings: Mapping[str, Calling] = field(default_factory=dict)
    """By technique, the way in which replies are asked for."""
    askings: Mapping[str, Asking] = field(default_factory=dict)
    patience: float = PATIENCE_SECONDS
    """Seconds to wait for a lost server."""

    def about(self) -> Mapping[str, Value]:
        """Return the settings that must not change between runs on one store.

        Everything else is in the keys of the cases.
        """
        return {"seed": self.seed, **{f"limit_{name}": value for name, value in asdict(self.limits).items()}}


RowKey = tuple[str, str, str]
"""Labels of a benchmark, a technique and an LLM."""


@dataclass
class RowTally:
    """The progress of one technique with one LLM on one benchmark."""

    total: int = 0
    """Number of planned cases."""
    states: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    """Usage of its finished cases, whoever paid for it."""

    @property
    def done(self) -> int:
        return self.states.total()

    @property
    def accuracy(self) -> float | None:
        """Share of right outcomes among all that were judged or ran over their budget. None if there are none."""
        counted = sum(self.states[name] for name in ("right", "wrong", "over_budget"))
        return self.states["right"] / counted if counted else None

    def add(self, state: State, usage: Usage) -> None:
        self.states[state] += 1
        self.usage += usage


@dataclass
class Tally:
    """The progress of a run."""

    rows: defaultdict[RowKey, RowTally] = field(default_factory=lambda: defaultdict(RowTally))
    """Without those of ``left_out``."""
    usage: Usage = field(default_factory=Usage)
    """Usage that this process paid for."""
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)
    """By labels of benchmark and technique, why the technique cannot work there and is not run."""

    @property
    def whole(self) -> RowTally:
        """The sum of all rows."""
        rows = self.rows.values()
        states = sum((row.states for row in rows), Counter[str]())
        return RowTally(self.total, states, sum((row.usage for row in rows), Usage()))

    @property
    def total(self) -> int:
        return sum(row.total for row in self.rows.values())

    @property
    def done(self) -> int:
        return sum(row.done for row in self.rows.values())

    @property
    def states(self) -> Counter[str]:
        return self.whole.states

    @property
    def accuracy(self) -> float | None:
        return self.whole.accuracy


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
    store: RunStore | StoreJobs,
    stop: Stop | None = None,
    hear: Callable[[Tally], None] = lambda tally: None,
    say: Callable[[str], None] = lambda line: None,
) -> Tally:
    """Run all unfinished cases and wait for other processes until all is done or ``stop`` says so.

    Raises:
        LLMError: an endpoint will not answer any case (key, quota, model).
        OutageError: an endpoint or a database was away for longer than ``suite.patience``.
        StoreError: the store cannot be written. None of these loses finished or paid work.
        SetupError: a benchmark cannot be used, no technique can work on any of them, or the store was begun with other
            settings.
    """
    cases = {
        label: {case.id: case for case in suite.sample.draw(bench.cases())} for label, bench in suite.benches.items()
    }
    # Plan the cases, and gather all LLMs: those of one endpoint share a limit of calls and its retries.
    planned_tasks = list(plan_case_tasks(suite, cases))
    writer = Writer(StoreThread(store) if isinstance(store, RunStore) else store)
    own = [one for bench in suite.benches.values() for one in find_own_llms(bench)]
    experts = {(label, part): llm for label, parts in suite.parts.items() for part, llm in parts.items()}
    all_llms = [*suite.models.values(), *(one.open() for one in own), *experts.values()]
    every = limit_concurrency(all_llms, suite.calls_at_once, await find_slots(all_llms))
    llms = dict(zip(suite.models, every, strict=False))
    journal = Journal(writer, suite.seed, suite.most)
    # limit_concurrency keeps the order: models, the benchmarks' own, parts. Strict is off, as each zip takes its share.
    for one, llm in zip(own, every[len(llms) :], strict=False):
        one.use(llm, journal)
    limited = dict(zip(experts, every[len(llms) + len(own) :], strict=True))
    work = Work(
        suite=suite,
        cases=cases,
        llms=llms,
        experts=limited,
        writer=writer,
        journal=journal,
        stop=stop or Stop(),
        hear=hear,
        outages=Outages(suite.patience, say, list_breakers(every)),
    )
    async with AsyncExitStack() as ends:  # each runs whatever the others raise, the last first
        for llm in (*llms.values(), *limited.values()):
            ends.push_async_callback(close_llm, llm)
        for bench in suite.benches.values():
            ends.push_async_callback(bench.close)
        ends.push_async_callback(writer.close)
        ends.push_async_callback(release_claims, writer)
        # Open the store, and find out what is left to do.
        await writer.do(partial(RunStore.begin, about=suite.about()))
        finished = await writer.do(lambda store: {one.key: (one.state, one.usage) for one in store.each_outcome()})
        # An endpoint that has answered here gets more patience before its refusals count as its own fault.
        work.outages.proven |= {key[3] for key, (state, _) in finished.items() if state != "crashed"}
        await writer.do(partial(RunStore.plan, tasks=planned_tasks))
        # Read the keys of replies once, so that a new request needs no look into the store.
        await writer.look()
        for task in planned_tasks:
            row = work.tally.rows[row_key(task.key)]
            row.total += 1
            if task.key in finished:
                row.add(*finished[task.key])
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


def list_breakers(llms: Iterable[SharedLLM]) -> dict[str, Retries]:
    """Return the retry layers of endpoints, by the names of their LLMs."""
    endpoints = {one.name: getattr(one.llm, "endpoint", None) for one in llms}
    return {name: endpoint.retries for name, endpoint in endpoints.items() if isinstance(endpoint, Endpoint)}


async def release_claims(writer: Writer) -> None:
    """Release the cases that this process claimed, so that others can take them."""
    with suppress(StoreError):
        await writer.do(RunStore.release)


@dataclass
class Work:
    """The work of one process on a suite."""

    suite: Suite
    cases: Mapping[str, Mapping[str, Case]]
    llms: Mapping[str, LLM]
    experts: Mapping[tuple[str, str], LLM]
    writer: Writer
    journal: Journal
    stop: Stop
    hear: Callable[[Tally], None]
    outages: Outages
    tally: Tally = field(default_factory=Tally)

    async def all(self) -> None:
        """Work until every case is finished, by this process or by others."""
        while True:
            await self.round()
            if self.stop.stopping.is_set() or not await self.writer.do(RunStore.left):
                return
            with suppress(TimeoutError):
                # Others may hold the last cases: wait, as their process may die and leave them.
                async with asyncio.timeout(LOOK_AGAIN):
                    await self.stop.stopping.wait()

    async def round(self) -> None:
        """Run workers until there is nothing to claim or the run is over. Raise the first failure."""
        workers = {asyncio.create_task(self.worker()) for _ in range(self.suite.cases_at_once)}
        # The workers, the end of the run and the watch over outages run side by side; the first to end decides.
        over, watch = asyncio.create_task(self.stop.over()), asyncio.create_task(self.outages.watch())
        failures: list[BaseException] = []
        try:
            while workers and not over.done():
                # A task that is done would end every wait at once.
                running = {*workers, over} if watch.done() else {*workers, over, watch}
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                workers -= done
                for failure in [task.exception() for task in done - {over}]:
                    if failure is not None:
                        failures.append(failure)
                        self.stop.stopping.set()
                        # Running cases could store or reach nothing in their time of grace.
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
            if await self.writer.do(partial(RunStore.finish, outcome=outcome, entries=events, fence=claim.fence)):
                self.tally.rows[row_key(claim.key)].add(outcome.state, outcome.usage)
            self.tally.usage = self.journal.bought
            self.hear(self.tally)

    async def leave_out(self, claim: Claim, why: str) -> None:
        """Leave a technique out of a benchmark."""
        benchmark, _, technique, _, _ = claim.key
        await self.writer.do(partial(RunStore.leave_out, benchmark=benchmark, technique=technique))
        for row in [row for key, row in self.tally.rows.items() if key[:2] == (benchmark, technique)]:
            row.total = row.done
        self.tally.left_out[benchmark, technique] = why
        self.hear(self.tally)

    async def run(self, claim: Claim) -> tuple[Outcome, list[TraceEntry]]:
        benchmark, case, technique, model, repeat = claim.key
        llm = self.journal.llm(self.llms[model], repeat) if model in self.llms else NoLLM()
        experts = {
            part: self.journal.llm(one, repeat) for (label, part), one in self.experts.items() if label == technique
        }
        attempt = CaseAttempt(
            benchmark=benchmark,
            bench=bench_for_technique(self.suite.benches[benchmark], technique),
            technique=technique,
            loop=self.suite.techniques[technique],
            model=model,
            llm=llm,
            limits=self.suite.limits,
            repeat=repeat,
            experts=experts,
            calling=self.suite.callings.get(technique, "text"),
            asking=self.suite.askings.get(technique, USUAL),
            outages=self.outages,
        )
        return await run_case(self.cases[benchmark][case], attempt)


def bench_for_technique(bench: Bench, technique: str) -> Bench:
    """Return the benchmark with the tools that ``exact`` needs for ``exact``, else unchanged."""
    with_tools: Callable[[], Bench] | None = getattr(bench, "for_exact", None)
    return with_tools() if with_tools is not None and technique.split()[0] == "exact" else bench


def row_key(key: Key) -> RowKey:
    """Return the row of the report that a case counts in."""
    benchmark, _, technique, model, _ = key
    return benchmark, technique, model


def plan_case_tasks(suite: Suite, cases: Mapping[str, Mapping[str, Case]]) -> Iterator[CaseTask]:
    """Yield the tasks in the order of work.

    Tasks that share a case, and so an environment and replies, follow each other.
    """
    # Repeats are outermost: a run that is cut short has each case once before any twice.
    for repeat in range(suite.repeats):
        for benchmark, some in cases.items():
            for case in some.values():
                # A hash notices data that changed between two runs on one store.
                content = hashlib.blake2b(
                    json_text([case.question, case.gold, *case.expects]).encode(), digest_size=8
                ).hexdigest()
                for technique in suite.techniques:
                    for model in ("none",) if technique in suite.alone else suite.models:
                        yield CaseTask((benchmark, case.id, technique, model, repeat), content)


def draw_share(cases: Sequence[Case], share: float) -> set[str]:
    """Return the ids of a share of each group, one case at least."""
    groups: dict[str, list[str]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case.id)
    drawn: set[str] = set()
    for ids in groups.values():
        # The same ids in each form of a benchmark, whatever its order.
        order = sorted(ids, key=lambda id: hashlib.blake2b(id.encode()).digest())
        drawn.update(order[: max(1, round(share * len(ids)))])
    return drawn


def limit_by_group(cases: Sequence[Case], limit: int | None) -> Sequence[Case]:
    """Return at most ``limit`` cases, in order: the first of each group, then the second of each and so on."""
    if limit is None or limit >= len(cases):
        return cases
    so_far: Counter[str] = Counter()
    ranks = []
    for at, case in enumerate(cases):
        ranks.append((so_far[case.group], at))
        so_far[case.group] += 1
    return [cases[at] for at in sorted(at for _, at in sorted(ranks)[:limit])]
