"""Suites in one process: five states kept apart, failures that stop a run and those that do not, replies shared."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from decisor.errors import LLMError, ParseError, SetupError
from decisor.lab.evaluation.runner import Stop, Suite, Tally, evaluate_suite
from decisor.lab.evaluation.store import RunStore, open_store
from decisor.lab.evaluation.suite import format_suite_table
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Limits
from decisor.runtime.run import Run, Technique
from decisor.trace.events import AnswerSnapshot, LLMCall, events_of
from decisor.types import LLM, Action, Completion, Decision, Message, Question, Sampling, Usage
from evaluation.small import SmallBench


def number(question: Question) -> int:
    return int(question.text.partition("(")[2].partition(")")[0])


async def asks(question: Question, run: Run) -> Decision:
    """One call, one query, then what the LLM said."""
    said = await run.ask(question.text, str)
    await run.act(Action("sql", "select name from river"))
    return Decision(said)


async def many_ends(question: Question, run: Run) -> Decision:
    """Each case ends in another way."""
    ways: list[Callable[[], Decision]] = [
        lambda: Decision("bel"),
        lambda: Decision("aune"),
        lambda: Decision(""),
        lambda: Decision(str(1 // 0)),
        lambda: Decision("", stopped="budget", reasons=("The limit is reached.",)),
        lambda: Decision("bel", stopped="budget"),
    ]
    return ways[number(question)]()


def suite_with(loops: Mapping[str, Technique], llm: LLM | None = None, many: int = 4, **more: Any) -> Suite:
    models: dict[str, LLM] = {"m": llm or ScriptedLLM(lambda messages: "bel", name="m")}
    return Suite({"small": SmallBench(many)}, loops, models, **more)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    found = open_store(tmp_path / "run.db")
    yield found
    found.close()


async def test_right_wrong_unscored_crashed_and_over_budget_are_never_merged(store: RunStore) -> None:
    tally = await evaluate_suite(suite_with({"ends": many_ends}, many=6), store)
    states = {outcome.case: outcome.state for outcome in store.outcomes()}
    assert states == {
        "c0": "right",
        "c1": "wrong",
        "c2": "unscored",
        "c3": "crashed",
        "c4": "over_budget",
        "c5": "right",
    }
    crashed = store.outcomes()[3]
    assert re.match(r"ZeroDivisionError: .* by zero \(test_runner\.py", crashed.reasons[-1])
    assert tally.accuracy == 2 / 4 and tally.done == 6
    head, line = format_suite_table(store.each_outcome()).splitlines()
    assert line.split()[3:10] == ["6", "2", "1", "1", "1", "1", "50.0"] and "over budget" in head


async def test_a_limit_that_a_technique_does_not_catch_is_over_budget_and_a_reply_that_cannot_be_read_is_not(
    store: RunStore,
) -> None:
    async def never_read(question: Question, run: Run) -> Decision:
        raise ParseError("No.")

    async def forever(question: Question, run: Run) -> Decision:
        while True:
            await run.ask(question.text, str)

    loops = {"forever": forever, "never_read": never_read}
    await evaluate_suite(suite_with(loops, many=1, limits=Limits(calls=3)), store)
    first, second = store.outcomes()
    assert (first.state, first.stopped, first.usage.calls) == ("over_budget", "budget", 2)
    assert (second.state, second.stopped) == ("unscored", "failed")


@dataclass
class Failing:
    """Answers until the call number ``at``, then fails for good, or in passing."""

    at: int
    permanent: bool = True
    kind: str = "quota"
    calls: int = 0
    name: str = "m"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.calls += 1
        failing = self.calls >= self.at
        await asyncio.sleep(0)
        if failing:
            raise LLMError("No credit is left there.", self.kind, self.permanent)
        return Completion(("bel",), Usage(1, 10, 1, 0.5))


async def swallows(question: Question, run: Run) -> Decision:
    """Decides without an answer where the LLM fails, as a technique's last call may."""
    try:
        return await asks(question, run)
    except LLMError:
        return Decision("", stopped="steps")


@pytest.mark.parametrize("loop", [asks, swallows])
async def test_an_endpoint_that_fails_for_good_stops_the_run_and_what_was_done_is_kept(
    loop: Technique, store: RunStore
) -> None:
    failing = Failing(4)
    with pytest.raises(LLMError, match="No credit"):
        await evaluate_suite(suite_with({"asks": loop}, failing, many=9, cases_at_once=2), store)
    assert failing.calls <= 5
    assert [outcome.state for outcome in store.outcomes()] == ["right"] * 3
    going_on = Failing(100)
    tally = await evaluate_suite(suite_with({"asks": loop}, going_on, many=9), store)
    assert (tally.done, going_on.calls) == (9, 6)


@pytest.mark.parametrize("kind", ["server", "context"])
@pytest.mark.parametrize("loop", [asks, swallows])
async def test_an_endpoint_that_fails_in_passing_is_a_crashed_case_even_if_the_technique_goes_on(
    loop: Technique, kind: str, store: RunStore
) -> None:
    failing = Failing(1, permanent=kind == "context", kind=kind)
    tally = await evaluate_suite(suite_with({"asks": loop}, failing, many=2), store)
    assert tally.states == {"crashed": 2}
    assert store.outcomes()[0].reasons[-1] == "No credit is left there."


async def test_crashed_cases_are_run_again_where_asked(store: RunStore) -> None:
    await evaluate_suite(suite_with({"asks": asks}, Failing(3, permanent=False), cases_at_once=1), store)
    assert store.reopen(["crashed"]) == 2
    assert (await evaluate_suite(suite_with({"asks": asks}), store)).states == {"right": 4}


async def test_techniques_share_replies_and_repeats_do_not(store: RunStore) -> None:
    llm = Failing(100)
    suite = suite_with({"one": asks, "other": asks}, llm, repeats=2)
    tally = await evaluate_suite(suite, store)
    assert (tally.done, llm.calls) == (16, 8)
    assert tally.usage.dollars == 4.0 and sum(one.usage.dollars or 0.0 for one in store.outcomes()) == 8.0
    assert store.spent().dollars == 4.0
    calls = events_of(store.trace(("small", "c0", "other", "m", 0)), LLMCall)
    assert [call.replayed for call in calls] == [True]


async def test_a_technique_that_asks_no_llm_is_run_once_however_many_models_there_are(store: RunStore) -> None:
    suite = suite_with({"asks": asks, "ends": many_ends}, many=2)
    models: dict[str, LLM] = {name: ScriptedLLM(lambda messages: "bel", name=name) for name in ("a", "b")}
    suite = Suite(suite.benches, suite.techniques, models, alone=frozenset({"ends"}))
    await evaluate_suite(suite, store)
    made = {(outcome.technique, outcome.model) for outcome in store.outcomes()}
    assert made == {("asks", "a"), ("asks", "b"), ("ends", "none")}


async def test_answers_held_on_the_way_are_scored_where_the_trace_has_them(store: RunStore) -> None:
    async def holds(question: Question, run: Run) -> Decision:
        for calls, answer in ((30, "aune"), (60, "bel"), (90, "")):
            run.trace.add(AnswerSnapshot(calls, answer), run.span_id)
        return Decision("bel")

    await evaluate_suite(suite_with({"holds": holds}, many=1), store)
    assert store.outcomes()[0].snapshots == {30: False, 60: True}


async def test_a_store_that_was_begun_with_other_settings_is_refused(store: RunStore) -> None:
    await evaluate_suite(suite_with({"asks": asks}, limits=Limits(calls=30)), store)
    with pytest.raises(SetupError, match="limit_calls 30, not 60"):
        await evaluate_suite(suite_with({"asks": asks}, limits=Limits(calls=60)), store)


@dataclass
class Hanging:
    """Answers ``quick`` calls, then keeps waiting; ``started`` when as many again wait."""

    quick: int
    calls: int = 0
    name: str = "m"
    started: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.calls += 1
        if self.calls == 2 * self.quick:
            self.started.set()
        if self.calls > self.quick:
            await asyncio.sleep(60)
        return Completion(("bel",))


async def test_after_the_grace_time_what_hangs_is_given_back(store: RunStore) -> None:
    hanging, stop = Hanging(2), Stop(grace=1.0)
    running = asyncio.create_task(evaluate_suite(suite_with({"asks": asks}, hanging), store, stop))
    await hanging.started.wait()
    stop.ask()
    tally = await asyncio.wait_for(running, 30)
    assert (tally.done, tally.total, hanging.calls) == (2, 4, 4)
    assert (await evaluate_suite(suite_with({"asks": asks}), store)).done == 4


async def test_progress_is_heard_from_the_first_case_to_the_last(store: RunStore) -> None:
    seen: list[tuple[int, int]] = []

    def hear(tally: Tally) -> None:
        seen.append((tally.done, tally.total))

    await evaluate_suite(suite_with({"asks": asks}, cases_at_once=1), store, hear=hear)
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    await evaluate_suite(suite_with({"asks": asks}), store, hear=hear)
    assert seen[-1] == (4, 4) and len(seen) == 6


def refuses(some: Callable[[int], bool]) -> LLM:
    """An LLM that refuses the questions with these numbers, as a provider does what it cannot take."""

    @dataclass
    class Refusing:
        name: str = "m"

        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
            if some(int(messages[-1].content.partition("(")[2].partition(")")[0])):
                raise LLMError("m answered 422: Unprocessable.", "request")
            return Completion(("bel",), Usage(1), model=self.name)

    return Refusing()


async def test_one_question_that_a_provider_refuses_is_that_cases_outcome_and_the_others_go_on(store: RunStore) -> None:
    for cases_at_once in (1, 4):
        tally = await evaluate_suite(
            suite_with(
                {f"asks {cases_at_once}": asks}, refuses(lambda n: n % 4 == 0), many=10, cases_at_once=cases_at_once
            ),
            store,
        )
        assert tally.states == {"right": 7, "crashed": 3}
    assert {one.reasons[-1] for one in store.outcomes() if one.state == "crashed"} == {"m answered 422: Unprocessable."}


async def test_what_a_provider_refuses_over_and_over_is_about_the_provider(store: RunStore) -> None:
    with pytest.raises(LLMError, match="422: Unprocessable"):
        await evaluate_suite(suite_with({"asks": asks}, refuses(lambda n: True), many=20, cases_at_once=1), store)
    assert len(store.outcomes()) == 2, "the third stops the run"
