"""A model file of somebody who means harm: on DuckDB too, nothing acts beyond the copy."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from decision_shops import SITES, database, model_in_process, opened_in_worker, source_of
from decisor.databases.sql import SqlTool
from decisor.decision_models.file import parse_model
from decisor.errors import SetupError, ToolError
from decisor.session.decision_models import opened_model
from decisor.system.structured_files import FileFault

MODEL = """
format = 3
decide = "x"
choice.pick.rows = '''{choice}'''
change = '''{change}'''
[measure.cost]
goal = "min"
sql = '''{sql}'''
"""
CHOICE, CHANGE, SQL = (
    "SELECT name FROM site",
    "DELETE FROM site WHERE name = (SELECT name FROM pick)",
    "SELECT sum(rent) FROM site",
)
QUERIES = [
    "SELECT count(*) FROM read_csv('/etc/passwd')",
    "SELECT content FROM read_text('/etc/hostname')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT getenv('HOME')",
    "SELECT random()",
    "SELECT uuid()",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT current_setting('threads')",
    "SELECT 1; SELECT 2",
    "SELECT nextval('a')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('site')",
    "SELECT __c FROM __candidate",
    "SELECT * FROM __rows",
    "SELECT write_log('x')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM sqlite_scan('/tmp/a', 'b')",
    "SELECT * FROM postgres_scan('', '', '')",
    "FROM (DESCRIBE site)",
    "SELECT * FROM pragma_database_list()",
]
STATEMENTS = [
    "COPY site TO '/tmp/decisor_hostile.csv'",
    "ATTACH '/tmp/decisor_hostile.db' AS o",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '90GB'",
    "PRAGMA memory_limit = '90GB'",
    "CREATE TABLE t AS SELECT 1",
    "DROP TABLE site",
    "ALTER TABLE site ADD COLUMN x INT",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "CREATE MACRO f(x) AS x",
    "EXPORT DATABASE '/tmp/x'",
    "CHECKPOINT",
    "VACUUM",
    "CREATE VIEW v AS SELECT 1",
    "EXECUTE p",
    "PREPARE p AS SELECT 1",
    "USE main",
    "INSERT INTO site SELECT * FROM read_csv('/etc/passwd')",
    "UPDATE site SET rent = random()",
    "TRUNCATE site",
    "DELETE FROM site RETURNING *",
    "INSERT INTO __rows SELECT 1",
    "SELECT 1",
    "MERGE INTO site USING customer ON TRUE WHEN MATCHED THEN DELETE",
    "DELETE FROM memory.main.site",
    "SET VARIABLE x = 1",
    "UPDATE site SET rent = getenv('HOME')",
    "CREATE SECRET s (TYPE s3)",
    "IMPORT DATABASE '/tmp/x'",
    "DETACH memory",
]


async def compute_outcomes(text: str, source: SqlTool) -> None:
    model = await model_in_process(text, source)
    try:
        model.outcomes()
    finally:
        model.close()


async def check_refused(folder: Path, part: str, texts: Sequence[str]) -> None:
    """The copy computes or opens nothing."""
    async with source_of(SITES, folder / "shop.duckdb") as source:
        for text in texts:
            model = MODEL.format(**{"choice": CHOICE, "change": CHANGE, "sql": SQL, part: text})
            with pytest.raises((SetupError, ToolError)) as caught:
                await compute_outcomes(model, source)
            complaint = str(caught.value)
            assert "Refused: " in complaint and "\n" not in complaint, (text, complaint)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["choice", "sql"])
async def test_a_query_of_a_model_reads_nothing_but_the_copy(part: str, tmp_path: Path) -> None:
    await check_refused(tmp_path, part, QUERIES)


@pytest.mark.slow
async def test_a_change_is_of_the_copy_alone(tmp_path: Path) -> None:
    await check_refused(tmp_path, "change", STATEMENTS)
    assert not list(Path("/tmp").glob("decisor_hostile*"))


async def test_the_source_is_as_it_was(tmp_path: Path) -> None:
    import duckdb

    text = MODEL.format(choice=CHOICE, change="DELETE FROM site; DELETE FROM lane", sql="SELECT count(*) FROM site")
    async with opened_in_worker(tmp_path, text) as model:
        assert model.outcomes().values.tolist() == [[0.0]] * 7
        assert model.outcomes([1], one_by_one=True).values.tolist() == [[0.0]]
        assert model.present() == {"cost": {"": 7.0}}
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        assert db.execute("SELECT count(*) FROM site").fetchall() == [(7,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "DROP TABLE site",
        "SELECT 1; SELECT 2",
        "SELECT getenv('HOME')",
    ],
)
async def test_a_copy_query_meets_the_guard_of_its_source(query: str, tmp_path: Path) -> None:
    text = MODEL.format(choice=CHOICE, change=CHANGE, sql=SQL) + f'[copy]\nsite = """{query}"""\n'
    with pytest.raises(SetupError, match="line 10: site cannot be copied: Refused"):
        async with opened_model(parse_model(text), database(tmp_path, SITES)):
            pass


@pytest.mark.slow
async def test_a_bomb_is_stopped_in_time_and_the_next_request_works(tmp_path: Path) -> None:
    bomb = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    text = "seconds = 1\n" + MODEL.format(choice=CHOICE, change="", sql=bomb)
    async with opened_in_worker(tmp_path, text) as model:
        began = time.monotonic()
        with pytest.raises(ToolError, match="Stopped: the query ran"):
            model.outcomes([0], one_by_one=True)
        assert time.monotonic() - began < 60
        assert len(model.job("choice", {}, 30).rows) == 7


@pytest.mark.slow
async def test_a_swarm_of_rows_is_stopped_and_does_not_take_the_machine_along(tmp_path: Path) -> None:
    swarm = "INSERT INTO site SELECT 'x' || range, 1.0, 1 FROM range(3000000000)"
    text = "seconds = 20\n" + MODEL.format(choice=CHOICE, change=swarm, sql=SQL)
    async with opened_in_worker(tmp_path, text) as model:
        with pytest.raises(ToolError, match=r"Stopped|[Mm]emory|crashed"):
            model.outcomes([0], one_by_one=True)
        assert model.present()["cost"][""] > 0  # type: ignore[index]


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "seconds = " + "9" * 5000,
        "seconds = nan",
        "format = 3\ndecide = 1",
        '"a\\nb" = 1',
        "x = '" + "y" * 2_000_000 + "'",
        "format = 3\ndecide = 'x'\n[measure]\n",
        "[measure.'a b']\ngoal = 'min'",
        "format = 3\ndecide = 'x'\nseconds = inf\n[measure.a]\ngoal='min'\nsql='x'",
        "format = 3\ndecide = 'x'\nchoice.pick.rows = 'SELECT 1'\nchoice.pick.take = 0\n[measure.a]\n"
        "goal='min'\nsql='SELECT 1'",
        "measure = 'cost'",
    ],
)
def test_a_file_made_to_break_its_reader_is_one_line(text: str) -> None:
    with pytest.raises(FileFault) as caught:
        parse_model(text)
    assert len(str(caught.value)) < 2000 and "\n" not in str(caught.value)
