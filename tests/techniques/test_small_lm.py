"""A real small LLM that can keep no form, through every technique that fits: endings, limits, messages and usage. No
test looks at what it answers."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import decisor
from decisor.errors import LLMError, SetupError
from decisor.lab.game24 import Puzzle, make_puzzle_question
from decisor.llms import choose
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.shared import close_llm
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.session.result import Result
from decisor.session.run_setup import decide_by_technique
from decisor.techniques import build_technique
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import LLMCall, UnreadableReply, events_of
from decisor.types import LLM
from servers import small_lm
from servers.small_lm import SmallLLM
from techniques.shelf import shelf
from techniques.table import TableTool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(small_lm.missing()) and not os.environ.get("DECISOR_REQUIRE_SERVERS"), reason=small_lm.missing()
    ),
]
ON_TABLES = ("agent", "single_rag", "iter_rag", "plan_rag", "reasoning_dag", "radagent", "reflexion")
ON_GRAPHS = ("agent", "iter_rag", "plan_rag")
ON_DOCUMENTS = ("vanilla", "rag", "self_ask", "ircot", "iter_retgen", "react", "furepa", "reasoning_dag")
SEARCHES = ("cot", "best_of_n", "bfs", "dfs", "dfsdt", "tot", "lats", "radagent")
CALLS, MOST = 2, 16
FOR_THE_MODEL = ("Write ", "Answer again", "Action input", "in the form", "You ", "Your ", "(unreadable)")
QUESTION = decisor.Question("Which river is longer, aune or bel?")


@pytest.fixture(scope="module")
def llm() -> Iterator[SmallLLM]:
    with small_lm.serve(context=4096, most=MOST, threads=1) as server:
        yield server


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "rivers.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE river (name TEXT, km REAL)")
        database.execute("INSERT INTO river VALUES ('aune', 120.5), ('bel', 340.25)")
    return str(path)


def named(llm: SmallLLM) -> str:
    return f"smollm2@{llm.url} max_tokens={MOST} timeout=600"


def client_of(server: SmallLLM) -> LLM:
    client = choose.choose_llm(named(server), {})
    assert client is not None
    return client


def check(result: Result | Run, server: SmallLLM, before: dict[str, int], reasons: tuple[str, ...]) -> None:
    """It ended within its limit, its usage is what the server counted, and no word for the model reaches the person."""
    entries = result.trace if isinstance(result, Result) else result.trace.entries
    usage = result.usage if isinstance(result, Result) else result.budget.spent
    after = server.counters()
    assert 1 <= usage.calls <= CALLS
    assert usage.completion_tokens == after["completion"] - before["completion"]
    assert usage.prompt_tokens - usage.cache_reads == after["prompt"] - before["prompt"]
    unread = sum(1 for _ in events_of(entries, UnreadableReply))
    calls = [*events_of(entries, LLMCall)]
    ours = [reason for reason in reasons if not any(reason[:40] in text for call in calls for text in call.texts)]
    assert not [reason for reason in ours if any(words in reason for words in FOR_THE_MODEL)]
    if unread == len(calls) > 1:
        assert any(f"{unread} of {unread} replies could not be read" in reason for reason in reasons)
    assert not any("(unreadable)" in message.content for call in calls for message in call.messages)


@pytest.mark.parametrize("name", ON_TABLES)
def test_on_tables(name: str, llm: SmallLLM, database: str) -> None:
    before = llm.counters()
    result = decisor.ask(QUESTION, db=database, llm=named(llm), technique=name, limits=Limits(calls=CALLS))
    check(result, llm, before, result.decision.reasons)


@pytest.mark.parametrize("name", ["plan_rag", "iter_rag", "single_rag"])
async def test_its_server_takes_each_schema_with_its_sizes(name: str, llm: SmallLLM) -> None:
    client = client_of(llm)
    assert isinstance(client, OpenAICompatible)
    run = Run(client, Toolbox([TableTool()]), Budget(Limits(calls=CALLS)), calling="json")
    await decide_by_technique(build_technique(name), QUESTION, run)
    await close_llm(client)
    assert client.dropped == set() and run.budget.spent.calls > 0


@pytest.mark.parametrize("name", ON_GRAPHS)
def test_on_graphs(name: str, llm: SmallLLM, tmp_path: Path) -> None:
    import kglite

    graph = kglite.KnowledgeGraph()
    graph.cypher("CREATE (:River {name: 'aune', km: 120.5}), (:River {name: 'bel', km: 340.25})")
    graph.save(str(tmp_path / "rivers.kgl"))
    before = llm.counters()
    result = decisor.ask(
        QUESTION, graph=str(tmp_path / "rivers.kgl"), llm=named(llm), technique=name, limits=Limits(calls=CALLS)
    )
    check(result, llm, before, result.decision.reasons)


async def in_environment(name: str, env: Any, asked: decisor.Question, llm: SmallLLM, **settings: str) -> None:
    before = llm.counters()
    client = client_of(llm)
    run = Run(client, env, Budget(Limits(calls=CALLS)))
    decision = await decide_by_technique(build_technique(name, **settings), asked, run)
    await close_llm(client)
    check(run, llm, before, decision.reasons)


@pytest.mark.parametrize("name", ON_DOCUMENTS)
async def test_on_documents(name: str, llm: SmallLLM) -> None:
    await in_environment(name, shelf(), decisor.Question("Where was the author of Emma born?"), llm)


@pytest.mark.parametrize("name", SEARCHES)
async def test_on_the_game_of_24(name: str, llm: SmallLLM) -> None:
    await in_environment(name, Puzzle.of("4 5 6 10"), make_puzzle_question("4 5 6 10"), llm, calls=str(CALLS))


async def test_a_conversation_that_outgrows_the_context_ends_with_a_reason(database: str) -> None:
    with small_lm.serve(context=1024, most=MOST, threads=1) as llm:
        assert llm.holds_tokens() == 1024
        long = decisor.Question("Which river is longer? " + "Think of the rivers of the north and the south. " * 200)
        async with decisor.open(db=database) as data:
            with pytest.raises(LLMError) as raised:
                await data.ask(long, llm=named(llm), technique="iter_rag", limits=Limits(calls=CALLS))
    assert raised.value.kind == "context"


@pytest.mark.parametrize("name", ["self_rag", "rq_rag"])
async def test_weights_without_control_tokens_are_noticed(name: str) -> None:
    with small_lm.serve(context=4096, most=MOST, threads=1, special=True) as llm:
        client = client_of(llm)
        with pytest.raises(SetupError, match="knows none of its control tokens"):
            await build_technique(name)(QUESTION, Run(client, shelf()))
        await close_llm(client)
