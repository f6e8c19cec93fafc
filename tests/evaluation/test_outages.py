"""Databases and endpoints that go away in the middle of a run: nothing is booked that is not a technique's doing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from decisor.databases.sql import SqlTool
from decisor.errors import OutageError, ToolError
from decisor.lab.benchmark import Case, Score
from decisor.lab.evaluation.outages import Outages
from decisor.lab.evaluation.runner import Stop, Suite, Tally, evaluate_suite
from decisor.lab.evaluation.store import RunStore, open_store
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Limits
from decisor.runtime.run import Run
from decisor.sandbox.engine import Caps
from decisor.session.run_setup import decide_by_technique
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import TraceEntry
from decisor.types import Action, Decision, Environment, Question
from servers.sql_databases import postgres_database
from servers.tcp_proxy import Mode, Proxy, proxy

CAPS = Caps(seconds=20.0)
RIVERS = ["CREATE TABLE river(name text, km int)", "INSERT INTO river VALUES ('bel', 9), ('aune', 3)"]


@dataclass
class RiverBench:
    """``many`` questions that a query answers; the tool is opened once."""

    tool: SqlTool
    many: int = 12
    name: str = "rivers"
    before: Callable[[str], object] = lambda case: None

    def cases(self) -> Sequence[Case]:
        return [Case(f"c{n:02}", Question(f"Which river is longest? ({n})"), ("bel",)) for n in range(self.many)]

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        self.before(case.id)
        yield Toolbox([self.tool])

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        return Score(decision.answer in case.gold, decision.answer)

    async def close(self) -> None:
        """The tool is the test's."""


async def looks(question: Question, run: Run) -> Decision:
    """Asks, looks, and takes an error for an answer, as models do."""
    await run.ask(question.text, str)
    seen = await run.act(Action("sql", "SELECT name FROM river ORDER BY km DESC LIMIT 1"))
    return Decision(str(seen.records[0].fields["name"]) if seen.records else "none")


@dataclass
class Setting:
    tool: SqlTool
    between: Proxy
    store: RunStore
    lines: list[str] = field(default_factory=list)
    llm: ScriptedLLM = field(default_factory=lambda: ScriptedLLM(lambda messages: "look", name="m"))

    def bench(self, at: str = "", effect: Callable[[], object] = lambda: None, many: int = 12) -> RiverBench:
        """One where ``effect`` comes before the case ``at``."""
        return RiverBench(self.tool, many, before=lambda case: effect() if case == at else None)

    async def run(self, bench: RiverBench, **more: Any) -> Tally:
        more = {"cases_at_once": 2, **more}
        suite = Suite({"rivers": bench}, {"looks": looks}, {"m": self.llm}, **more)
        return await evaluate_suite(suite, self.store, Stop(), say=self.lines.append)

    def away(self) -> None:
        self.between.mode = Mode("refuse")

    def states(self) -> dict[str, int]:
        states = [one.state for one in self.store.outcomes()]
        return {name: states.count(name) for name in set(states)}


@pytest.fixture
async def setting(tmp_path: Path) -> AsyncIterator[Setting]:
    with postgres_database(RIVERS) as url:
        async with proxy(("127.0.0.1", 5432)) as between:
            parts = urlsplit(url)
            tool = await SqlTool.open(parts._replace(netloc=f"postgres@127.0.0.1:{between.port}").geturl(), caps=CAPS)
            store = open_store(tmp_path / "run.db")
            yield Setting(tool, between, store)
            store.close()
            await tool.close()


@pytest.mark.slow
async def test_a_database_that_goes_away_and_comes_back_costs_no_case(setting: Setting) -> None:
    async def back() -> None:
        await asyncio.sleep(2.5)
        setting.between.mode = Mode()

    returning: list[asyncio.Task[None]] = []

    def goes() -> None:
        setting.away()
        returning.append(asyncio.create_task(back()))

    tally = await setting.run(setting.bench("c03", goes), patience=60.0)
    assert returning and tally.states == {"right": 12} and setting.states() == {"right": 12}
    assert setting.lines[0].startswith("sql of rivers does not answer; the run waits for it, 60 s at most: PostgreSQL")
    assert setting.lines[1].startswith("sql of rivers answers again, after ")
    assert len(setting.llm.seen) == 12, "nothing was asked meanwhile"


@pytest.mark.slow
async def test_a_database_that_stays_away_stops_the_run_and_no_case_is_wrong(setting: Setting) -> None:
    with pytest.raises(OutageError, match=r"sql of rivers has not answered for \d+ s, so the run stops \(PostgreSQL"):
        await setting.run(setting.bench("c03", setting.away), patience=1.0)
    assert set(setting.states()) <= {"right"} and sum(setting.states().values()) < 12
    setting.between.mode = Mode()
    tally = await setting.run(setting.bench(), patience=1.0)
    assert tally.states == {"right": 12} and len(setting.llm.seen) == 12, "nothing is bought twice"


@pytest.mark.slow
async def test_a_limit_of_time_that_ends_the_wait_makes_it_a_crash_that_can_be_run_again(setting: Setting) -> None:
    limits = Limits(seconds=1.5)
    await setting.run(setting.bench("c03", setting.away, many=5), patience=60.0, limits=limits)
    assert set(setting.states()) == {"right", "crashed"}
    reasons = [one.reasons[-1] for one in setting.store.outcomes() if one.state == "crashed"]
    assert all("PostgreSQL cannot be reached" in why or "broke off" in why for why in reasons)
    setting.between.mode = Mode()
    assert setting.store.reopen(["crashed"]) == len(reasons)
    tally = await setting.run(setting.bench(many=5), patience=60.0, limits=limits)
    assert tally.states == {"right": 5}


async def test_a_statement_that_breaks_its_own_connection_is_no_outage(setting: Setting) -> None:
    setting.between.mode = Mode("reset", after=20_000, times=2)  # the statement fails twice, then the server answers
    with pytest.raises(ToolError) as failure:
        await setting.tool.call("SELECT repeat('y', 400) || x AS y FROM generate_series(1, 200) AS s(x)")
    assert not failure.value.outage
    setting.away()
    with pytest.raises(ToolError) as failure:
        await setting.tool.call("SELECT 1 AS x")
    assert failure.value.outage


async def test_a_question_stops_asking_the_llm_when_the_database_is_away(setting: Setting) -> None:
    async def asks_on(question: Question, run: Run) -> Decision:
        for _ in range(5):
            await looks(question, run)
        return Decision("none")

    run = Run(setting.llm, Toolbox([setting.tool]))
    setting.away()
    decision = await decide_by_technique(asks_on, Question("Which?"), run)
    assert decision.stopped == "failed" and decision.answer == "" and len(setting.llm.seen) == 1
    assert "The run stopped there; ask again when it is back." in decision.reasons[0]


def test_an_outage_that_nobody_meets_any_more_stops_nothing() -> None:
    outages = Outages(patience=100.0)
    outages.failed("m", "It is gone.")
    began = outages.away["m"].since
    outages.look(began + 31.0)
    assert not outages.away
    outages.failed("m", "It is gone.")
    with outages.trying("m"):
        outages.look(outages.away["m"].since + 99.0)
        with pytest.raises(OutageError, match="m has not answered for 100 s"):
            outages.look(outages.away["m"].since + 100.0)


def test_the_person_hears_of_an_outage_when_it_begins_each_minute_and_when_it_ends() -> None:
    lines: list[str] = []
    outages = Outages(patience=1000.0, say=lines.append)
    outages.failed("m", "Gone.")
    began = outages.away["m"].since
    with outages.trying("m"):
        for second in range(0, 150, 10):
            outages.look(began + second)
    outages.answered("m")
    assert [line.partition(";")[0].partition(":")[0].partition(", after")[0] for line in lines] == [
        "m does not answer",
        "m has not answered for 60 s",
        "m has not answered for 120 s",
        "m answers again",
    ]
