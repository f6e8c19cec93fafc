"""The core: budget, trace, run, each."""

import asyncio
import signal
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from decisor.errors import BudgetExceeded, ParseError, SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.system.tasks import LoopThread, map_concurrently
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import LLMCall, Span, Trace
from decisor.trace.file import TraceFile, read_trace
from decisor.types import Action, Completion, Message, Observation, Record, Sampling, Usage


class Echo:
    name = "echo"

    def describe(self) -> str:
        return "Says it back."

    async def call(self, text: str) -> Observation:
        if text == "bad":
            raise ToolError("no such thing")
        return Observation((Record("r1", text=text),))

    async def close(self) -> None: ...


def number(reply: str) -> int:
    try:
        return int(reply)
    except ValueError as error:
        raise ParseError("Answer with a number.") from error


def run_of(replies: list[str], limits: Limits = Limits()) -> tuple[Run, ScriptedLLM]:
    llm = ScriptedLLM(replies)
    return Run(llm, Toolbox([Echo()]), Budget(limits)), llm


async def test_a_reply_that_cannot_be_read_goes_back_with_the_complaint() -> None:
    run, llm = run_of(["four", "4"])
    assert await run.ask("2 + 2?", number) == 4
    assert "Answer with a number." in llm.seen[1]
    assert run.budget.spent.calls == 2


async def test_a_reply_that_never_can_be_read_is_a_parse_error() -> None:
    run, _ = run_of(["a", "b", "c"])
    with pytest.raises(ParseError):
        await run.ask("2 + 2?", number)


async def test_the_last_call_is_kept_back_for_the_answer() -> None:
    run, _ = run_of(["1", "2", "3"], Limits(calls=2))
    await run.ask("first", number)
    with pytest.raises(BudgetExceeded):
        await run.ask("second", number)
    assert await run.ask("last", number, final=True) == 2
    with pytest.raises(BudgetExceeded):
        await run.ask("one too many", number, final=True)


async def test_a_limit_is_exact_under_concurrency() -> None:
    class Slow:
        name = "slow"

        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
            await asyncio.sleep(0.001)
            return Completion(("1",))

    parent = Budget(Limits(calls=20), keep_calls=0)
    run = Run(Slow(), Toolbox([]), parent.child(Limits(calls=1000)))

    async def one(_: int) -> bool:
        try:
            await run.ask("x", number)
        except BudgetExceeded:
            return False
        return True

    assert sum(await map_concurrently(one, range(50), at_once=50)) == 20
    assert parent.spent.calls == 20 and parent.pending_calls == 0


def test_every_part_of_what_is_spent_is_added_up() -> None:
    names = [one.name for one in fields(Usage)]
    one = Usage(**{name: 2**at for at, name in enumerate(names)})
    assert one + one == Usage(**{name: 2 * 2**at for at, name in enumerate(names)})


async def test_an_unknown_price_against_a_dollar_limit_ends_the_run() -> None:
    budget = Budget(Limits(dollars=1.0))
    budget.charge(Usage(), Usage(calls=1, dollars=None))
    with pytest.raises(BudgetExceeded, match="not known"):
        budget.reserve(Usage(calls=1))


async def test_seconds_end_a_call_that_hangs() -> None:
    class Hangs:
        name = "hangs"

        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
            await asyncio.sleep(60)
            raise AssertionError

    with pytest.raises(BudgetExceeded, match="seconds"):
        await Run(Hangs(), Toolbox([]), Budget(Limits(seconds=0.05))).ask("x", number)


async def test_a_failed_action_is_an_observation() -> None:
    run, _ = run_of([])
    assert (await run.act(Action("echo", "hi"))).records[0].id == "o1.r1"
    assert (await run.act(Action("echo", "bad"))).error
    assert "Did you mean echo?" in (await run.act(Action("ecko", "x"))).note


async def test_the_trace_is_read_back_and_a_torn_last_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("w") as file:
        run, _ = run_of(["1"])
        run = Run(run.llm, run.env, run.budget, Trace(listeners=[TraceFile(file).write]))
        with run.span("part") as part:
            await part.ask("x", number)
    whole = read_trace(path)
    assert [type(entry.event) for entry in whole] == [Span, LLMCall]
    assert whole[1].span == whole[0].id
    path.write_text(path.read_text()[:-20])
    assert len(read_trace(path)) == 1
    path.write_text("hello\nworld\n")
    with pytest.raises(SetupError, match="line 1"):
        read_trace(path)


async def test_one_failure_in_each_is_raised_as_itself() -> None:
    async def fail(x: int) -> int:
        if x == 2:
            raise BudgetExceeded("calls", 1)
        await asyncio.sleep(5)
        return x

    with pytest.raises(BudgetExceeded):
        await map_concurrently(fail, [1, 2, 3])


def test_work_that_an_interrupt_cancels_cleans_up_to_its_end() -> None:
    cleaned = []

    async def work() -> None:
        try:
            threading.Timer(0.1, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
            cleaned.append("whole")

    with pytest.raises(KeyboardInterrupt), LoopThread() as thread:
        thread.run(work())
    assert cleaned == ["whole"]
