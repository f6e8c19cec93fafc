"""Runs of tool calls as they are kept, resumed, changed and told: queries of one reply that end in another order."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from rich.console import Console

from decisor.errors import BudgetExceeded, SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques.agent import Agent
from decisor.techniques.replay.rerun import Edit, Rerun, rerun_with_edit, resume_interrupted_run
from decisor.tools.python_function import FunctionTool
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    LLMCall,
    OnText,
    Plan,
    RunStart,
    Trace,
    TraceEntry,
    Writers,
    Writing,
    events_of,
)
from decisor.trace.file import format_trace_array, format_trace_file, read_trace_text
from decisor.types import (
    Action,
    Completion,
    Decision,
    Function,
    Message,
    Observation,
    Question,
    Record,
    Sampling,
    ToolCall,
)
from decisor.views.page import story_json
from decisor.views.terminal import LiveView
from decisor.views.transcript import tell_story

QUESTION = Question("Which site is cheapest?")
SECONDS = {"SELECT slow": 0.06, "SELECT quick": 0.0, "SELECT later": 0.03}


@dataclass
class Sites:
    """A database that answers each query after its own time, and knows what it was asked."""

    name: str = "sql"
    form: str = "sql"
    is_restricted: bool = False
    asked: list[str] = field(default_factory=list)

    def examples(self) -> Sequence[str]:
        return ()

    def describe(self) -> str:
        return "table site: name, cost"

    async def call(self, text: str) -> Observation:
        self.asked.append(text)
        await asyncio.sleep(SECONDS.get(text, 0.0))
        if text == "SELECT wrong":
            raise ToolError("no such column: wrong")
        return Observation((Record("r1", {"name": text.partition("SELECT ")[2], "cost": 90}),))

    async def close(self) -> None: ...


@dataclass
class Offered(ScriptedLLM):
    """Keeps the functions that it was offered."""

    offered: list[tuple[Function, ...]] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.offered.append(sampling.tools)
        return await super().complete(messages, sampling)


class Streamed(ScriptedLLM):
    """Shows the arguments of its calls while it writes them."""

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        for text in ('{"steps": [', '{"steps": ["cost'):
            on_text(text)
        return await self.complete(messages, sampling)


def turn(*calls: tuple[str, Mapping[str, object]], text: str = "", thought: str = "") -> Message:
    made = tuple(ToolCall(f"call_{at}", name, json.dumps(value)) for at, (name, value) in enumerate(calls))
    return Message("assistant", text, made, raw={"chat": {"reasoning": thought}, "model": "m"} if thought else None)


def sql(query: str) -> tuple[str, Mapping[str, object]]:
    return ("sql", {"query": query})


PLAN = ("plan", {"steps": ["cost of every site", "choose the lowest"]})
DECIDE = ("decide", {"answer": "slow", "because": "slow costs 90 [o1.r1], quick 90 [o2.r1]."})
REPLIES = [
    turn(PLAN, sql("SELECT slow"), sql("SELECT quick"), sql("SELECT later"), text="I look.", thought="Three sites."),
    turn(("plan", {"steps": ["look again", "choose"], "why": "one is missing"}), sql("SELECT one")),
    turn(DECIDE, thought="slow it is."),
]


def run_on(replies: Sequence[str | Message], trace: Trace | None = None, **limits: int) -> tuple[Run, Sites]:
    sites = Sites()
    env = Toolbox([sites])
    return Run(ScriptedLLM(replies), env, Budget(Limits(**limits)), trace or Trace()), sites


async def decide(run: Run) -> Decision:
    settings = {"objections": "no"}
    run.trace.add(RunStart(QUESTION, "agent", run.llm.name, settings, run.env.tools()))
    return await Agent(objections=False)(QUESTION, run)


@pytest.fixture
async def entries() -> Sequence[TraceEntry]:
    run, _ = run_on(REPLIES)
    assert (await decide(run)).answer == "slow"
    return run.trace.entries


def test_a_trace_keeps_calls_thoughts_and_results(entries: Sequence[TraceEntry]) -> None:
    text = format_trace_file(entries)
    calls = list(events_of(read_trace_text(text), LLMCall))
    assert [list(call.messages) for call in calls] == [list(call.messages) for call in events_of(entries, LLMCall)]
    assert [call.turn for call in calls] == REPLIES
    messages = list(calls[-1].messages)
    assert messages[2] == REPLIES[0] and messages[7] == REPLIES[1]
    assert [message.call_id for message in messages[3:7]] == ["call_0", "call_1", "call_2", "call_3"]
    whole = json.loads(format_trace_array(entries))
    prompt = [row["data"]["messages"] for row in whole if row["event"] == "LLMCall"][-1]
    assert prompt[2]["calls"][1]["arguments"] == '{"query": "SELECT slow"}'
    assert prompt[2]["raw"] == REPLIES[0].raw and prompt[3]["call_id"] == "call_0"


def test_a_query_stands_in_the_file_as_a_call_and_as_an_action_only(entries: Sequence[TraceEntry]) -> None:
    text = format_trace_file(entries)
    for query in ("SELECT slow", "SELECT quick", "SELECT one"):
        assert text.count(query) == 2
    assert text.count("Three sites.") == text.count("slow it is.") == 1


def test_an_event_without_a_turn_is_written_as_before() -> None:
    trace = Trace()
    trace.add(LLMCall("m", (Message("user", "Hi"),), ("yes",)))
    row = json.loads(format_trace_file(trace.entries).splitlines()[1])["data"]
    assert "turn" not in row and row["messages"] == [{"role": "user", "content": "Hi"}]


async def test_keys_in_arguments_and_thoughts_are_hidden_in_every_prompt() -> None:
    key = "sk-" + "a1B2" * 8
    query = f"ATTACH 'postgresql://me:{key}@host/shop'"
    run, sites = run_on([turn(PLAN, sql(query), thought=f"The key is {key}."), REPLIES[1], REPLIES[2]])
    await decide(run)
    assert sites.asked[0] == query, "the query itself runs as it was written"
    assert key not in format_trace_file(run.trace.entries)
    calls = run.trace.of(LLMCall)
    assert all(calls[0].turn == list(call.messages)[2] for call in calls[1:])
    assert calls[0].turn and calls[0].turn.raw and "[hidden]" in str(calls[0].turn.raw)
    assert json.loads(calls[0].turn.calls[1].arguments)["query"].endswith("@host/shop'")


async def test_a_run_that_was_cut_off_anywhere_is_the_same_run_after_it(entries: Sequence[TraceEntry]) -> None:
    numbers = {result.observation.records[0].id for result in events_of(entries, ActionResult)}
    for end in range(1, len(entries)):
        past = read_trace_text(format_trace_file(entries[:end]))
        had = [call.turn for call in events_of(past, LLMCall)]
        run, sites = run_on(REPLIES[len(had) :])
        decision = await decide(resume_interrupted_run(run, past))
        assert (decision.answer, decision.stopped) == ("slow", "answered"), end
        assert [call.turn for call in run.trace.of(LLMCall)] == REPLIES
        assert run.budget.spent.calls == len(run.llm.seen) == 3 - len(had)  # type: ignore[attr-defined]
        done = list(events_of(past, ActionResult))
        assert len(sites.asked) == 4 - len(done), "no query is made twice"
        ids = [result.observation.records[0].id for result in run.trace.of(ActionResult)]
        assert len(set(ids)) == 4
        if len(done) in (0, 3, 4):  # cut between replies
            assert set(ids) == numbers


async def test_a_resumed_run_shortens_its_prompts_where_the_first_one_did() -> None:
    from decisor.runtime.call import ContextLength
    from decisor.trace.events import ShortenedPrompt

    @dataclass
    class Small(ScriptedLLM):
        """Counts twice as many tokens as one would expect."""

        context: ContextLength = field(default_factory=lambda: ContextLength(tokens=2_000))

        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
            reply = await super().complete(messages, sampling)
            letters = sum(len(m.content) + sum(len(call.arguments) for call in m.calls) for m in messages)
            return replace(reply, usage=replace(reply.usage, prompt_tokens=letters // 2))

    words = "name of the site and its cost " * 4
    replies = [*(turn(sql(f"SELECT {words}{at}")) for at in range(9)), REPLIES[2]]
    llm = Small(replies)
    run = Run(llm, Toolbox([Sites()]), trace=Trace())
    await decide(run)
    assert run.trace.of(ShortenedPrompt)
    for had in (5, 8):
        ends = [entry.id for entry in run.trace.entries if isinstance(entry.event, LLMCall)][had]
        past = read_trace_text(format_trace_file(run.trace.entries[: ends - 1]))
        again = Run(Small(replies[had:]), Toolbox([Sites()]), trace=Trace())
        await decide(resume_interrupted_run(again, past))
        prompts, before = ([list(call.messages) for call in one.trace.of(LLMCall)] for one in (again, run))
        assert prompts == before


async def test_a_resumed_run_offers_the_same_functions() -> None:
    def price(site: str, units: int) -> int:
        """The price of units at a site."""
        return units

    tool = FunctionTool(price)
    calls = [turn(PLAN, ("price", {"site": "oak", "units": 3})), REPLIES[1], REPLIES[2]]
    first = Run(Offered(calls), Toolbox([Sites(), tool]), trace=Trace())
    await decide(first)
    again = Run(Offered(calls[1:]), Toolbox([Sites(), tool]), trace=Trace())
    past = [entry for entry in first.trace.entries if entry.id < 6]
    await decide(resume_interrupted_run(again, past))
    assert first.llm.offered[0] == again.llm.offered[0]  # type: ignore[attr-defined]
    assert "units" in str(again.llm.offered[0])  # type: ignore[attr-defined]


async def test_what_is_streamed_of_a_call_ends_with_the_call() -> None:
    run = replace(run_on([])[0], llm=Streamed(REPLIES))
    heard: list[Writing] = []
    screen = io.StringIO()
    with LiveView(Console(file=screen, width=200, force_terminal=True)) as view:

        def hear(writing: Writing) -> None:
            heard.append(writing)
            view.hear_text(writing)

        run.trace.listeners.append(view.hear)
        run.trace.writers = Writers(hear)
        await decide(run)
        assert not view.texts
    assert [(one.call, one.text, one.is_over) for one in heard[:3]] == [
        (1, '{"steps": [', False),
        (1, '{"steps": ["cost', False),
        (1, '{"steps": ["cost', True),
    ]
    assert [one.call for one in heard if one.is_over] == [1, 2, 3]
    assert "I look." in screen.getvalue()


async def change(entries: Sequence[TraceEntry], edit: Edit, *replies: Message) -> tuple[Rerun, Run, Sites]:
    run, sites = run_on(replies)
    past = read_trace_text(format_trace_file(entries))
    return await rerun_with_edit(past, edit, run), run, sites


async def test_a_query_of_several_is_changed_and_the_run_goes_on(entries: Sequence[TraceEntry]) -> None:
    again, run, sites = await change(entries, Edit("2", action="SELECT other"), *REPLIES[1:])
    assert sites.asked == ["SELECT other", "SELECT later", "SELECT one"], "the first is known"
    first = run.trace.of(LLMCall)[0].turn
    assert first is not None and first.raw is None, "thoughts of another call are no longer sent"
    assert [call.arguments for call in first.calls[1:]] == [
        '{"query": "SELECT slow"}',
        '{"query": "SELECT other"}',
        '{"query": "SELECT later"}',
    ]
    assert (again.after.answer, again.changes[1].after.partition("\n")[0]) == ("slow", "sql: SELECT other")
    assert run.budget.spent.calls == len(run.llm.seen) == 2  # type: ignore[attr-defined]


async def test_steps_are_numbered_as_they_began(entries: Sequence[TraceEntry]) -> None:
    ended = [result.observation.records[0].id for result in events_of(entries, ActionResult)]
    assert ended == ["o2.r1", "o3.r1", "o1.r1", "o4.r1"]
    again, _, sites = await change(entries, Edit("1", observation="slow costs 12"), *REPLIES[1:])
    assert again.changes[0].before.startswith("sql: SELECT slow")
    assert sites.asked == ["SELECT quick", "SELECT later", "SELECT one"]
    with pytest.raises(SetupError, match="no step 5"):
        await change(entries, Edit("5", action="SELECT x"))


async def test_a_plan_that_a_person_set_stands_in_the_turn(entries: Sequence[TraceEntry]) -> None:
    for reply in (REPLIES[0], replace(REPLIES[0], calls=REPLIES[0].calls[1:])):
        _, run, _ = await change(entries, Edit("0", plan=("the mean", "the least")), reply, *REPLIES[1:])
        assert run.trace.of(Plan)[0].steps == ("the mean", "the least")
        assert "The plan is set by a person" in run.llm.seen[0]  # type: ignore[attr-defined]
    _, run, _ = await change(entries, Edit("3", plan=("the mean", "the least")), *REPLIES[1:])
    told = run.llm.seen[0]  # type: ignore[attr-defined]
    assert told.startswith("The plan is set by a person"), "no instruction stands within a result"


def story(entries: Sequence[TraceEntry], full: bool = False) -> list[str]:
    screen = io.StringIO()
    tell_story(entries, Console(file=screen, width=200), full)
    return [line.strip() for line in screen.getvalue().splitlines() if line.strip()]


def live(entries: Sequence[TraceEntry]) -> list[str]:
    screen = io.StringIO()
    with LiveView(Console(file=screen, width=200)) as view:
        for entry in entries:
            view.hear(entry)
    return [line.strip() for line in screen.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize("show", [story, live])
def test_each_result_is_told_under_its_own_query(entries: Sequence[TraceEntry], show: object) -> None:
    lines = show(entries)  # type: ignore[operator]
    order = [line for line in lines if line.startswith(("sql ", "Three", "I look", "Plan", "Replan"))]
    assert order == [
        "Three sites.",
        "I look.",
        "Plan",
        "sql SELECT slow",
        "sql SELECT quick",
        "sql SELECT later",
        "Replan after step 3: one is missing",
        "sql SELECT one",
    ]
    for name in ("slow", "quick", "later", "one"):
        at = lines.index(f"sql SELECT {name}")
        assert lines[at + 1].startswith("1 row in") and any(name in line for line in lines[at + 2 : at + 4])


def test_queries_of_a_run_that_was_cut_off_are_told_too(entries: Sequence[TraceEntry]) -> None:
    second = next(at for at, entry in enumerate(entries) if isinstance(entry.event, ActionResult))
    for show in (story, live):
        lines = show(entries[: second + 1])
        assert [line for line in lines if line.startswith("sql ")] == [
            "sql SELECT slow",
            "sql SELECT quick",
            "sql SELECT later",
        ]
        assert lines[lines.index("sql SELECT quick") + 1].startswith("1 row in")


def test_the_whole_story_has_calls_and_results(entries: Sequence[TraceEntry]) -> None:
    text = "\n".join(story(entries, full=True))
    assert 'sql {"query": "SELECT quick"}' in text and "tool:" in text
    assert text.count("slow it is.") == 1, "the last thought is told once"


def test_a_page_gets_thoughts_and_calls_without_what_only_a_provider_reads(entries: Sequence[TraceEntry]) -> None:
    rows = [row["data"] for row in json.loads(story_json(entries))["entries"] if row["event"] == "LLMCall"]
    assert [row.get("thoughts") for row in rows] == ["Three sites.", None, "slow it is."]
    assert [call["name"] for call in rows[0]["turn"]["calls"]] == ["plan", "sql", "sql", "sql"]
    assert all("raw" not in row["turn"] and row["messages"] == [] for row in rows)


async def test_a_limit_that_is_reached_ends_the_queries_beside_it_by_themselves() -> None:
    run, sites = run_on([], actions=2)

    async def act(query: str) -> Observation | BudgetExceeded:
        try:
            return await run.act(Action("sql", query))
        except BudgetExceeded as error:
            return error

    found = await map_concurrently(act, ["SELECT slow", "SELECT later", "SELECT quick"])
    assert [isinstance(one, BudgetExceeded) for one in found] == [False, False, True]
    assert (len(run.trace.of(ActionStart)), len(run.trace.of(ActionResult)), len(sites.asked)) == (2, 2, 2)
    assert run.budget.pending_actions == 0


async def test_actions_side_by_side_are_numbered_in_the_order_of_their_calls() -> None:
    sites = Sites()
    asked: list[str] = []
    waiting = 0

    async def approve(action: Action) -> str:
        nonlocal waiting
        waiting += 1
        assert waiting == 1, "a person is asked about one action at a time"
        asked.append(action.input)
        await asyncio.sleep(0.01)
        waiting -= 1
        return "I would not." if action.input == "SELECT quick" else ""

    run = Run(ScriptedLLM([]), Toolbox([sites], approve=approve))
    queries = ["SELECT slow", "SELECT quick", "SELECT later", "SELECT wrong", "SELECT one"]
    found = await map_concurrently(lambda query: run.act(Action("sql", query)), queries)
    assert asked == queries
    assert [one.records[0].id if one.records else one.note for one in found] == [
        "o1.r1",
        "I would not.",
        "o3.r1",
        "no such column: wrong",
        "o5.r1",
    ]


async def test_the_same_query_twice_at_once_is_asked_of_the_database_once() -> None:
    run, sites = run_on([])
    queries = ["SELECT slow", "select slow ;".replace("select", "SELECT"), "SELECT quick"]
    found = await map_concurrently(lambda query: run.act(Action("sql", query)), queries)
    assert sites.asked == ["SELECT slow", "SELECT quick"]
    assert [one.records[0].id for one in found] == ["o1.r1", "o2.r1", "o3.r1"]
    assert "same query as o1" in found[1].note
