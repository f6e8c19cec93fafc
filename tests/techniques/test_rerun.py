"""Going on from a recorded run after a change: what is reused costs no call, counted at a real local server."""

import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from decisor.errors import SetupError
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.run import Run, Technique
from decisor.techniques import build_technique
from decisor.techniques.iter_rag import IterRAG
from decisor.techniques.plan_rag import PlanRAG
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.techniques.replay.recorded_run import ReplyFields, read_recorded_run, replace_reply_fields
from decisor.techniques.replay.rerun import Edit, Rerun, rerun_with_edit
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionResult, ActionStart, Conclusion, LLMCall, RunStart, Trace, TraceEntry, events_of
from decisor.trace.file import TraceFile, read_trace
from decisor.types import Action, Decision, Message, Observation, Question, Tool
from servers.openai_server import serve
from techniques.documents import DOCUMENTS, Passages, Policy, nodes, role_of
from techniques.table import TableTool

QUESTION = Question("Where were the directors of Arrival and Dune born?")
PLAN = nodes(
    ("1.1", "Who directed the film Arrival?"),
    ("1.2", "Who directed the film Dune?"),
    ("2.1", "Where was <A1.1> born?"),
    ("2.2", "Where was <A1.2> born?"),
)


@dataclass
class Server:
    """A local endpoint that plays ``policy``, and what it was sent."""

    policy: Callable[[list[Message]], str] | Iterator[str]
    sent: list[list[Message]] = field(default_factory=list)

    def __call__(self, body: dict[str, Any]) -> str:
        messages = [Message(one["role"], one["content"]) for one in body["messages"]]
        self.sent.append(messages)
        return self.policy(messages) if callable(self.policy) else next(self.policy)

    def roles(self) -> list[str]:
        return [role_of(messages[0].content) for messages in self.sent]


@asynccontextmanager
async def going(server: Server, tools: list[Tool], path: Path | None = None) -> AsyncIterator[Run]:
    async with serve(server) as url:
        llm = OpenAICompatible("m", url)
        file = path.open("w") if path else None
        try:
            yield Run(llm, Toolbox(tools), trace=Trace(listeners=[TraceFile(file).write] if file else []))
        finally:
            await llm.close()
            for tool in tools:
                await tool.close()
            if file:
                file.close()


async def record(how: Technique, name: str, server: Server, tools: list[Tool], path: Path) -> Decision:
    async with going(server, tools, path) as run:
        run.trace.add(RunStart(QUESTION, name, "m"))
        return await how(QUESTION, run)


async def again(past: list[TraceEntry], edit: Edit, server: Server, tools: list[Tool]) -> tuple[Rerun, Run]:
    async with going(server, tools) as run:
        return await rerun_with_edit(past, edit, run), run


@pytest.fixture
async def past(tmp_path: Path) -> list[TraceEntry]:
    """A whole run of the graph, read back from its file."""
    path = tmp_path / "trace.jsonl"
    decision = await record(ReasoningDAG(), "reasoning_dag", Server(Policy(PLAN)), [Passages()], path)
    assert decision.answer == "Missoula, Montana"
    return read_trace(path)


async def test_an_edited_answer_is_carried_to_its_descendants_and_nothing_else_is_asked(past: list[TraceEntry]) -> None:
    server = Server(Policy(PLAN))
    found, _ = await again(past, Edit("1.2", answer="Denis Villeneuve"), server, [Passages()])
    assert found.after.answer == "Gentilly, Quebec"
    assert {change.at: change.how for change in found.changes} == {
        "Q1.1": "reused",
        "Q1.2": "edited",
        "Q2.1": "reused",
        "Q2.2": "again",
    }
    assert server.roles() == ["relevance", "generator", "aggregator"]
    assert any("Who directed the film Dune? -> Denis Villeneuve (manual)" in reason for reason in found.after.reasons)


async def test_an_answer_that_comes_out_the_same_stops_there_and_the_decision_stands(past: list[TraceEntry]) -> None:
    server = Server(Policy(PLAN))
    found, _ = await again(past, Edit("Q1.2", answer="david lynch."), server, [Passages()])
    assert server.sent == []
    assert found.after == found.before
    server = Server(Policy(PLAN))
    await again(past, Edit("Q1.2", context="He also paints."), server, [Passages()])
    assert set(server.roles()) == {"generator", "relevance"}
    assert all("He also paints." in m[0].content for m in server.sent if role_of(m[0].content) == "generator")


async def test_a_reworded_node_is_answered_again_with_its_descendants(past: list[TraceEntry]) -> None:
    server = Server(Policy(PLAN))
    tool = Passages()
    edit = Edit("1.2", ask="Who directed Arrival (film)?")
    found, run = await again(past, edit, server, [tool])
    assert tool.queries == ["Who directed Arrival (film)?", "Where was Denis Villeneuve born?"]
    assert found.after.answer == "Gentilly, Quebec"
    old = {record.id for result in events_of(past, ActionResult) for record in result.observation.records}
    new = [record.id for result in run.trace.of(ActionResult) for record in result.observation.records]
    assert new
    assert not old & set(new)


async def test_a_rerun_can_itself_be_gone_on_from(past: list[TraceEntry]) -> None:
    tools: list[Tool] = [Passages()]
    _, run = await again(past, Edit("1.2", answer="Denis Villeneuve"), Server(Policy(PLAN)), tools)
    run.trace.add(RunStart(QUESTION, "reasoning_dag", "m"))
    server = Server(Policy(PLAN))
    back, _ = await again(run.trace.entries, Edit("1.2", answer="David Lynch"), server, [Passages()])
    assert back.after.answer == "Missoula, Montana"
    assert "planner" not in server.roles()


async def test_a_new_question_may_need_other_nodes_but_not_go_round_in_circles(past: list[TraceEntry]) -> None:
    edit = Edit("2.2", ask="Where was <A1.1> born?")
    found, _ = await again(past, edit, Server(Policy(PLAN)), [Passages()])
    assert found.after.answer == "Gentilly, Quebec"
    with pytest.raises(SetupError, match=r"Q1.2 cannot need Q2.2"):
        await again(past, Edit("1.2", ask="Who made <A2.2>?"), Server(Policy(PLAN)), [Passages()])
    with pytest.raises(SetupError, match=r"There is no node 7.1; there is Q1.1, Q1.2"):
        await again(past, Edit("7.1", answer="x"), Server(Policy(PLAN)), [Passages()])


async def test_data_that_are_needed_and_not_named_again_are_asked_for(past: list[TraceEntry]) -> None:
    with pytest.raises(SetupError, match="the tool passages is needed"):
        await again(past, Edit("1.2", answer="x"), Server(Policy(PLAN)), [])


async def test_a_failed_node_can_be_done_again_when_its_document_is_there(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    poor = Passages([one for one in DOCUMENTS if "Dune" not in one[0]])
    await record(ReasoningDAG(), "reasoning_dag", Server(Policy(PLAN)), [poor], path)
    server = Server(Policy(PLAN))
    found, _ = await again(read_trace(path), Edit("1.2"), server, [Passages()])
    assert found.after.answer == "Missoula, Montana"
    assert [change.how for change in found.changes] == ["reused", "edited", "reused", "again"]


LOOK = "Thought: look\nAction: sql\nAction input: select name, km from river where km < 200"
MORE = "Thought: the other\nAction: sql\nAction input: select name, km from river where km > 200"
PLANNED = "Plan: [Step 1: the short one, Step 2: the long one]\nCurrent step: Step 1\n"
LOOPS: list[tuple[Technique, str, str]] = [(IterRAG(), "iter_rag", ""), (PlanRAG(), "plan_rag", PLANNED)]


@pytest.mark.parametrize(("how", "name", "start"), LOOPS, ids=["iter_rag", "plan_rag"])
async def test_a_loop_goes_on_from_the_edited_step_with_earlier_replies_replayed(
    how: Technique, name: str, start: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.jsonl"
    first = iter([start + LOOK, "unreadable", MORE, "Final answer: aune\nBecause: shortest [o1.r1]"])
    await record(how, name, Server(first), [TableTool()], path)
    past = read_trace(path)

    server = Server(iter(["Final answer: bel\nBecause: it has 340.25 km [o2.r1]"]))
    edit = Edit("2", action="select name, km from river order by km desc")
    found, run = await again(past, edit, server, [TableTool()])
    assert (found.before.answer, found.after.answer) == ("aune", "bel")
    assert found.after.evidence.ids == ("o2.r1",)
    assert len(server.sent) == 1
    assert "order by km" in server.sent[0][-1].content
    assert [change.how for change in found.changes] == ["reused", "edited"]
    assert run.budget.spent.calls == 1


async def test_an_edited_observation_stands_in_the_place_of_what_came_back(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    replies = iter([LOOK, MORE, "Final answer: bel\nBecause: it is longer [o2.r1]"])
    await record(IterRAG(), "iter_rag", Server(replies), [TableTool()], path)
    server = Server(iter(["Final answer: cer\nBecause: 900 km [o2.r1]"]))
    edit = Edit("2", observation="The river cer has 900 km.")
    found, _ = await again(read_trace(path), edit, server, [])
    assert found.after.answer == "cer"
    assert found.after.evidence.objections == ()
    assert "The river cer has 900 km." in server.sent[0][-1].content


async def test_an_edited_thought_is_what_the_model_goes_on_from(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    replies = iter([LOOK, MORE, "Final answer: bel\nBecause: it is longer [o2.r1]"])
    await record(IterRAG(), "iter_rag", Server(replies), [TableTool()], path)
    server = Server(iter(["Final answer: aune\nBecause: shortest [o1.r1]"]))
    found, _ = await again(read_trace(path), Edit("2", thought="We want the shortest."), server, [TableTool()])
    assert "We want the shortest." in server.sent[0][-1].content
    assert (found.after.answer, len(server.sent)) == ("aune", 1)
    with pytest.raises(SetupError, match="There is no step 9; there are 2"):
        await again(read_trace(path), Edit("9"), server, [TableTool()])
    with pytest.raises(SetupError, match="A step takes"):
        await again(read_trace(path), Edit("1", answer="x"), server, [TableTool()])


def test_only_the_edited_part_of_a_reply_changes() -> None:
    assert replace_reply_fields(LOOK, ReplyFields(thought="other")).splitlines()[0] == "Thought: other"
    assert replace_reply_fields(LOOK, ReplyFields(action="cypher")).splitlines()[1] == "Action: cypher"
    with pytest.raises(SetupError):
        replace_reply_fields("just words", ReplyFields(input="x"))


async def test_a_run_in_several_lines_is_not_taken_for_one(tmp_path: Path) -> None:
    async with going(Server(iter(())), []) as run:
        with run.span("attempt"):
            run.trace.add(Conclusion(Decision("x")))
        with pytest.raises(SetupError, match="not in one line"):
            await rerun_with_edit(run.trace.entries, Edit("1", action=Action("a", "b")), run, IterRAG())


def explorer(messages: list[Message]) -> str:
    """Looks for rivers longer than something that the prompt says, then answers; as a judge it prefers by the text."""
    text = messages[-1].content
    if "# Attempt A" in text:
        return "Better: A" if hash_of(text) % 2 else "Better: B"
    if "[o" in text and hash_of(text) % 3:
        return f"Thought: x\nFinal answer: bel\nBecause: it is long [{re.findall(r'o[0-9]+.r1', text)[-1]}]"
    return f"Thought: x\nAction: sql\nAction input: select name, km from river where km > {hash_of(text) % 100}"


def hash_of(text: str) -> int:
    return zlib.crc32(text.encode())


@pytest.mark.parametrize("name", ["radagent", "best_of_n", "lats"])
async def test_a_search_goes_on_from_an_edited_step_with_all_before_it_as_it_was(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    search = build_technique(name, calls="24")
    async with going(Server(explorer), [TableTool()], path) as run:
        run.trace.add(RunStart(QUESTION, name, "m", {"calls": "24"}))
        await search(QUESTION, run)
    past = read_recorded_run(read_trace(path))
    assert len(past.steps) >= 4, "of several sequences"
    at = len(past.steps) - 1
    server, tool = Server(explorer), Counted()
    found, run = await again(read_trace(path), Edit(str(at), action="select * from river"), server, [tool])
    replayed = [call for call in run.trace.of(LLMCall) if call.replayed]
    assert len(replayed) == past.steps[at - 1].reply + 1, "the edited one too"
    assert [(change.how, change.before == change.after) for change in found.changes[:at]] == [
        *[("reused", True)] * (at - 1),
        ("edited", False),
    ]
    assert run.budget.spent.calls == len(server.sent)
    assert tool.queries[0] == "select * from river"


@dataclass
class Counted(TableTool):
    queries: list[str] = field(default_factory=list)

    async def call(self, text: str) -> Observation:
        self.queries.append(text)
        return await super().call(text)


async def test_a_search_of_several_at_once_and_one_by_log_probabilities_cannot_be_gone_on_from() -> None:
    async with going(Server(explorer), [TableTool()]) as run:
        run.trace.add(RunStart(QUESTION, "radagent at_once=2 calls=9", "m"))
        await build_technique("radagent", at_once="2", calls="9")(QUESTION, run)
        with pytest.raises(SetupError, match="not in one line"):
            await rerun_with_edit(run.trace.entries, Edit("1", action="x"), run)
    async with going(Server(iter(())), [Passages()]) as run:
        run.trace.add(RunStart(QUESTION, "self_rag", "m"))
        run.trace.add(LLMCall("m", [], ("Lyon",)))
        at = run.trace.add(ActionStart("passages", "Arrival"))
        run.trace.add(ActionResult(at, Observation()))
        run.trace.add(Conclusion(Decision("x")))
        with pytest.raises(SetupError, match="log-probabilities cannot be gone on from"):
            await rerun_with_edit(run.trace.entries, Edit("1", observation="x"), run)


async def test_the_trace_of_an_evaluation_names_its_technique_by_a_label() -> None:
    async with going(Server(Policy(PLAN)), [Passages()]) as run:
        run.trace.add(RunStart(QUESTION, "reasoning_dag critic=no", "m", benchmark="b", case="c"))
        await ReasoningDAG(critic="no")(QUESTION, run)
        past = list(run.trace.entries)
    server = Server(Policy(PLAN))
    found, _ = await again(past, Edit("1.2", answer="Denis Villeneuve"), server, [Passages()])
    assert found.after.answer == "Gentilly, Quebec"
    assert server.roles() == ["relevance", "generator", "aggregator"]


async def test_a_retrieval_that_no_llm_asked_for_takes_only_another_observation(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    await record(build_technique("rag"), "rag", Server(iter(["Final answer: Paris"])), [Passages()], path)
    server = Server(iter(["Final answer: Lyon\nBecause: it says so [o1.r1]"]))
    found, _ = await again(read_trace(path), Edit("1", observation="Both were born in Lyon."), server, [])
    assert (found.after.answer, found.after.evidence.ids) == ("Lyon", ("o1.r1",))
    with pytest.raises(SetupError, match="No LLM asked for step 1"):
        await again(read_trace(path), Edit("1", action="other words"), server, [Passages()])
