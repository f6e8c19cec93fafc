"""Several sources in one question: SQL over what was fetched from them."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decisor.databases.combine import CombineTool
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.tools.toolbox import Toolbox
from decisor.types import Action, Message, Observation, Record

SITES = (
    "CREATE TABLE site (id INTEGER, city TEXT, tons REAL)",
    "INSERT INTO site VALUES (1, 'Ghent', 4), (2, 'Oslo', 10)",
)
RENTS = ("CREATE TABLE rent (town TEXT, euros TEXT)", "INSERT INTO rent VALUES ('Ghent', '12.10'), ('Oslo', '30.05')")


def database(path: Path, statements: Sequence[str]) -> str:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
    return f"sqlite:///{path}"


def remembering(*observations: Sequence[Record]) -> CombineTool:
    tool = CombineTool()
    for number, records in enumerate(observations, 1):
        tool.remember(number, Action("own", ""), Observation(tuple(records)), tool)
    return tool


def rows(observation: Observation) -> list[dict[str, object]]:
    return [dict(record.fields) for record in observation.records]


@pytest.mark.slow
async def test_rows_of_two_databases_are_joined_and_can_be_cited(tmp_path: Path) -> None:
    sites = await SqlTool.open(database(tmp_path / "sites.db", SITES), "sites")
    rents = await SqlTool.open(database(tmp_path / "rents.db", RENTS), "rents")
    box = Toolbox([sites, rents, CombineTool()])
    try:
        await box.step(Action("sites", "SELECT city, tons FROM site"))
        await box.step(Action("rents", "SELECT town, euros FROM rent"))
        query = "SELECT city, round(euros * tons, 2) AS cost FROM o1 JOIN o2 ON city = town ORDER BY cost"
        observation = await box.step(Action("combine", query))
        assert rows(observation) == [{"city": "Ghent", "cost": 48.4}, {"city": "Oslo", "cost": 300.5}]
        assert [record.id for record in observation.records] == ["o3.r1", "o3.r2"]
        again = await box.step(Action("combine", "SELECT max(cost) AS most FROM o3"))
        assert rows(again) == [{"most": 300.5}]
        assert again.records[0].source == "combine o3"
    finally:
        await box.close()


async def test_rows_that_were_cut_off_are_in_it_too(tmp_path: Path) -> None:
    count = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000)"
    many = ("CREATE TABLE number (x INTEGER)", f"INSERT INTO number {count} SELECT x FROM n")
    tool = await SqlTool.open(database(tmp_path / "many.db", many))
    box = Toolbox([tool, CombineTool()])
    try:
        observation = await box.step(Action("sql", "SELECT x FROM number"))
        assert observation.truncated and len(observation.records) == 200
        assert rows(await box.step(Action("combine", "SELECT count(*) AS n, sum(x) AS total FROM o1"))) == [
            {"n": 5000, "total": 12502500}
        ]
    finally:
        await box.close()


async def test_passages_and_nested_values_of_apis_are_tables_too() -> None:
    passage = Record("o1.r1", {"page": 3}, "Ghent is closed in May.", "report.pdf")
    weather = Record("o2.r1", {"city": "Ghent", "days": [1, 2], "at": {"lat": 51.0}})
    tool = remembering([passage], [weather])
    query = (
        "SELECT o1.source, o2.city, json_extract(o2.at, '$.lat') AS lat FROM o1 JOIN o2 ON contains(o1.text, o2.city)"
    )
    assert rows(await tool.call(query)) == [{"source": "report.pdf", "city": "Ghent", "lat": "51.0"}]


REFUSED = [
    ("SELECT * FROM o7", "There is no observation o7 with rows. There is o1"),
    ("SELECT 1", "Name the observations to read as tables, such as o1"),
    ("SELECT total FROM o1", "o1 has city, tons"),
    ("SELECT * FROM o1, '/etc/passwd'", "Refused"),
    ("SELECT * FROM o1, read_csv('/etc/passwd')", "Refused"),
    ("SELECT * FROM o1, read_text('http://127.0.0.1/')", "Refused"),
    ("COPY o1 TO '/tmp/o1.csv'", "Refused"),
    ("ATTACH '/tmp/o1.db' AS o1", "Refused"),
    ("DROP TABLE o1", "Refused"),
    ("INSTALL httpfs; SELECT * FROM o1", "Refused"),
    ("SELECT getenv('HOME') FROM o1", "Refused"),
]


@pytest.mark.slow
async def test_what_does_not_read_the_observations_is_refused() -> None:
    tool = remembering([Record("o1.r1", {"city": "Ghent", "tons": 4})])
    for statement, complaint in REFUSED:
        with pytest.raises(ToolError) as raised:
            await tool.call(statement)
        assert complaint in str(raised.value)


async def test_codes_stay_text_and_columns_of_mixed_kinds_are_text() -> None:
    tool = remembering([Record("o1.r1", {"zip": "0105", "mixed": 1}), Record("o1.r2", {"zip": "9000", "mixed": "x"})])
    assert rows(await tool.call("SELECT zip, mixed FROM o1 ORDER BY zip")) == [
        {"zip": "0105", "mixed": "1"},
        {"zip": "9000", "mixed": "x"},
    ]


async def test_a_run_over_two_databases_is_shown_what_each_holds_and_cites_what_it_combined(tmp_path: Path) -> None:
    prompts: list[str] = []
    steps = [
        "Thought: the tons\nAction: sites\nInput: SELECT city, tons FROM site",
        "Thought: the rents\nAction: rents\nInput: SELECT town, euros FROM rent",
        "Thought: join\nAction: combine\nInput: SELECT city, euros * tons AS cost FROM o1 JOIN o2 ON city = town "
        "ORDER BY 2",
        "Thought: Ghent costs least.\nFinal answer: Ghent [o3.r1]",
    ]

    def reply(messages: Sequence[Message]) -> str:
        prompts.append("\n".join(message.content for message in messages))
        return steps[len(prompts) - 1]

    play: Callable[[Sequence[Message]], str] = reply
    places = [f"sites={database(tmp_path / 'a.db', SITES)}", f"rents={database(tmp_path / 'b.db', RENTS)}"]
    async with decisor.open(db=places) as data:
        result = await data.ask(
            "Which is cheapest?", llm=ScriptedLLM(play), technique="iter_rag", settings={"calling": "text"}
        )
    assert result.answer == "Ghent" and [record.fields["cost"] for record in result.records] == [48.4]
    assert "### Tool: combine" in prompts[0]
    assert "- sites: SQLite, 1 table: site\n- rents: SQLite, 1 table: rent" in prompts[0]


async def test_one_source_alone_is_offered_nothing_to_combine(tmp_path: Path) -> None:
    llm = ScriptedLLM(["SELECT 1 AS one", "Answer: 1 [o1.r1]"])
    async with decisor.open(db=database(tmp_path / "a.db", SITES)) as data:
        result = await data.ask("One?", llm=llm, technique="single_rag", settings={"calling": "text"})
    assert "combine" not in json.dumps(result.to_dict())


async def test_no_source_may_be_called_combine(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="combine is a name of decisor's own"):
        async with decisor.open(db=f"combine={database(tmp_path / 'a.db', SITES)}"):
            pass


async def test_columns_that_differ_in_case_get_numbers_that_are_free() -> None:
    tool = remembering([Record("o1.r1", {"a_2": 1, "a": 2, "A": 3})])
    assert rows(await tool.call("SELECT * FROM o1")) == [{"a_2": 1, "a": 2, "A_3": 3}]
