"""Limits that are computed: each engine's own reading is the oracle."""

import sqlite3

import duckdb
import pytest

from decisor.sandbox.engines.duckdb import DIALECT as DUCKDB
from decisor.sandbox.engines.sqlite import DIALECT as SQLITE
from decisor.sandbox.sql_guard import SqlGuard

TABLE = "CREATE TABLE t AS SELECT 1 AS id, 'a' AS g UNION ALL SELECT 2, 'b' UNION ALL SELECT 3, 'a'"
QUERIES = [
    "SELECT id FROM t ORDER BY id LIMIT 5 % 3",
    "SELECT id FROM t ORDER BY id LIMIT 2 - (SELECT 1) % 2 OFFSET (SELECT 1)",
    "SELECT id FROM t ORDER BY id LIMIT (SELECT count(*) FROM t) % 2",
    "SELECT * FROM (SELECT id FROM t ORDER BY id LIMIT 7 % 4 OFFSET 1) q ORDER BY id",
    "SELECT id FROM t WHERE g IN (SELECT g FROM t GROUP BY g ORDER BY count(*) DESC LIMIT 3 % 2) ORDER BY id",
    "SELECT id FROM t ORDER BY id LIMIT 5 % 3 /* at most */",
    "SELECT '5 % 3 LIMIT' AS \"LIMIT 5 % 3\" FROM t ORDER BY id LIMIT 5 % 3",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_remainder_in_a_limit_is_read_as_the_engine_reads_it(query: str) -> None:
    lite, duck = sqlite3.connect(":memory:"), duckdb.connect()
    lite.execute(TABLE)
    duck.execute(TABLE)
    assert lite.execute(SqlGuard(SQLITE).check(query)).fetchall() == lite.execute(query).fetchall()
    assert duck.execute(SqlGuard(DUCKDB).check(query)).fetchall() == duck.execute(query).fetchall()
    lite.close()


@pytest.mark.parametrize(
    "query", ["SELECT id FROM t LIMIT 5 % load_extension('x')", "SELECT 1 LIMIT 5 % 2; DROP TABLE t"]
)
def test_brackets_around_a_limit_let_nothing_else_through(query: str) -> None:
    from decisor.errors import ToolError

    with pytest.raises(ToolError):
        SqlGuard(SQLITE).check(query)
