"""A table that is too large to copy: the complaint says what to write, and that is enough."""

from pathlib import Path

import pytest

from decision_shops import database
from decisor.databases.sql import SqlTool
from decisor.decision_models.copies import read_copies
from decisor.decision_models.file import parse_model
from decisor.errors import SetupError
from decisor.types import Table

SALES = (
    "CREATE TABLE sales AS SELECT i AS id, i % 3 AS shop, i % 7 + 0.5 AS amount, i % 5 AS pieces FROM range(60) t(i)"
)
MODEL = """
format = 3
decide = "the shop to close"
choice.pick.rows = "SELECT DISTINCT shop FROM sales"
change = "DELETE FROM sales WHERE shop = (SELECT shop FROM pick)"
[measure.sold]
goal = "max"
sql = "SELECT sum(amount) - sum(pieces) FROM sales"
[input]
"sales.pieces" = { lowers = "sold" }
"""


class Narrow(SqlTool):
    """Reads ten rows of a query at most."""

    async def fetch(self, query: str, max_rows: int = 10, trusted: bool = False, max_bytes: int = 10**9) -> Table:
        return await super().fetch(query, 10, trusted, max_bytes)


async def test_the_complaint_about_a_large_table_is_a_line_that_can_be_written(tmp_path: Path) -> None:
    source = await Narrow.open(database(tmp_path, SALES))
    with pytest.raises(SetupError, match="sales is too large to copy whole: it has more than 10 rows") as refusal:
        await read_copies(parse_model(MODEL), source)
    line = str(refusal.value).partition("such as ")[2]
    assert (
        line
        == """sales = \'\'\'SELECT "shop", sum("amount") AS "amount", sum("pieces") AS "pieces" FROM "sales" \
GROUP BY "shop"\'\'\'"""
    )
    copies = await read_copies(parse_model(f"{MODEL}[copy]\n{line}\n"), source)
    assert copies["sales"].rows == 3
    with pytest.raises(SetupError, match=r"its query in .copy. gives more than 10 rows. Let it add up"):
        await read_copies(parse_model(f"{MODEL}[copy]\nsales = 'SELECT * FROM sales'\n"), source)
    await source.close()
