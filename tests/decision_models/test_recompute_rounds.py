"""Named tables between the rounds of a recompute: computed again where a column that they read has changed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from decision_shops import model_in_process, source_of

MODEL = """format = 3
decide = "the rate"
choice.pick.rows = "SELECT rate FROM rates"
[table.x]
sql = "{x}"
[table.y]
sql = "SELECT v + 0 AS v FROM x"
[recompute]
times = 4
sql = "UPDATE t SET b = b * (SELECT rate FROM pick) + (SELECT v FROM y)"
[measure.sum]
goal = "min"
part.b = "SELECT sum(b) FROM t"
part.v = "SELECT v FROM y"
[rule.counted]
exists = "{x}"
"""
TABLES = """CREATE TABLE t AS SELECT * FROM (VALUES (1, 2.0::DOUBLE, 1.0::DOUBLE), (2, 3.0, 1.0)) t(k, a, b);
CREATE TABLE u AS SELECT * FROM (VALUES (1, 1.0::DOUBLE), (2, 2.0)) u(k, b);
CREATE TABLE rates AS SELECT * FROM (VALUES (0.5::DOUBLE), (1.0)) r(rate)"""


def matches(b: Sequence[float]) -> float:
    return float(sum(one == other for one, other in zip(b, (1.0, 2.0), strict=True)))


def total(b: Sequence[float]) -> float:
    return float(sum(b))


Way: TypeAlias = Callable[[Sequence[float]], float]
WAYS: dict[str, Way] = {
    "SELECT sum(b) AS v FROM t": total,
    "SELECT sum(q.b) AS v FROM (SELECT * FROM t) AS q": total,
    "SELECT sum(r.b) AS v FROM (SELECT t AS r FROM t) AS q": total,
    "SELECT sum(z) AS v FROM t AS q(x, y, z)": total,
    "SELECT sum(COLUMNS('b')) AS v FROM t": total,
    "WITH q(z) AS (SELECT B FROM t) SELECT sum(z) AS v FROM q": total,
    "SELECT sum(v) AS v FROM (UNPIVOT t ON b INTO NAME n VALUE v)": total,
    "SELECT sum(a) AS v FROM t": lambda _: 5.0,
    "SELECT count(*) AS v FROM t": lambda _: 2.0,
    "SELECT count(*) AS v FROM t NATURAL JOIN u": matches,
    "SELECT count(*) AS v FROM (SELECT k AS l, b FROM t) AS q JOIN u USING (b) WHERE k = l": matches,
}


@pytest.mark.parametrize("x", WAYS)
async def test_a_named_table_is_computed_again_after_what_it_reads(x: str, tmp_path: Path) -> None:
    wanted = []
    for rate in (0.5, 1.0):
        b = [1.0, 1.0]
        for _ in range(4):
            v = WAYS[x](b)
            b = [one * rate + v for one in b]
        wanted.append(sum(b) + WAYS[x](b))
    async with source_of(TABLES, tmp_path / "t.duckdb") as source:
        model = await model_in_process(MODEL.format(x=x), source)
        for alone in (False, True):
            outcomes = model.outcomes(one_by_one=alone)
            np.testing.assert_allclose(outcomes.values[:, 0], wanted)
            # An aggregate gives a row of no rows, too.
            assert not outcomes.broken.any()
        model.close()
