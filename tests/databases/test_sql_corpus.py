"""The corpus of hostile and harmless statements: the first have no effect, the second all run."""

import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from data import SECURITY, read_security_rows
from decisor.errors import ToolError
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

CAPS = Caps(seconds=1.5, memory_mb=600, deny=("api_tokens",))
EXECUTABLE = ("sqlite", "duckdb")


def statements(name: str, dialect: str) -> list[dict[str, str]]:
    return [row for row in read_security_rows(f"{name}_sql") if row["dialect"] == dialect]


def build(dialect: str, path: Path) -> None:
    script = (SECURITY / "fixtures" / f"fixture.{dialect}.sql").read_text("utf-8")
    if dialect == "sqlite":
        import apsw

        with apsw.Connection(str(path)) as lite:
            lite.execute(script)
        lite.close()
    else:
        import duckdb

        with duckdb.connect(str(path)) as duck:
            duck.execute(script)


@pytest.fixture(params=EXECUTABLE)
async def worker_on_shop(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[str, Worker, Callable[[], bool]]]:
    """The dialect, a worker on its fixture, and whether everything around the file is as it was."""
    dialect = request.param
    path = tmp_path / f"shop.{dialect}"
    build(dialect, path)
    before = path.read_bytes()
    worker = Worker(dialect, f"{dialect}:///{path}", CAPS)
    yield dialect, worker, lambda: path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    await worker.close()


@pytest.mark.slow
async def test_hostile_statements_have_no_effect(worker_on_shop: tuple[str, Worker, Callable[[], bool]]) -> None:
    dialect, worker, untouched = worker_on_shop
    box = Path("/tmp/guardbox")
    shutil.rmtree(box, ignore_errors=True)
    ran = []
    for row in statements("hostile", dialect):
        try:
            await worker.run(row["statement"])
            ran.append((row["id"], row["expected"]))
        except ToolError as error:
            if not error.refused and row["expected"] in ("refuse", "policy"):
                ran.append((row["id"], str(error)))
        assert untouched(), row["id"]
        assert not box.exists(), row["id"]
    assert [row for row in ran if row[1] not in ("allow_or_refuse", "bound")] == []
    assert (await worker.run("SELECT count(*) FROM orders")).rows == ((8,),)


async def test_harmless_statements_run_and_mean_what_they_meant(
    worker_on_shop: tuple[str, Worker, Callable[[], bool]],
) -> None:
    dialect, worker, untouched = worker_on_shop
    for row in statements("benign", dialect):
        checked = await worker.run(row["statement"])
        meant = await worker.run(row["statement"], trusted=True)
        assert checked.columns == meant.columns or dialect != "sqlite", row["id"]
        if not re.search(r"random\(", row["statement"], re.I):
            assert sorted(map(repr, checked.rows)) == sorted(map(repr, meant.rows)), row["id"]
    assert untouched()


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mysql"])
def test_the_guard_by_itself_tells_them_apart(dialect: str) -> None:
    """What the parse tree cannot know (costs, dollars of work) is left to the limits."""
    from decisor.sandbox.access import Access
    from decisor.sandbox.dialect import FullName
    from decisor.sandbox.engines import load_engine
    from decisor.sandbox.sql_guard import SqlGuard

    words = load_engine(dialect).dialect
    assert words is not None
    guard = SqlGuard(words, Access(hidden=frozenset({FullName("", "api_tokens")})))
    for row in statements("benign", dialect):
        guard.check(row["statement"])
    passed = []
    for row in statements("hostile", dialect):
        try:
            guard.check(row["statement"])
        except ToolError:
            continue
        if row["expected"] in ("refuse", "policy"):
            passed.append(row["id"])
    assert passed == []


def mixed_case(statement: str) -> str:
    """Other letters in all that is not in quotes.

    >>> mixed_case("SELECT 'Ab' FROM orders")
    "select 'Ab' from ORDERS"
    """
    parts = re.split(r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|\$\$.*?\$\$)", statement)
    return "".join(part if at % 2 else part.swapcase() for at, part in enumerate(parts))


async def test_harmless_statements_in_other_letters_bring_the_same_rows(
    worker_on_shop: tuple[str, Worker, Callable[[], bool]],
) -> None:
    dialect, worker, _ = worker_on_shop
    for row in statements("benign", dialect):
        if re.search(r"random\(", row["statement"], re.I):
            continue
        meant = await worker.run(row["statement"])
        mixed = await worker.run(mixed_case(row["statement"]))
        assert sorted(map(repr, mixed.rows)) == sorted(map(repr, meant.rows)), row["id"]


def fixture_statements(dialect: str) -> list[str]:
    """Without roles, and without what only a client's own commands can say."""
    script = (SECURITY / "fixtures" / f"fixture.{dialect}.sql").read_text("utf-8")
    texts = [text for text in re.split(r";[ \t]*\n(?!\s*\$\$)", script) if text.strip()]
    return [text for text in texts if not re.search(r"guard_ro|DELIMITER|touch_audit|CREATE DATABASE|\bUSE\b", text)]


@pytest.mark.slow
@pytest.mark.parametrize("server", ["postgres", *MYSQLS])
async def test_harmless_statements_mean_on_a_server_what_they_meant(server: str) -> None:
    dialect = "mysql" if server in MYSQLS else server
    texts = fixture_statements(dialect)
    if server == "mysql":
        texts = [text for text in texts if "SEQUENCE" not in text]
    with postgres_database(texts) if server == "postgres" else mysql_database(texts, MYSQLS[server]) as url:
        worker = Worker(dialect, url, Caps(seconds=5.0))
        for row in statements("benign", dialect):
            checked = await worker.run(row["statement"])
            if server == "mysql" and row["statement"].startswith("VALUES ("):
                continue  # only MariaDB's way to write it
            meant = await worker.run(row["statement"], trusted=True)
            if not re.search(r"random\(|rand\(|now\(|current_", row["statement"], re.I):
                assert sorted(map(repr, checked.rows)) == sorted(map(repr, meant.rows)), row["id"]
        await worker.close()
