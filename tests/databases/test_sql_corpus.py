"""The corpus of hostile and harmless statements: the first have no effect, the second all run."""

import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from data import DATA as SHARED
from decisor.errors import ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker

DATA = SHARED / "security"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the security corpus is not there (set DECISOR_DATA)")
CAPS = Caps(seconds=1.5, memory_mb=600, deny=("api_tokens",))
EXECUTABLE = ("sqlite", "duckdb")


def statements(name: str, dialect: str) -> list[dict[str, str]]:
    rows = map(json.loads, (DATA / f"{name}_sql.jsonl").read_text("utf-8").split("\n")[:-1])
    return [row for row in rows if row["dialect"] == dialect]


def build(dialect: str, path: Path) -> None:
    script = (DATA / "fixtures" / f"fixture.{dialect}.sql").read_text("utf-8")
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
async def fenced(
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
async def test_hostile_statements_have_no_effect(fenced: tuple[str, Worker, Callable[[], bool]]) -> None:
    dialect, worker, untouched = fenced
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
    fenced: tuple[str, Worker, Callable[[], bool]],
) -> None:
    dialect, worker, untouched = fenced
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
    from decisor.tools.databases.sandbox.access import Access
    from decisor.tools.databases.sandbox.engines import engine
    from decisor.tools.databases.sandbox.guard import Guard

    words = engine(dialect).dialect
    assert words is not None
    guard = Guard(words, Access(hidden=frozenset({"api_tokens"})))
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
