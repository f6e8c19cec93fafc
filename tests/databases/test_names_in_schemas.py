"""Relations of one name in several schemas of a database, or databases of one server: each is known by both names."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from decisor.sandbox.engine import build_policy
from servers.sql_databases import MYSQLS, NAME, mysql_database, postgres_database

FAR = f"{NAME}_far"
KINDS = ("duckdb", "postgres", *MYSQLS)
HERE = {"duckdb": "main", "postgres": "public", "mysql": NAME, "mariadb": NAME}
SHOP = (
    f"CREATE SCHEMA {FAR}",
    "CREATE TABLE customers(id INTEGER PRIMARY KEY, credit INTEGER)",
    "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, region VARCHAR(5), total INTEGER)",
    "CREATE TABLE secrets(token VARCHAR(40))",
    f"CREATE TABLE {FAR}.orders(id INTEGER PRIMARY KEY, customer INTEGER, region VARCHAR(5), total INTEGER)",
    "INSERT INTO customers VALUES (1, 100), (2, 200)",
    "INSERT INTO orders VALUES (1, 1, 'EU', 10), (2, 1, 'EU', 20), (3, 2, 'US', 7777)",
    "INSERT INTO secrets VALUES ('CANARY')",
    f"INSERT INTO {FAR}.orders VALUES (1, 1, 'EU', 5), (2, 2, 'US', 8888)",
)


@contextmanager
def database(kind: str, folder: Path, statements: Sequence[str]) -> Iterator[str]:
    """Of two schemas; of MySQL two databases."""
    if kind == "postgres":
        with postgres_database([*SHOP, *statements]) as url:
            yield url
    elif kind in MYSQLS:
        import pymysql

        with mysql_database((), MYSQLS[kind]) as url:
            port = urlsplit(url).port or 3306
            with pymysql.connect(host="127.0.0.1", port=port, user="root", database=NAME, autocommit=True) as db:
                cursor = db.cursor()
                try:
                    for statement in (*SHOP, *statements):
                        cursor.execute(statement)
                    yield url
                finally:
                    cursor.execute(f"DROP DATABASE IF EXISTS {FAR}")
    else:
        import duckdb

        with duckdb.connect(str(folder / "shop.duckdb")) as duck:
            for statement in (*SHOP, *statements):
                duck.execute(statement)
        yield f"duckdb:///{folder / 'shop.duckdb'}"


async def rows(tool: SqlTool, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(record.fields.values()) for record in (await tool.call(query)).records)


async def is_refused(tool: SqlTool, query: str) -> bool:
    try:
        await tool.call(query)
    except ToolError as error:
        return error.refused and "CANARY" not in str(error)
    return False


NAMES = (
    "{s}.totals",
    "{q}{s}{q}.{q}totals{q}",
    "{s} . totals AS t",
    "{s}.totals totals",
    "(SELECT * FROM {s}.totals) AS totals",
)


def ways(kind: str, schema: str) -> list[str]:
    """Queries of all columns of its view."""
    quote = "`" if kind in MYSQLS else '"'
    folded = [] if kind in MYSQLS else [f"SELECT * FROM {schema.upper()}.Totals"]  # there they tell letters apart
    return folded + [f"SELECT * FROM {name.format(s=schema, q=quote)}" for name in NAMES]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("safe_here", [True, False])
async def test_of_two_views_of_one_name_only_the_one_over_a_denied_table_is_refused(
    kind: str, safe_here: bool, tmp_path: Path
) -> None:
    here, safe, leak = HERE[kind], *((HERE[kind], FAR) if safe_here else (FAR, HERE[kind]))
    views = (
        f"CREATE VIEW {safe}.totals AS SELECT id, total FROM {here}.orders",
        f"CREATE VIEW {leak}.totals AS SELECT token FROM {here}.secrets",
        f"CREATE VIEW fine AS SELECT * FROM {safe}.totals",
        f"CREATE VIEW peek AS SELECT * FROM {leak}.totals",
        f"CREATE VIEW {FAR}.peek_too AS SELECT * FROM {here}.peek",
    )
    with database(kind, tmp_path, views) as url:
        tool = await SqlTool.open(url, deny_tables=["secrets"])
        for query in (*ways(kind, safe), "SELECT * FROM fine", *(["SELECT * FROM totals"] if safe_here else [])):
            assert await rows(tool, query) == [(1, 10), (2, 20), (3, 7777)], query
        hostile = (
            *ways(kind, leak),
            "SELECT * FROM peek",
            f"SELECT * FROM {FAR}.peek_too",
            f"WITH totals AS (SELECT 1 AS id) SELECT * FROM totals, {leak}.totals AS t",
            f"SELECT * FROM {safe}.totals AS totals, {leak}.totals AS t",
            f"SELECT (SELECT max(token) FROM {leak}.totals) FROM {safe}.totals",
            f"WITH {FAR} AS (SELECT 1 AS totals) SELECT * FROM {leak}.totals",
            *(
                []
                if safe_here
                else [
                    "SELECT * FROM totals",
                    "SELECT * FROM (SELECT * FROM Totals) AS t",
                    "WITH a AS (WITH totals AS (SELECT 1) SELECT * FROM totals) SELECT * FROM totals",
                ]
            ),
        )
        for query in hostile:
            assert await is_refused(tool, query), query
        assert ("totals" in {table.name for table in tool.tables}) == safe_here
        assert "peek" not in tool.describe() and "secrets" not in tool.describe()
        catalog = "SELECT table_schema FROM information_schema.tables WHERE table_name = 'totals'"
        assert leak not in {schema for (schema,) in await rows(tool, catalog)}
        await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_rows_and_masks_hold_in_each_of_two_views_of_one_name(kind: str, tmp_path: Path) -> None:
    here = HERE[kind]
    views = (
        "CREATE VIEW totals AS SELECT id, total, customer FROM orders",
        f"CREATE VIEW {FAR}.totals AS SELECT total AS t, customer AS c FROM {here}.orders WHERE id > 1",
        f"CREATE VIEW both_ways AS SELECT a.total, b.t FROM totals AS a, {FAR}.totals AS b",
        f"CREATE VIEW {FAR}.totals_there AS SELECT region AS r, total FROM {FAR}.orders",
        f"CREATE VIEW {FAR}.afar AS SELECT total FROM {FAR}.totals_there",
    )
    with database(kind, tmp_path, views) as url:
        tool = await SqlTool.open(url, policy=build_policy({"orders": "region = 'EU'"}, ("orders.customer",)))
        for name in ("totals", f"{here}.totals"):
            assert await rows(tool, f"SELECT id, total FROM {name}") == [(1, 10), (2, 20)], name
        assert await rows(tool, f"SELECT t FROM {FAR}.totals") == [(20,)]
        assert await rows(tool, "SELECT total, t FROM both_ways") == [(10, 20), (20, 20)]
        assert await rows(tool, f"SELECT total FROM {FAR}.afar") == [(5,)]
        for column, name in (("customer", "totals"), ("c", f"{FAR}.totals")):
            ((token,),) = await rows(tool, f"SELECT DISTINCT {column} FROM {name}")
            assert str(token).startswith("masked_")
        assert await is_refused(tool, f"WITH totals AS (SELECT 1 AS t) SELECT * FROM totals, {FAR}.totals AS b")
        await tool.close()


async def test_a_view_of_duckdb_reads_the_tables_of_its_own_schema_first(tmp_path: Path) -> None:
    views = (f"CREATE VIEW {FAR}.near AS SELECT total FROM orders", "CREATE VIEW near AS SELECT total FROM orders")
    with database("duckdb", tmp_path, views) as url:
        tool = await SqlTool.open(url, policy=build_policy({"orders": "region = 'EU'"}, ()))
        assert await rows(tool, f"SELECT total FROM {FAR}.near") == [(5,)]
        assert await rows(tool, "SELECT total FROM near") == [(10,), (20,)]
        await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize("schemas", ["far,public", "public,far", "far"])  # a test is named alike in every process
async def test_a_name_without_a_schema_is_read_along_the_search_path_of_postgresql(
    schemas: str, tmp_path: Path
) -> None:
    path = schemas.replace("far", FAR)
    views = (
        "CREATE VIEW totals AS SELECT token FROM secrets",
        f"CREATE VIEW {FAR}.totals AS SELECT id FROM {FAR}.orders",
        f"CREATE VIEW {FAR}.over AS SELECT * FROM {FAR}.totals",
        "CREATE VIEW peek AS SELECT * FROM totals",
    )
    with database("postgres", tmp_path, views) as url:
        tool = await SqlTool.open(f"{url}?options=-csearch_path%3D{path}", deny_tables=["secrets"])
        first = path.startswith(FAR)
        assert await is_refused(tool, "SELECT * FROM totals") != first
        assert await rows(tool, f"SELECT id FROM {'totals' if first else f'{FAR}.totals'}") == [(1,), (2,)]
        assert await rows(tool, f"SELECT id FROM {FAR}.over") == [(1,), (2,)]
        for query in ("SELECT * FROM public.totals", "SELECT * FROM peek", "SELECT * FROM public.peek"):
            assert await is_refused(tool, query), query
        await tool.close()


async def test_names_that_differ_in_their_letters_alone_are_refused_together() -> None:
    views = (
        'CREATE VIEW "Totals" AS SELECT id FROM orders',
        "CREATE VIEW totals AS SELECT token FROM secrets",
        f'CREATE VIEW {FAR}."Lists" AS SELECT token FROM secrets',
        "CREATE VIEW lists AS SELECT id FROM orders",
    )
    with database("postgres", Path(), views) as url:
        tool = await SqlTool.open(f"{url}?options=-csearch_path%3Dpublic,{FAR}", deny_tables=["secrets"])
        for name in ("totals", '"Totals"', "TOTALS", "lists", '"Lists"', f'{FAR}."Lists"', f"{FAR}.lists"):
            assert await is_refused(tool, f"SELECT * FROM {name}"), name
        assert await rows(tool, "SELECT id FROM public.lists") == [(1,), (2,), (3,)]
        await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single_here", [True, False])
async def test_what_a_view_multiplies_is_told_of_the_view_that_the_query_names(
    kind: str, single_here: bool, tmp_path: Path
) -> None:
    here = HERE[kind]
    single = f"SELECT customer, sum(total) AS total FROM {here}.orders GROUP BY customer"
    texts = (single, f"SELECT customer, total FROM {here}.orders")
    views = [
        f"CREATE VIEW {schema}.sales AS {text}"
        for schema, text in zip((here, FAR) if single_here else (FAR, here), texts, strict=True)
    ]
    with database(kind, tmp_path, views) as url:
        tool = await SqlTool.open(url)
        assert tool.pitfalls is not None
        for name, multiplies in (
            ("sales", not single_here),
            (f"{here}.sales", not single_here),
            (f"{FAR}.sales", single_here),
        ):
            query = f"SELECT sum(c.credit) FROM customers AS c JOIN {name} AS s ON s.customer = c.id"
            assert bool(await tool.pitfalls.look(query)) == multiplies, name
        await tool.close()
