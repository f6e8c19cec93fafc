"""What a query leaves behind in its process is not lacking to the next one."""

import re
from pathlib import Path

import pytest

from decisor.errors import ToolError
from decisor.sandbox.engine import Caps
from decisor.sandbox.limits import STATM, MemoryRoom, limits_of_this_system, read_memory_sizes
from decisor.sandbox.process import Worker

pytestmark = pytest.mark.skipif(
    not limits_of_this_system().memory, reason="this system does not tell how much memory a process holds"
)
TOO_MUCH = (
    "SELECT list(range) FROM range(100000000)",
    "SELECT string_agg(repeat('x', 1000), '') FROM range(1000000)",
    "WITH RECURSIVE c(x, s) AS (SELECT 1, 'a' UNION ALL SELECT x + 1, s || s FROM c WHERE x < 40) SELECT max(s) FROM c",
)
LITTLE = "SELECT count(*) FROM (SELECT DISTINCT 'number ' || range FROM range(300000))"


@pytest.mark.slow
async def test_a_query_after_one_that_took_too_much_memory_has_room(tmp_path: Path) -> None:
    import duckdb

    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    worker = Worker("duckdb", f"duckdb:///{tmp_path}/shop.duckdb", Caps(memory_mb=400, seconds=120.0))
    processes = set()
    try:
        for statement in TOO_MUCH * 2:
            with pytest.raises(ToolError, match=r"emory|crashed"):  # which of its threads asks for too much is chance
                await worker.run(statement)
            assert (await worker.run(LITTLE)).rows == ((300_000,),)
            assert worker.child is not None
            processes.add(worker.child.pid)
    finally:
        await worker.close()
    assert len(processes) > 1


@pytest.mark.parametrize(("left", "short"), [(10, True), (50, False)])
def test_a_process_is_short_of_room_with_less_than_a_quarter_left(left: int, short: bool) -> None:
    mb = 2**20
    addresses, memory = read_memory_sizes(STATM)
    room = MemoryRoom(addresses + 1000 * mb, memory + left * mb, first=100 * mb)
    assert room.is_short() is short
    assert MemoryRoom(addresses + left * mb, memory + 1000 * mb, first=100 * mb).is_short() is short


@pytest.mark.slow
async def test_what_an_engine_advises_its_administrator_reaches_nobody(tmp_path: Path) -> None:
    import duckdb

    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    worker = Worker("duckdb", f"duckdb:///{tmp_path}/shop.duckdb", Caps(memory_mb=300, seconds=60))
    try:
        with pytest.raises(ToolError) as complaint:
            await worker.run(
                "SELECT count(*) FROM (SELECT DISTINCT md5(range::VARCHAR) AS m FROM range(30000000))", trusted=True
            )
    finally:
        await worker.close()
    assert "emory" in str(complaint.value)
    assert not re.search(r"\bSET\b|temp_directory|solutions|https?:", str(complaint.value))
