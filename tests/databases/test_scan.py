"""What a query will read is asked of the engine first; the same query is asked of a database once."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decisor.databases.combine import CombineTool
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import parse_max_scan
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionResult, events_of
from decisor.types import Action
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

SCHEMA = (
    "CREATE TABLE event (id INTEGER PRIMARY KEY, kind INTEGER, label VARCHAR(20))",
    "CREATE TABLE kind (id INTEGER PRIMARY KEY, title VARCHAR(20))",
)
DIGITS = f"(SELECT 0 AS d{''.join(f' UNION ALL SELECT {digit}' for digit in range(1, 10))})"
NUMBERS = f"SELECT a.d + 10 * b.d + 100 * c.d, a.d, 'x' FROM {DIGITS} AS a, {DIGITS} AS b, {DIGITS} AS c"
FILL = (f"INSERT INTO event {NUMBERS}", "INSERT INTO kind VALUES (1, 'one'), (2, 'two'), (3, 'three')")
MORE_KINDS = f"INSERT INTO kind VALUES {', '.join(f'({number}, {chr(39)}k{chr(39)})' for number in range(4, 41))}"
AGAIN = (
    "SELECT a.id, (SELECT count(*) FROM kind AS b WHERE b.title <> a.title) AS n FROM kind AS a",
    "SELECT a.id FROM kind AS a WHERE 3 < (SELECT max(b.id) FROM kind AS b WHERE b.title <> a.title)",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r JOIN kind AS k ON k.title LIKE '%u%' "
    "WHERE n < 90) SELECT count(*) FROM r",
)
"""Each reads a table of 40 rows many times."""
NAMES = (
    "SELECT count(*) FROM event AS kind WHERE label LIKE '%y' UNION ALL SELECT count(*) FROM kind",
    "SELECT count(*) FROM kind AS a WHERE EXISTS (SELECT 1 FROM event AS a WHERE a.label LIKE '%y')",
    "SELECT count(*) FROM event AS {quote}a b{quote} WHERE label LIKE '%y'",
    "SELECT count(*) FROM {quote}big one{quote} WHERE label LIKE '%y'",
)
"""Each reads a table of 1,000 rows under a name that says nothing of it."""
REFUSED = (
    "SELECT count(*) FROM event AS e WHERE e.label LIKE '%y%'",
    "SELECT count(*) FROM event JOIN event AS b ON event.label <> b.label",
    "WITH w AS (SELECT * FROM event) SELECT count(*) FROM w WHERE label = 'x'",
)
RUN = (
    "SELECT title FROM kind",
    "SELECT label FROM event WHERE id = 7",
    "SELECT 1 AS one",
    "SELECT k.title FROM kind AS k JOIN event AS e ON e.id = k.id WHERE k.id = 2",
)


async def limits_hold(url: str, run: tuple[str, ...] = RUN) -> None:
    tool = await SqlTool.open(url)
    tool.max_scans = (parse_max_scan("500 rows"),)
    try:
        for query in REFUSED:
            with pytest.raises(
                ToolError, match=r"Not run: it would read about .* at most 500 rows are allowed"
            ) as raised:
                await tool.call(query)
            assert raised.value.refused and "Let it read less" in str(raised.value)
        for query in run:
            assert (await tool.call(query)).records
        tool.max_scans = (parse_max_scan("100MB"),)
        assert (await tool.call(REFUSED[0])).records
        tool.max_scans = (parse_max_scan("1KB"),)
        with pytest.raises(ToolError, match="bytes"):
            await tool.call(REFUSED[0])
        with pytest.raises(ToolError, match="no_such"):
            await tool.call("SELECT no_such FROM event")
    finally:
        await tool.close()


async def none_runs(url: str, queries: tuple[str, ...]) -> None:
    tool = await SqlTool.open(url)
    tool.max_scans = (parse_max_scan("500 rows"),)
    dialect = tool.worker.description.dialect
    assert dialect is not None
    try:
        for query in queries:
            text = query.format(quote=dialect.quoted("x")[0])
            with pytest.raises(ToolError, match="at most 500 rows are allowed"):
                raise AssertionError(f"it ran: {text}: {await tool.call(text)}")
    finally:
        await tool.close()


BIG_ONE = "CREATE TABLE {0}big one{0} AS SELECT * FROM event"


async def test_what_reads_a_table_again_and_again_or_by_another_name_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "log.db")) as db, db:
        for statement in (*SCHEMA, *FILL, MORE_KINDS, BIG_ONE.format('"')):
            db.execute(statement)
    ranges = (
        "SELECT count(*) FROM event WHERE id > 0 AND label LIKE '%y'",
        "SELECT count(*) FROM event AS e JOIN kind AS k ON e.id >= k.id",
        "SELECT count(*) FROM event AS a JOIN event AS b ON a.label = b.label WHERE a.id = 7",
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100) "
        "SELECT (SELECT count(*) FROM kind WHERE title <> n) FROM r",
    )
    await none_runs(f"sqlite:///{tmp_path}/log.db", (*AGAIN, *NAMES, *ranges))


async def test_what_reads_a_table_again_and_again_is_refused_on_duckdb(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "log.duckdb")) as db:
        for statement in (*SCHEMA, *FILL, MORE_KINDS, BIG_ONE.format('"')):
            db.execute(statement)
    await none_runs(f"duckdb:///{tmp_path}/log.duckdb", (AGAIN[-1], *NAMES))


async def test_what_reads_a_table_again_and_again_is_refused_on_postgresql() -> None:
    index = "CREATE INDEX places ON event (kind)"
    filtered = (
        "SELECT * FROM event WHERE label LIKE '%y%' ORDER BY id LIMIT 1",
        "SELECT * FROM event WHERE id > 0 AND label LIKE '%y%' ORDER BY id LIMIT 1",
    )
    with postgres_database((*SCHEMA, *FILL, MORE_KINDS, BIG_ONE.format('"'), index, "ANALYZE")) as url:
        await none_runs(url, (*AGAIN, *NAMES, *filtered))


@pytest.mark.parametrize("server", MYSQLS)
async def test_what_reads_a_table_again_and_again_is_refused_on_mysql(server: str) -> None:
    ordered = "SELECT * FROM event WHERE label LIKE '%y%' ORDER BY id LIMIT 1"
    made = (*SCHEMA, *FILL, MORE_KINDS, BIG_ONE.format("`"), "ANALYZE TABLE event, kind, `big one`")
    with mysql_database(made, MYSQLS[server]) as url:
        await none_runs(url, (*AGAIN, *NAMES, ordered))


async def test_find_searches_no_more_values_than_a_query_may_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "log.db")) as db, db:
        for statement in (*SCHEMA, *FILL):
            db.execute(statement)
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/log.db")
    assert (await tool.call("find x")).records
    tool.max_scans = (parse_max_scan("500 rows"),)
    observation = await tool.call("find x")
    await tool.close()
    assert not observation.records and "Of 2 tables with texts, 1 could be looked into." in observation.note


async def test_what_is_measured_beside_a_query_reads_no_more_than_a_query_may(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "log.db")) as db, db:
        for statement in (*SCHEMA, *FILL):
            db.execute(statement)
    for most, is_measured in (("5M", True), ("500 rows", False)):
        tool = await SqlTool.open(f"sqlite:///{tmp_path}/log.db")
        tool.max_scans = (parse_max_scan(most),)
        note = (await tool.call("SELECT id FROM event WHERE id = 7 AND label = 'nowhere'")).note
        await tool.close()
        assert tool.pitfalls is not None
        scans = [rows for query, rows in tool.pitfalls.stored.results.items() if "label" in query]
        assert scans and all((rows is not None) == is_measured for rows in scans)
        assert ("event.label has no" in note) == is_measured


async def test_a_query_that_reads_too_much_is_refused_on_sqlite(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "log.db")) as db, db:
        for statement in (*SCHEMA, *FILL):
            db.execute(statement)
    await limits_hold(f"sqlite:///{tmp_path}/log.db")


async def test_a_query_that_reads_too_much_is_refused_on_duckdb(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "log.duckdb")) as db:
        for statement in (*SCHEMA, *FILL):
            db.execute(statement)
    await limits_hold(f"duckdb:///{tmp_path}/log.duckdb", (RUN[0], RUN[2]))


async def test_a_query_that_reads_too_much_is_refused_on_postgresql() -> None:
    with postgres_database((*SCHEMA, *FILL, "ANALYZE")) as url:
        await limits_hold(url)


@pytest.mark.parametrize("server", MYSQLS)
async def test_a_query_that_reads_too_much_is_refused_on_mysql(server: str) -> None:
    with mysql_database((*SCHEMA, *FILL, "ANALYZE TABLE event, kind"), MYSQLS[server]) as url:
        await limits_hold(url)


def test_a_limit_that_is_neither_rows_nor_bytes_is_the_persons_mistake() -> None:
    with pytest.raises(SetupError, match="such as 5M or 2GB, not 'a lot'"):
        parse_max_scan("a lot")


async def test_a_run_keeps_to_the_limit_and_says_why(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "log.db")) as db, db:
        for statement in (*SCHEMA, *FILL):
            db.execute(statement)
    llm = ScriptedLLM([REFUSED[0], "SELECT count(*) AS n FROM kind", "Answer: 3 [o2.r1]"])
    async with decisor.open(db=f"sqlite:///{tmp_path}/log.db") as data:
        result = await data.ask(
            "How many?", llm=llm, technique="single_rag", max_scan="100", settings={"calling": "text"}
        )
    notes = [event.observation.note for event in events_of(result.trace, ActionResult)]
    assert "at most 100 rows are allowed" in notes[0] and result.answer == "3"


async def test_the_same_query_is_run_once_in_a_run_and_its_note_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as db, db:
        for statement in (*SCHEMA, *FILL):
            db.execute(statement)
    tool = await SqlTool.open(f"sqlite:///{path}")
    box = Toolbox([tool, CombineTool()])
    try:
        first = await box.step(Action("sql", "SELECT title FROM kind"))
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM kind")
        second = await box.fork().step(Action("sql", "SELECT title\n  FROM kind ;"))
        assert [record.fields for record in second.records] == [record.fields for record in first.records]
        assert [record.id for record in second.records] == ["o2.r1", "o2.r2", "o2.r3"]
        assert second.note == "The same query as o1: it was not run again."
        assert (await box.step(Action("combine", "SELECT count(*) AS n FROM o2"))).records[0].fields == {"n": 3}
        for text in ("a  b", "a b"):
            assert (await box.step(Action("sql", f"SELECT '{text}' AS t"))).records[0].fields == {"t": text}
        assert not (await Toolbox([tool]).step(Action("sql", "SELECT title FROM kind"))).records, (
            "another run asks anew"
        )
    finally:
        await box.close()
