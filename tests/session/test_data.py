"""Data that are opened once and asked many times."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

import decisor
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.types import Observation
from servers.openai_server import serve
from session.conftest import ANSWER, PLAN, QUERY, database, planner

SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n"
MODEL = """
format = 3
decide = "the site"
choice.pick.rows = "SELECT name FROM site"
change = "UPDATE site SET rent = rent - 1 WHERE name = (SELECT name FROM pick)"
[measure.rent]
goal = "min"
sql = "SELECT sum(rent * (name = 'oak')::INT) + 0.5 * sum(rent * (name = 'elm')::INT) FROM site"
"""


async def test_many_ask_at_once_and_each_has_records_of_its_own(sites: Path) -> None:
    async with decisor.open(db=str(sites)) as data:
        results = await asyncio.gather(*(data.ask(f"Which site? ({at})", llm=planner()) for at in range(40)))
    assert {result.answer for result in results} == {"elm"}
    assert {result.evidence.ids for result in results} == {("o1.r1", "o1.r2")}
    assert [result.question.text for result in results] == [f"Which site? ({at})" for at in range(40)]


async def test_a_real_endpoint_is_opened_once_for_all_questions(sites: Path) -> None:
    connections: set[object] = set()

    def replies(body: dict[str, object]) -> str:
        messages = body["messages"]
        assert isinstance(messages, list)
        connections.add(len(connections))
        return ANSWER if "o1.r1" in messages[-1]["content"] else PLAN.format(tool="sql", query=QUERY)

    async with serve(replies) as url, decisor.open(db=str(sites)) as data:
        results = [await data.ask("Which site?", llm=f"toy@{url}") for _ in range(3)]
        assert len(data.llms.by_spec) == 1
    assert [result.llm for result in results] == ["toy"] * 3 and len(connections) == 6


async def test_cancelling_an_ask_ends_its_query_and_the_next_one_is_answered(sites: Path) -> None:
    async with decisor.open(db=str(sites)) as data:
        tool = data.tools[0]
        assert isinstance(tool, SqlTool) and tool.worker.child is not None
        child = tool.worker.child
        asking = asyncio.create_task(data.ask("Which?", llm=planner(query=SLOW)))
        async with asyncio.timeout(60):
            while not any(SLOW.encode() in one.frame for one in child.sent):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(child.gone, 60)
        assert child.ended
        assert (await data.ask("Which?", llm=planner())).answer == "elm"


async def test_several_databases_are_tools_by_the_names_of_their_files(sites: Path, tmp_path: Path) -> None:
    rents = database(tmp_path / "rents 2024.db", [("ash", 1.0), ("elm", 2.0)])
    async with decisor.open(db=[sites, f"sqlite:///{rents}"]) as data:
        assert [tool.name for tool in data.tools] == ["sites", "rents_2024"]
        result = await data.ask("Which?", llm=planner("rents_2024"))
    assert [record.fields["name"] for record in result.records] == ["ash", "elm"]
    assert result.records[0].source == "rents_2024"


async def test_a_name_of_ones_own_stands_before_the_url(sites: Path, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "a.txt").write_text("The site elm floods every spring.")
    async with decisor.open(db=f"rents=sqlite:///{sites}", docs=["reports/", "more=reports/a.txt"]) as data:
        assert [tool.name for tool in data.tools] == ["rents", "reports", "more"]
        assert (await data.ask("Which?", llm=planner("rents"))).answer == "elm"


async def test_techniques_know_databases_and_documents_by_any_name(sites: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The site elm floods every spring.")
    async with decisor.open(db=[f"rents={sites}", f"again={sites}"]) as data:
        result = await data.ask("Which?", llm=planner("rents"))
    assert (result.answer, result.technique) == ("elm", "plan_rag")
    read = ScriptedLLM(lambda messages: "Final answer: elm\nBecause: it floods [o1.r1]")
    async with decisor.open(docs="notes=a.txt") as data:
        result = await data.ask("Which site floods?", llm=read, technique="rag")
    assert (result.answer, result.records[0].text) == ("elm", "The site elm floods every spring.")
    async with decisor.open(docs=["notes=a.txt", "a.txt"]) as data:
        with pytest.raises(SetupError, match="reads from one place, and there are notes, a"):
            await data.ask("Which site floods?", llm=read, technique="rag")


@pytest.mark.parametrize(
    ("places", "complaint"),
    [
        ({"db": ["sites.db", "other/sites.db"]}, "Two tools are called sites"),
        ({"db": ["a=sites.db"], "docs": ["a=notes"]}, "Two tools are called a"),
        ({"db": ["freight=sites.db"], "tools": ["costs_of_data_test:freight"]}, "Two tools are called freight"),
        ({"db": ["whatif=sites.db"]}, "whatif is a name of decisor's own"),
        ({"db": ["ftp://host/x"]}, "There is no engine for ftp"),
        ({"db": ["postgrsql://host/x"]}, "Did you mean postgresql://"),
        ({"docs": ["sites.db"]}, "is a database"),
    ],
)
async def test_a_clash_of_names_and_a_wrong_place_are_one_line(
    sites: Path, tmp_path: Path, places: dict[str, list[str]], complaint: str
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("Nothing.")
    (tmp_path / "costs_of_data_test.py").write_text("def freight(city: str) -> int:\n    return 1\n")
    with pytest.raises(SetupError, match=complaint) as complaints:
        async with decisor.open(**places):  # type: ignore[arg-type]
            pass
    assert "\n" not in str(complaints.value)


async def test_a_function_and_a_tool_object_are_tools_and_the_object_stays_open(sites: Path) -> None:
    def freight(city: str, tons: float = 1.0) -> dict[str, object]:
        """What it costs to bring tons of goods to a city."""
        return {"city": city, "euros": 90 + 12.5 * tons}

    class Bell:
        name = "bell"
        closed = False

        def describe(self) -> str:
            return "Rings."

        async def call(self, text: str) -> Observation:
            return Observation(note="ding")

        async def close(self) -> None:
            self.closed = True

    bell = Bell()
    async with decisor.open(tools=[freight, bell]) as data:
        assert [tool.name for tool in data.tools] == ["freight", "bell"]
        call = json.dumps({"city": "Ghent", "tons": 4})
        answer = "Final answer: Ghent\nBecause: 140 euros [o1.r1]"
        result = await data.ask("Where?", llm=planner("freight", call, answer))
    assert result.answer == "Ghent" and result.records[0].fields["euros"] == 140
    assert not bell.closed


@pytest.mark.slow
async def test_a_decision_model_is_computed_by_many_at_once_without_mixing_their_candidates(
    sites: Path, tmp_path: Path
) -> None:
    (tmp_path / "sites.toml").write_text(MODEL)
    async with decisor.open(db=str(sites), model="sites.toml") as data:
        results = await asyncio.gather(*(data.ask("Which?", llm="none") for _ in range(6)))
    for result in results:
        assert result.technique == "exact" and result.answer == "oak" and result.llm == ""
        assert result.ranking is not None
        assert [(one.name, one.outcome) for one in result.ranking.options] == [("oak", 899.0), ("elm", 899.5)]


@pytest.mark.slow
async def test_a_failure_to_open_one_closes_the_others(sites: Path) -> None:
    before = children()
    with pytest.raises(SetupError, match="neither a function nor a file"):
        async with decisor.open(db=str(sites), tools=["nothing.json"]):
            pass
    with pytest.raises(SetupError, match=r"nothing\.db"):
        async with decisor.open(db=["nothing.db", str(sites)]):
            pass
    assert children() <= before


def children() -> set[str]:
    """The processes that this one has started and that are there."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


async def test_what_is_worth_a_line_goes_to_the_standard_log_without_passwords(
    sites: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "decisor"):
        async with decisor.open(db=str(sites)) as data:
            await data.ask("Which?", llm=planner())
    assert [record.getMessage() for record in caplog.records] == [
        f"opened {sites} as sql",
        "plan_rag: answered after 2 calls, 1 actions",
    ]
    heard = capsys.readouterr()
    assert not heard.out and not heard.err
    assert decisor.session.sources.build_sources(db="postgresql://me:secret@host/x").places[0].label == "host/x"  # type: ignore[attr-defined]


async def test_an_llm_that_is_an_object_stays_open_for_its_owner(sites: Path) -> None:
    closings: list[str] = []

    class Closing(ScriptedLLM):
        async def close(self) -> None:
            closings.append(self.name)

    async with decisor.open(db=str(sites)) as data:
        await data.ask("Which?", llm=Closing(planner().replies))
    assert not closings
