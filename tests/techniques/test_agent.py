"""The agent loop: what it sends, how it ends, and how it takes odd replies."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from decisor.databases.sql import SqlTool
from decisor.errors import LLMError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.techniques.agent import Agent
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import (
    ActionResult,
    LLMCall,
    Plan,
    PlanChange,
    TechniqueChoice,
    Trace,
    UnreadableReply,
    events_of,
)
from decisor.types import Completion, Decision, Message, Question, Sampling, ToolCall

Calls = Sequence[tuple[str, Mapping[str, object] | str]]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sites") / "sites.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE site (name TEXT, cost REAL)")
        rows = [(f"s{number}", 100 + 1.5 * number) for number in range(120)]
        connection.executemany("INSERT INTO site VALUES (?, ?)", rows)
    connection.close()
    return f"sqlite:///{path}"


@dataclass
class Recording(ScriptedLLM):
    """A scripted LLM that keeps all messages and tools of each request. Its last reply is given again at the end."""

    prompts: list[tuple[tuple[Message, ...], Sampling]] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.prompts.append((tuple(messages), sampling))
        if not callable(self.replies) and len(self.prompts) > len(self.replies):
            self.replies = [*self.replies, self.replies[-1]]
        return await super().complete(messages, sampling)


def turn(calls: Calls, text: str = "") -> Message:
    return Message("assistant", text, tuple(call(name, value, at) for at, (name, value) in enumerate(calls)))


def call(name: str, value: Mapping[str, object] | str, at: int) -> ToolCall:
    return ToolCall(f"call_{at}", name, value if isinstance(value, str) else json.dumps(value))


def ask(
    source: str, *replies: Calls | str, limits: Limits = Limits(), steps: int = 15, rules: str = ""
) -> tuple[Decision, Recording, Run]:
    """Play a script on the database of sites, and check what holds in every conversation."""

    async def main() -> tuple[Decision, Recording, Run]:
        tool = await SqlTool.open(source)
        llm = Recording([reply if isinstance(reply, str) else turn(reply) for reply in replies])
        run = Run(llm, Toolbox([tool]), Budget(limits), Trace())
        try:
            return await Agent(max_steps=steps)(Question("Which site is cheapest?", rules), run), llm, run
        finally:
            await tool.close()

    decision, llm, run = asyncio.run(main())
    if llm.prompts[0][1].tools and all(sampling.tools for _, sampling in llm.prompts):
        for (before, sampling), (after, later) in zip(llm.prompts, llm.prompts[1:], strict=False):
            assert after[: len(before)] == before, "a prompt begins with the one before it"
            assert later.tools == sampling.tools, "the list of tools never changes"
        for messages, _ in llm.prompts:
            check_answered(messages)
    return decision, llm, run


def check_answered(messages: Sequence[Message]) -> None:
    """Each call has one result, right behind its turn and in the order of the calls, as all providers demand."""
    for at, message in enumerate(messages):
        ids = [call.id for call in message.calls]
        assert [result.call_id for result in messages[at + 1 : at + 1 + len(ids)]] == ids


def results(llm: Recording) -> list[str]:
    """Return the results of calls that the last prompt holds."""
    return [message.content for message in llm.prompts[-1][0] if message.role == "tool"]


CHEAPEST = ("sql", {"query": "SELECT name, cost FROM site ORDER BY cost"})
PLAN = ("plan", {"steps": ["cost of every site", "choose the lowest"]})
DECIDE = ("decide", {"answer": "s0", "because": "s0 costs 100 [o1.r1], s1 101.5 [o1.r2]."})


def number_query(number: int) -> tuple[str, Mapping[str, object]]:
    return ("sql", {"query": f"SELECT {number} AS a"})


def test_plan_query_and_decide_take_two_calls(sites: str) -> None:
    decision, llm, run = ask(sites, [PLAN, CHEAPEST], [DECIDE])
    assert (decision.answer, decision.stopped, decision.plan) == ("s0", "answered", tuple(PLAN[1]["steps"]))
    assert decision.evidence.ids == ("o1.r1", "o1.r2")
    assert len(llm.prompts) == 2
    assert [function.name for function in llm.prompts[0][1].tools] == ["plan", "sql", "decide"]
    assert len(list(events_of(run.trace.entries, Plan))) == 1


def test_the_opening_is_short(sites: str) -> None:
    _, llm, _ = ask(sites, [PLAN, CHEAPEST], [DECIDE])
    messages, sampling = llm.prompts[0]
    instructions, _, data = messages[0].content.partition("# Data\n")
    assert len(instructions) < 760
    assert "site" in data
    assert sum(len(json.dumps([tool.name, tool.description, tool.parameters])) for tool in sampling.tools) < 850
    assert messages[1].content == "# Question\nWhich site is cheapest?"


def test_a_second_plan_with_its_reason_is_a_replan(sites: str) -> None:
    again = ("plan", {"steps": ["count the sites"], "why": "there are more than 50"})
    decision, _, run = ask(sites, [PLAN, CHEAPEST], [again, number_query(1)], [DECIDE])
    assert [(replan.after_step, replan.why, replan.plan) for replan in decision.replans] == [
        (1, "there are more than 50", ("count the sites",))
    ]
    assert len(list(events_of(run.trace.entries, PlanChange))) == 1


def test_parallel_queries_are_numbered_in_the_order_of_the_calls(sites: str) -> None:
    queries = [number_query(number) for number in range(4)]
    _, llm, _ = ask(sites, [PLAN, *queries], [("decide", {"answer": "none", "because": "x"})])
    shown = [message.content for message in llm.prompts[1][0] if message.role == "tool"]
    assert shown[0] == "ok"
    assert [f"[o{at}.r1] | {at - 1}" in text for at, text in enumerate(shown[1:], 1)] == [True] * 4


def test_a_first_query_without_a_plan_is_asked_for_one(sites: str) -> None:
    _, llm, _ = ask(sites, [CHEAPEST], [DECIDE])
    assert "There is no plan yet" in llm.prompts[1][0][-1].content


def test_a_decision_beside_queries_waits_for_their_results(sites: str) -> None:
    decision, llm, _ = ask(sites, [PLAN, CHEAPEST], [number_query(1), DECIDE], [DECIDE])
    assert "this reply also made queries" in results(llm)[-1]
    assert decision.answer == "s0"


def test_text_is_answered_and_three_unusable_replies_end_the_loop(sites: str) -> None:
    decision, llm, _ = ask(sites, [PLAN, CHEAPEST], "s0 is best.", [DECIDE])
    assert (decision.answer, len(llm.prompts)) == ("s0", 3)
    decision, llm, _ = ask(sites, [PLAN, CHEAPEST], "s0.", "s0.", "s0.", "Final answer: s0\nBecause: 100 [o1.r1]")
    assert (decision.answer, decision.stopped, len(llm.prompts)) == ("s0", "failed", 5)
    assert any("Three replies of the LLM in a row could not be used" in reason for reason in decision.reasons)
    decision, llm, _ = ask(sites, [("sql", "{nonsense")])
    assert (decision.answer, decision.stopped, len(llm.prompts)) == ("", "failed", 3), "nothing came back to decide by"


def test_an_answer_in_labels_is_taken(sites: str) -> None:
    decision, llm, _ = ask(sites, [PLAN, CHEAPEST], "Final answer: s0\nBecause: s0 costs 100 [o1.r1].")
    assert (decision.answer, decision.stopped, len(llm.prompts)) == ("s0", "answered", 2)


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (("sql", '{"query": "SELECT 1'), ""),
        (("python", {"code": "1"}), "There is no tool 'python'; there is plan, sql, decide."),
        (("sql", {}), "sql lacks query."),
        (("decide", {"answer": "s0"}), "decide lacks because."),
        (("sql", {"query": "SELECT x FROM site"}), "x"),
    ],
)
def test_an_odd_call_is_answered_and_the_others_of_its_reply_count(
    sites: str, odd: tuple[str, Mapping[str, object] | str], says: str
) -> None:
    query = ("sql", {"query": "SELECT name, cost FROM site ORDER BY cost LIMIT 5"})
    decision, llm, _ = ask(sites, [PLAN, odd, query], [("decide", {"answer": "s0", "because": "s0 costs 100."})])
    assert says in llm.prompts[1][0][4].content
    assert "s0 | 100" in llm.prompts[1][0][5].content
    assert decision.answer == "s0"


def test_the_same_query_is_not_run_again(sites: str) -> None:
    _, llm, run = ask(sites, [PLAN, CHEAPEST, CHEAPEST], [CHEAPEST], [DECIDE])
    assert len(list(events_of(run.trace.entries, ActionResult))) == 1
    assert results(llm)[2:] == [
        "The same query stands above in this reply.",
        "This query was made before: its result is o1.",
    ]


def test_more_rows_may_be_cited_once_they_were_shown(sites: str) -> None:
    late = ("decide", {"answer": "s60", "because": "s60 costs 190 [o1.r61]."})
    decision, llm, run = ask(sites, [PLAN, CHEAPEST], [late], [("sql", {"query": "rows o1 51"})], [late])
    said = results(llm)
    assert "You cite o1.r61, which you have not been shown." in said[2]
    assert said[3].splitlines()[1] == "[o1.r51] | s50 | 175"
    assert decision.evidence.ids == ("o1.r61",)
    assert len(list(events_of(run.trace.entries, ActionResult))) == 1, "more rows are no query"
    assert "There is no result o7; there is o1." in results(
        ask(sites, [PLAN, CHEAPEST], [("sql", {"query": "rows o7 1"})], [DECIDE])[1]
    )


def test_only_rows_that_were_shown_are_shown_rows(sites: str) -> None:
    _, llm, _ = ask(sites, [PLAN, CHEAPEST], [DECIDE])
    lines = results(llm)[1].splitlines()
    assert (lines[1], lines[50]) == ("[o1.r1] | s0 | 100", "[o1.r50] | s49 | 173.5")
    assert lines[51].startswith("(Only the first 50 of 120 rows are shown")


def test_an_objection_goes_back_once_with_all_that_is_wrong(sites: str) -> None:
    wrong = ("decide", {"answer": "zzyx", "because": "zzyx costs 7.77 [o1.r1]."})
    decision, llm, _ = ask(sites, [PLAN, CHEAPEST], [wrong], [wrong])
    said = results(llm)[-1]
    assert said.startswith("Please check:\n- ")
    assert "zzyx" in said and "7.77" in said
    assert (len(llm.prompts), decision.answer, decision.stopped) == (3, "zzyx", "answered")
    assert decision.evidence.objections, "what is left of them stands in the decision"
    mended, llm, _ = ask(sites, [PLAN, CHEAPEST], [wrong], [DECIDE])
    assert (mended.answer, mended.evidence.objections, len(llm.prompts)) == ("s0", (), 3)


GROUPED = "SELECT name, MIN(cost) AS cost, 'Rome' AS target FROM site GROUP BY name ORDER BY cost LIMIT 5"
TO_ROME = ("sql", {"query": GROUPED})


@pytest.mark.parametrize(
    ("answer", "because", "says"),
    [
        ("Rome", "The lowest cost is that of Rome, 100 [o1.r1].", "Rome is what all rows that you cite are about"),
        (
            "s999",
            "s999 costs 100 [o1.r1].",
            "s999 stands in no row that you were shown; the candidates are s0, s1, s2, ",
        ),
        ("Park Group", "Park Group costs 100 [o1.r1].", "Park Group stands in no row that you were shown"),
        (
            "s0",
            "s0 has the lowest cost of all sites, 101.5 [o1.r1], before s1 with 101.5 [o1.r2].",
            "o1.r1 says 100 (cost)",
        ),
        ("s1", "s1 costs 101.5 [o1.r2].", "Ordered by cost, your query puts s0 (100) [o1.r1] before"),
        (
            "s2",
            "s2 costs 103 [o1.r3]. s0 is closed [o1.r1].",
            "Ordered by cost, your query puts s0 (100) [o1.r1] before",
        ),
    ],
)
def test_an_answer_that_its_rows_do_not_choose_is_told_why(sites: str, answer: str, because: str, says: str) -> None:
    wrong = ("decide", {"answer": answer, "because": because})
    _, llm, _ = ask(sites, [PLAN, TO_ROME], [wrong], [DECIDE], rules="Goods go to Rome.")
    assert results(llm)[-1].startswith("Please check:")
    assert says in results(llm)[-1]


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        ("s0", "s0 is the cheapest of all 5 [o1.r1], 1.5 below s1 [o1.r2]."),
        ("S0 site", "It costs 100 [o1.r1]."),
        ("Yes", "s0 costs 100 [o1.r1]."),
        ("s1", "s1 has the lowest cost of those open, 101.5 [o1.r2]. s0 is closed [o1.r1]."),
        ("s2", "s2 costs 103 [o1.r3]; s0 and s1 are excluded by the rules [o1.r1, o1.r2]."),
    ],
)
def test_a_true_answer_costs_no_second_call(sites: str, answer: str, because: str) -> None:
    decide = ("decide", {"answer": answer, "because": because})
    decision, llm, _ = ask(sites, [PLAN, TO_ROME], [decide], rules="Goods go to Rome. Closed sites are left out.")
    assert (len(llm.prompts), decision.answer) == (2, answer)


def test_undecidable_ends_without_objections(sites: str) -> None:
    none = ("decide", {"answer": "none", "because": "There are no costs of next year."})
    decision, llm, _ = ask(sites, [PLAN, CHEAPEST], [none])
    assert (decision.answer, decision.stopped, len(llm.prompts)) == ("", "no_answer", 2)
    assert "There are no costs of next year." in decision.reasons


def test_a_limit_within_a_reply_leaves_no_call_without_a_result(sites: str) -> None:
    forty = [number_query(number) for number in range(40)]
    decision, llm, _ = ask(sites, forty, [("decide", {"answer": "none", "because": "x"})], limits=Limits(actions=5))
    said = results(llm)
    assert sum(text.startswith("Not run: at most 8") for text in said) == 32
    assert sum("limit" in text for text in said) >= 3
    assert decision.stopped == "budget"


def test_the_last_call_is_asked_for_the_decision(sites: str) -> None:
    decision, llm, _ = ask(sites, [PLAN, CHEAPEST], [number_query(1)], [number_query(2)], [DECIDE], steps=3)
    assert llm.prompts[-1][0][-1].content.startswith("No more queries can be made.")
    assert (decision.answer, decision.stopped) == ("s0", "steps")
    decision, _, _ = ask(sites, [PLAN, CHEAPEST], [number_query(1)], limits=Limits(calls=3))
    assert (decision.answer, decision.stopped) == ("", "budget")


def test_a_call_written_as_text_is_read(sites: str) -> None:
    text = (
        '<tool_call>{"name": "decide", "arguments": {"answer": "s0", "because": "s0 costs 100 [o1.r1]."}}</tool_call>'
    )
    decision, _, _ = ask(sites, [PLAN, CHEAPEST], text)
    assert (decision.answer, decision.stopped) == ("s0", "answered")
    written = '```json\n{"name": "sql", "arguments": {"query": "SELECT name FROM site LIMIT 1"}}\n```'
    _, llm, _ = ask(sites, written, [("decide", {"answer": "none", "because": "x"})])
    assert llm.prompts[1][0][-1].role == "user"
    assert "[o1.r1] | s0" in llm.prompts[1][0][-1].content


def test_assumptions_are_kept_apart_and_their_rows_are_evidence(sites: str) -> None:
    assumptions = ["costs are monthly; taxes are included", "s1 is open [o1.r2]", "none"]
    decide = ("decide", {"answer": "s0", "because": "s0 costs 100 [o1.r1].", "assumptions": assumptions})
    decision, _, _ = ask(sites, [PLAN, CHEAPEST], [decide])
    assert decision.assumptions == ("costs are monthly; taxes are included", "s1 is open [o1.r2]")
    assert decision.evidence.ids == ("o1.r1", "o1.r2")


TEXTS = [
    "Plan: [Step 1: cost of every site]\nThought: x\nAction: sql\nAction input: SELECT name, cost FROM site "
    "ORDER BY cost",
    "Final answer: s0\nBecause: s0 costs 100 [o1.r1], s1 101.5 [o1.r2].",
]


@pytest.mark.parametrize("way", ["refused", "ignored"])
def test_without_tool_calls_plan_rag_goes_on(sites: str, way: str) -> None:
    @dataclass
    class NoTools(Recording):
        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
            if sampling.tools and way == "refused":
                raise LLMError("tools are not supported", "tools")
            if sampling.tools:
                return Completion(("I would look at the sites.",))
            return await super().complete(messages, sampling)

    async def main() -> tuple[Decision, Run]:
        tool = await SqlTool.open(sites)
        run = Run(NoTools(TEXTS), Toolbox([tool]), Budget(), Trace())
        try:
            return await Agent()(Question("Which site is cheapest?"), run), run
        finally:
            await tool.close()

    decision, run = asyncio.run(main())
    assert (decision.answer, decision.stopped) == ("s0", "answered")
    [choice] = events_of(run.trace.entries, TechniqueChoice)
    assert choice.technique == "plan_rag" and "takes no tool calls" in choice.why
    assert len(list(events_of(run.trace.entries, LLMCall))) == (2 if way == "refused" else 4)


def test_a_nonsense_model_is_asked_three_times(sites: str) -> None:
    decision, llm, run = ask(sites, [("look", {})], [("look", {})], [("look", {})])
    assert (decision.stopped, len(llm.prompts)) == ("failed", 3)
    assert len(list(events_of(run.trace.entries, UnreadableReply))) == 3
