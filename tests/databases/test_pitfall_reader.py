"""The reader of pitfalls has no exception for any statement: those of the guard's corpus, and mutations of them."""

import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from data import read_security_rows
from databases.test_sql_corpus import build
from decisor.databases.pitfalls.rules import Pitfalls
from decisor.databases.sql import SqlTool
from decisor.sandbox.dialect import FullName
from decisor.sandbox.engines import duckdb, mysql, postgres, sqlite
from decisor.system.extras import note_faults
from decisor.types import Table

DIALECTS = {one.name: one for one in (sqlite.DIALECT, duckdb.DIALECT, postgres.DIALECT, mysql.DIALECT)}
TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|\s+|.", re.S)
ROWS = Table(("a",), ((1,), (2,)))


def corpus(form: str) -> list[dict[str, str]]:
    return [row for name in ("benign", "hostile") for row in read_security_rows(f"{name}_{form}")]


def mutate(statement: str, others: list[str], chance: random.Random) -> str:
    """One to three changes of its words: brackets around, lost, doubled, swapped, of another statement."""
    words = TOKEN.findall(statement)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(words)) if words else 0
        upto = min(len(words), at + chance.randint(1, 6))
        match chance.randrange(6):
            case 0:
                words[at:upto] = ["(", *words[at:upto], ")"]
            case 1:
                words[at:upto] = []
            case 2:
                words[at:at] = words[at:upto]
            case 3:
                words[at:upto] = TOKEN.findall(chance.choice(others))[: chance.randint(1, 12)]
            case 4:
                words[at:upto] = reversed(words[at:upto])
            case 5:
                words[at:upto] = ["(", chance.choice(others), ")"]
    return "".join(words)


async def raised(pitfalls: Pitfalls, statement: str) -> str:
    try:
        for result in (None, ROWS):
            pitfalls.stored.results.clear()
            await pitfalls.look(statement, result)
    except Exception as error:
        return f"{type(error).__name__} {error}: {statement}"
    return ""


async def open_shop(folder: Path) -> SqlTool:
    build("sqlite", folder / "shop.sqlite")
    return await SqlTool.open(f"sqlite:///{folder}/shop.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_statement_of_the_corpus_nor_a_mutation_of_it_raises(dialect: str, tmp_path: Path) -> None:
    tool = await open_shop(tmp_path)
    pitfalls = Pitfalls.of(tool.worker, DIALECTS[dialect], tool.tables)
    statements = [row["statement"] for row in corpus("sql") if row["dialect"] == dialect]
    chance = random.Random(27)
    texts = [*statements, *(mutate(one, statements, chance) for one in statements for _ in range(4))]
    faults = [fault for text in texts if (fault := await raised(pitfalls, text))]
    await tool.close()
    assert len(texts) >= 495
    assert faults == []


EVENTS = """
    CREATE TABLE orders(id INTEGER PRIMARY KEY, country TEXT, nature TEXT, placed DATETIME);
    INSERT INTO orders VALUES
        (1, 'DE', 'Force of NATURE', '2024-03-05 00:00:00'), (2, 'DE', '50% off', '2024-03-05 14:00:00'),
        (3, 'FR', 'under_score', '2024-03-06 00:00:00'), (4, 'FR', 'Force of NATURE', '2024-03-07 09:30:00');
"""


def rows_of(path: Path, query: str) -> list[tuple[object, ...]]:
    """By Python's sqlite3, on which the product has no hand."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


async def kinds_of(path: Path, query: str) -> list[str]:
    tool = await SqlTool.open(f"sqlite:///{path}")
    observation = await tool.call(query)
    await tool.close()
    return [one.kind for one in observation.pitfalls]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(EVENTS)
    return path


@pytest.mark.parametrize(
    "source", ["((orders))", "(((orders)))", "((orders)) AS o", "((orders o JOIN orders p USING (id)))"]
)
async def test_brackets_around_a_table_are_the_table(events: Path, source: str) -> None:
    query = f"SELECT COUNT(*) AS n FROM {source}"
    assert rows_of(events, query) == [(4,)]
    tool = await SqlTool.open(f"sqlite:///{events}")
    observation = await tool.call(query)
    await tool.close()
    assert observation.records[0].fields == {"n": 4} and observation.note == ""


async def test_a_fault_in_the_reader_is_noted_and_the_rows_still_come(events: Path) -> None:
    tool = await SqlTool.open(f"sqlite:///{events}")
    assert tool.pitfalls is not None
    tool.pitfalls.tables = {FullName("", "orders"): "no table at all"}  # type: ignore[dict-item]
    notes: list[str] = []
    with note_faults(notes.append):
        observation = await tool.call("SELECT country, COUNT(*) AS n FROM orders GROUP BY country")
    await tool.close()
    assert [record.fields["n"] for record in observation.records] == [2, 2]
    assert notes == ["The check of pitfalls failed (AttributeError) and was passed over."]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("nature LIKE '%!%%' ESCAPE '!'", 1),
        ("nature LIKE '%!_score' ESCAPE '!'", 1),
        ("nature LIKE '%nature%'", 2),
        ("nature LIKE 'For%TURE'", 2),
        ("nature LIKE '%q_f%'", 0),
        ("nature NOT LIKE '%!%%' ESCAPE '!'", 3),
        ("nature NOT LIKE '%absent%'", 4),
        ("nature LIKE '%absent!%' ESCAPE '!'", 0),
    ],
)
async def test_a_pattern_is_looked_up_as_the_query_compares_it(events: Path, condition: str, rows: int) -> None:
    query = f"SELECT COUNT(*) AS n FROM orders WHERE {condition}"
    assert rows_of(events, query) == [(rows,)]
    matching = rows_of(events, query.replace("NOT LIKE", "LIKE"))[0][0]
    assert ("unstored_value" in await kinds_of(events, query)) == (matching == 0)


async def test_a_pattern_in_any_case_is_looked_up_in_any_case(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(f"{tmp_path}/events.duckdb") as db:
        db.execute("CREATE TABLE orders AS SELECT 'Force of NATURE' AS nature FROM range(40)")
        assert db.execute("SELECT COUNT(*) FROM orders WHERE nature ILIKE '%nature%'").fetchall() == [(40,)]
    tool = await SqlTool.open(f"duckdb:///{tmp_path}/events.duckdb")
    stored = await tool.call("SELECT COUNT(*) AS n FROM orders WHERE nature ILIKE '%nature%'")
    absent = await tool.call("SELECT COUNT(*) AS n FROM orders WHERE nature LIKE '%nature%'")
    await tool.close()
    assert (stored.records[0].fields, stored.note) == ({"n": 40}, "")
    assert 'nothing with "nature"' in absent.note


@pytest.mark.parametrize(
    "condition",
    [
        "nature LIKE '%nature%'",
        "nature LIKE '%!%%' ESCAPE '!'",
        "nature LIKE 'For%TURE'",
        "nature LIKE 'under_score'",
    ],
)
async def test_an_empty_result_is_not_blamed_on_a_pattern_that_is_stored(events: Path, condition: str) -> None:
    assert rows_of(events, f"SELECT COUNT(*) FROM orders WHERE {condition}") != [(0,)]
    tool = await SqlTool.open(f"sqlite:///{events}")
    observation = await tool.call(f"SELECT * FROM orders WHERE {condition} AND id > 90")
    await tool.close()
    assert "nothing with" not in observation.note and "has no " not in observation.note


@pytest.mark.parametrize(
    "query",
    [
        "SELECT country, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY n DESC LIMIT 1",
        "SELECT country, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 1",
        "SELECT lower(country) AS c, COUNT(*) AS n FROM orders GROUP BY c ORDER BY n DESC LIMIT 1",
        "SELECT country, COUNT(*) AS n FROM orders GROUP BY country HAVING n > 1 ORDER BY n DESC LIMIT 1",
    ],
)
async def test_equal_rows_at_the_cut_are_seen_however_the_groups_are_named(events: Path, query: str) -> None:
    counts = [row[1] for row in rows_of(events, query.removesuffix(" LIMIT 1"))]
    assert counts == [2, 2]
    assert await kinds_of(events, query) == ["limit_order"]


DAY = "date(placed)"


@pytest.mark.parametrize(
    "condition",
    [
        "{} <= '2024-03-05'",
        "{} = '2024-03-05'",
        "{} BETWEEN '2024-03-05' AND '2024-03-06'",
        "{} > '2024-03-05'",
        "{} >= '2024-03-05' AND {} < '2024-03-06'",
        "{} < '2024-03-06'",
        "{} >= '2024-03-06'",
        "'2024-03-05' >= {}",
        "'2024-03-05' < {}",
        "{} NOT BETWEEN '2024-03-05' AND '2024-03-06'",
        "{} <> '2024-03-05'",
        "{} >= '2025'",
        "{} < '2025'",
    ],
)
async def test_a_datetime_of_sqlite_is_a_text_and_alarms_where_whole_days_would_bring_other_rows(
    events: Path, condition: str
) -> None:
    query = "SELECT COUNT(*) AS n FROM orders WHERE "
    as_text, as_day = (rows_of(events, query + condition.format(*[name] * 2)) for name in ("placed", DAY))
    assert ("text_dates" in await kinds_of(events, query + condition.format("placed", "placed"))) == (as_text != as_day)


async def test_a_timestamp_of_another_engine_is_no_text(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(f"{tmp_path}/events.duckdb") as db:
        db.execute("CREATE TABLE orders AS SELECT TIMESTAMP '2024-03-05 14:00:00' AS placed FROM range(3)")
    tool = await SqlTool.open(f"duckdb:///{tmp_path}/events.duckdb")
    observation = await tool.call("SELECT COUNT(*) AS n FROM orders WHERE placed >= '2024-03-05'")
    await tool.close()
    assert (observation.records[0].fields, observation.note) == ({"n": 3}, "")
