"""Schemas that are too long for a prompt: what of them is shown for a question, and how a model asks for more."""

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

import decisor
from decisor.cli import main
from decisor.databases.schema import ColumnInfo, TableInfo
from decisor.databases.schema_search import SchemaIndex
from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.prompt import estimate_tokens
from decisor.types import Message
from servers.sql_databases import postgres_database

QUESTION = "Which ships carry the most cannons, and in which harbour do they lie?"
FLEET = (
    "CREATE TABLE harbour (harbour_id INTEGER PRIMARY KEY, title TEXT)",
    "CREATE TABLE ship (ship_id INTEGER PRIMARY KEY, class TEXT, cannons INTEGER, lies_in INTEGER "
    "REFERENCES harbour(harbour_id))",
    "INSERT INTO harbour VALUES (1, 'Hoorn'), (2, 'Seville')",
    "INSERT INTO ship VALUES (1, 'manowars', 70, 1), (2, 'galleys', 8, 2)",
)


def fillers(number: int) -> list[str]:
    """Tables of other things, with names of their own."""
    letters = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeio" for c in "rstn"]
    pairs = [f"{one}{two}" for one in letters for two in letters][:number]
    return [f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {name}_value REAL, {name}_word TEXT)" for name in pairs]


def large(folder: Path, statements: Sequence[str] = FLEET, others: int = 500) -> str:
    path = folder / "large.db"
    with closing(sqlite3.connect(path)) as db, db:
        for statement in [*fillers(others), *statements]:
            db.execute(statement)
    return f"sqlite:///{path}"


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[SqlTool]:
    tool = await SqlTool.open(url)
    try:
        yield tool
    finally:
        await tool.close()


async def test_the_tables_of_the_question_are_shown_with_values_within_the_budget(tmp_path: Path) -> None:
    async with opened(large(tmp_path)) as tool:
        view = await tool.about(QUESTION)
        text = view.describe()
        assert estimate_tokens(text) <= 2_000
        assert "table ship (2 rows)" in text and 'class text, e.g. "manowars", "galleys"' in text
        assert "table harbour (2 rows)" in text, "a neighbour by its foreign key"
        assert "references harbour(harbour_id)" in text
        assert "It has 502 tables" in text and "more tables" in text
        assert tool.describe() != text, "the open tool serves other questions too"


async def test_a_small_schema_is_shown_whole_and_alike_for_every_question(tmp_path: Path) -> None:
    async with opened(large(tmp_path, others=3)) as tool:
        assert await tool.about(QUESTION) is tool
        assert "find WORDS" not in tool.describe() and tool.describe().count("\ntable ") == 5


async def test_a_model_asks_for_all_of_a_table(tmp_path: Path) -> None:
    async with opened(large(tmp_path)) as tool:
        note = (await tool.call("describe ship, Harbour")).note
        assert "table ship (2 rows)" in note and "table harbour (2 rows)" in note and '"Seville"' in note
        with pytest.raises(ToolError, match=r"There is no table shipp\. Did you mean: ship"):
            await tool.call("describe shipp")


@pytest.mark.slow
async def test_a_model_finds_where_a_value_is_stored_and_can_cite_it(tmp_path: Path) -> None:
    async with opened(large(tmp_path)) as tool:
        observation = await tool.call("find 'ManOWars'")
        assert [dict(record.fields) for record in observation.records] == [
            {"table": "ship", "column": "class", "value": "manowars"}
        ]
        nothing = await tool.call("find 'rowing boats'")
        assert not nothing.records and 'Stored values with "rowing boats": none.' in nothing.note
        assert "ship: " in (await tool.call("find cannons")).note


async def test_what_may_not_be_seen_is_neither_described_nor_found(tmp_path: Path) -> None:
    tool = await SqlTool.open(large(tmp_path), deny_tables=["ship"])
    try:
        assert "ship" not in (await tool.about(QUESTION)).describe()
        assert not (await tool.call("find 'manowars'")).records
        with pytest.raises(ToolError, match="There is no table ship"):
            await tool.call("describe ship")
    finally:
        await tool.close()


async def test_signs_of_patterns_in_a_value_mean_themselves(tmp_path: Path) -> None:
    extra = ("CREATE TABLE note (body TEXT)", "INSERT INTO note VALUES ('100% sure'), ('it''s 100 or so')")
    async with opened(large(tmp_path, extra, others=3)) as tool:
        assert [record.fields["value"] for record in (await tool.call("find '100%'")).records] == ["100% sure"]
        assert [record.fields["value"] for record in (await tool.call("find it's")).records] == ["it's 100 or so"]


async def test_tables_that_differ_in_digits_only_are_one_and_the_year_of_the_question_stands_for_them(
    tmp_path: Path,
) -> None:
    days = [f"CREATE TABLE visits_{year} (visit_id INTEGER, page TEXT)" for year in range(1990, 2020)]
    async with opened(large(tmp_path, days)) as tool:
        text = (await tool.about("How many visits did the page get in 2003?")).describe()
        assert "table visits_2003 (0 rows) and 29 alike (visits_1990 to visits_2019)" in text
        assert text.count("table visits_") == 1
        assert "Tables like it: " in (await tool.call("describe visits_1999")).note


def test_a_wide_table_shows_the_columns_that_the_question_names() -> None:
    columns = tuple(ColumnInfo(f"measure_{number}", "REAL") for number in range(900))
    wide = TableInfo("survey", (*columns, ColumnInfo("median_income", "REAL", comment="in dollars")))
    other = TableInfo("other", tuple(ColumnInfo(f"c{number}", "TEXT") for number in range(900)))
    from decisor.databases.schema_text import describe_schema_briefly
    from decisor.sandbox.engines import load_engine

    view = describe_schema_briefly(
        load_engine("sqlite"), SchemaIndex([other, wide]), "What is the median income in the survey?", 1_000
    )
    assert view.tables[0].table == "survey" and "median_income" in view.tables[0].columns
    assert "-- in dollars" in view.text and "+887 columns" in view.text and view.tokens <= 1_000


async def test_a_run_is_shown_the_tables_of_its_question(tmp_path: Path) -> None:
    prompts: list[str] = []

    def reply(messages: Sequence[Message]) -> str:
        prompts.append("\n".join(message.content for message in messages))
        return (
            "SELECT class FROM ship ORDER BY cannons DESC LIMIT 1" if len(prompts) == 1 else "Answer: manowars [o1.r1]"
        )

    async with decisor.open(db=large(tmp_path)) as data:
        await data.ask(QUESTION, llm=ScriptedLLM(reply), technique="single_rag", settings={"calling": "text"})
    assert "table ship (2 rows)" in prompts[0] and estimate_tokens(prompts[0]) < 3_500


def test_doctor_says_which_tables_a_question_would_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--llm", "none", "--db", large(tmp_path), "--question", QUESTION, "--json"])
    database = json.loads(capsys.readouterr().out)["database"]
    names = [one["table"] for one in database["tables"]]
    assert names[:2] == ["ship", "harbour"] and database["tables"][0]["whole"]
    assert database["tokens"] == estimate_tokens(database["schema"]) <= 2_000
    assert database["others"] == 502 - sum(1 + len(one["alike"]) for one in database["tables"])
    assert 0 < database["tables"][0]["tokens"] < 200


async def test_other_schemas_materialized_views_enumerations_and_arrays_of_postgresql_are_shown() -> None:
    statements = (
        "CREATE TYPE mood AS ENUM ('sad', 'it''s ok')",
        "CREATE TABLE person (id INTEGER PRIMARY KEY, mood mood, moods mood[], scores INTEGER[])",
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person(id), what TEXT)",
        "CREATE TABLE sales.lines (order_id INTEGER REFERENCES sales.orders(id))",
        "CREATE MATERIALIZED VIEW totals AS SELECT person_id, count(*) AS n FROM sales.orders GROUP BY 1",
        "COMMENT ON COLUMN sales.orders.what IS 'the goods, by name'",
        "INSERT INTO person VALUES (1, 'sad', '{sad}', '{1,2}')",
        "INSERT INTO sales.orders VALUES (1, 1, 'lantern')",
    )
    with postgres_database(statements) as url:
        async with opened(url) as tool:
            text = tool.describe()
            assert "mood ENUM('sad', 'it''s ok'), e.g." in text and "moods ENUM('sad', 'it''s ok')[]" in text
            assert "scores INTEGER[]" in text and "view totals" in text
            assert "table sales.orders (1 row)" in text and "references person(id)" in text
            assert "order_id int, references sales.orders(id)" in text
            records = (await tool.call("SELECT what FROM sales.orders")).records
            assert records[0].fields["what"] == "lantern"
            assert "-- the goods, by name" in (await tool.call("describe orders")).note
            assert dict((await tool.call("find lantern")).records[0].fields) == {
                "table": "sales.orders",
                "column": "what",
                "value": "lantern",
            }
            assert (await tool.call("find 'ok'")).records[0].fields["value"] == "it's ok"
            assert (await tool.fetch(f"SELECT * FROM {tool.quoted('sales.orders')}")).rows == ((1, 1, "lantern"),)


async def test_tables_of_other_schemas_of_duckdb_are_shown(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        db.execute("CREATE SCHEMA sales; CREATE TABLE sales.orders (id INTEGER PRIMARY KEY, what VARCHAR)")
        db.execute("INSERT INTO sales.orders VALUES (1, 'lantern'); CREATE TABLE person (name VARCHAR)")
    async with opened(f"duckdb:///{tmp_path}/shop.duckdb") as tool:
        assert [table.name for table in tool.tables] == ["person", "sales.orders"]
        assert "table sales.orders (1 row)" in tool.describe()
        assert (await tool.call("SELECT what FROM sales.orders")).records[0].fields["what"] == "lantern"


def test_a_graph_of_many_labels_is_shown_for_the_question_within_the_budget() -> None:
    from decisor.databases.schema_search import SchemaIndex
    from decisor.graphs.schema import GraphSchema, render_graph_schema, tables_of_labels
    from decisor.graphs.schema import describe_graph_briefly as graph_brief

    names = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeio" for c in "rstnlmp"]
    labels = {name.title(): 10 for name in names} | {"Ship": 5, "Harbour": 2}
    properties = {
        label: (ColumnInfo("id", "int", examples=("1", "2")), ColumnInfo("name", "string", examples=('"x"',)))
        for label in labels
    }
    links = {("Ship", "LIES_IN", "Harbour"): 5} | {(one, "NEXT_TO", "Bar"): 3 for one in list(labels)[:100]}
    schema = GraphSchema(labels, links, {}, properties)
    text = graph_brief(schema, SchemaIndex(tables_of_labels(schema)), QUESTION)
    assert estimate_tokens(render_graph_schema(schema)) > 2_500 and estimate_tokens(text) <= 2_000
    assert "(:Ship) 5 nodes" in text and "(:Ship)-[:LIES_IN]->(:Harbour) 5" in text and "more labels: " in text
    small = GraphSchema({"Ship": 5}, {}, {}, {})
    assert graph_brief(small, SchemaIndex(tables_of_labels(small)), QUESTION) == render_graph_schema(small)
