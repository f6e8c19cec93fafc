"""SQL with symbols: what is not linear is refused, and what is has the right coefficients at random plans."""

import duckdb
import numpy as np
import pytest
import sqlglot

from decision_worlds import machine_on, milling, model_text, teams
from decisor.decision_models.schema import DecisionModel
from decisor.decision_models.worker.engine import Machine
from decisor.decision_models.worker.execution import changed_inputs
from decisor.decision_models.worker.linear import Symbols
from decisor.decision_models.worker.plan import Program
from decisor.decision_models.worker.solver import Matrix
from decisor.errors import ToolError
from decisor.sandbox.engine import Caps

REFUSED = {
    "a product of two amounts": "SELECT sum(m.amount * o.amount) FROM make m JOIN overtime o USING (week)",
    "max of an amount; for the largest": "SELECT max(amount) FROM make",
    "abs of an amount": "SELECT sum(abs(amount - 10)) FROM make",
    "a condition asks for an amount": "SELECT count(*) FROM make WHERE amount > 0",
    "condition asks": "SELECT sum(CASE WHEN amount > 10 THEN 100 ELSE 0 END) FROM make",
    "sqrt of an amount": "SELECT sum(sqrt(amount)) FROM make",
    "a division by an amount": "SELECT sum(amount * milling_eur) / sum(amount) FROM make JOIN product USING (product)",
    "max of an amount": """WITH x AS (SELECT product, sum(amount) AS t FROM make GROUP BY product),
        y AS (SELECT product, t FROM x) SELECT greatest(max(t), 5) FROM y""",
    "ORDER depends on an amount": "SELECT amount FROM make ORDER BY amount DESC LIMIT 1",
    "two amounts in one group": """SELECT sum(a) FROM
        (SELECT product, m.amount AS a, count(*) AS n FROM make m GROUP BY product, m.amount)""",
    "product of two amounts": "SELECT sum(amount * amount) FROM make",
    "IN": "SELECT sum(hours) FROM week WHERE week IN (SELECT amount FROM make)",
    "distinct of an amount": "SELECT sum(DISTINCT amount) FROM make",
    "only UNION ALL": "SELECT sum(amount) FROM (SELECT amount FROM make EXCEPT SELECT amount FROM lost)",
    "condition asks for": "SELECT sum(w.hours) FROM make m JOIN week w ON w.hours > m.amount",
    "round of an amount": "SELECT sum(round(amount)) FROM make",
    "least of an amount": "SELECT sum(least(amount, 5)) FROM make",
    "condition asks for an amount; a rule": """SELECT sum(t) FROM
        (SELECT sum(amount) AS t FROM make GROUP BY week HAVING sum(amount) > 5)""",
    "pow": "SELECT sum(amount ** 2) FROM make",
    "LIMIT": "SELECT sum(a) FROM (SELECT amount AS a FROM make LIMIT 2)",
}
OF_CHOICES = [
    "SELECT max(points) FROM pick",
    "SELECT avg(points) FROM pick",
    "SELECT max(n) FROM (SELECT team, count(*) AS n FROM pick GROUP BY team)",
    "SELECT count(*) FROM project p LEFT JOIN pick c ON c.project = p.project",
    "SELECT count(*) FROM project p WHERE EXISTS (SELECT 1 FROM pick c WHERE c.project = p.project)",
    "SELECT count(DISTINCT team) FROM pick",
    "SELECT count(*) FROM pick a JOIN pick b ON a.team = b.team",
    "SELECT count(*) FROM project WHERE project NOT IN (SELECT project FROM pick)",
    "SELECT sum(r) FROM (SELECT row_number() OVER (ORDER BY points) AS r FROM pick)",
    "SELECT points FROM pick",
]
LINEAR = {
    "least of data": "SELECT sum(amount * least(hours, 40)) FROM make JOIN week USING (week)",
    "CASE on data": "SELECT sum(CASE WHEN week > 4 THEN amount * 2 WHEN week = 1 THEN 3 ELSE 0 END) FROM make",
    "FILTER": "SELECT sum(amount) FILTER (week > 4) FROM make",
    "a share of data": "SELECT sum(amount) / (SELECT sum(tons) FROM demand) FROM make",
    "UNION ALL": "SELECT sum(v) FROM (SELECT amount * 3 AS v FROM make UNION ALL SELECT hours FROM week)",
    "correlated": "SELECT sum(hours - (SELECT sum(amount) FROM make m WHERE m.week = w.week)) FROM week w",
    "lag": """SELECT sum(v * week) FROM
        (SELECT week, coalesce(lag(amount) OVER (PARTITION BY product ORDER BY week), 0) AS v FROM make)""",
    "LEFT JOIN": """SELECT sum(coalesce(o.amount, 0) + d.tons) FROM demand d
        LEFT JOIN overtime o ON o.week = d.week AND d.week > 3""",
    "a mean": "SELECT sum(a.t * 2) FROM (SELECT week, sum(amount) / count(*) AS t FROM make GROUP BY week) a",
    "NOT EXISTS on data": """SELECT sum(amount) FROM make m
        WHERE NOT EXISTS (SELECT 1 FROM week w WHERE w.week = m.week AND hours < 30)""",
    "a running sum": """SELECT sum(run * week) FROM
        (SELECT week, sum(amount - 2) OVER (PARTITION BY product ORDER BY week) AS run FROM make)""",
    "a named table": "SELECT sum(tons * keeping_eur) - 5 FROM stock",
    "WITH": """WITH x AS (SELECT product, sum(amount) AS t FROM make GROUP BY product)
        SELECT sum(t * milling_eur) + 1 FROM x JOIN product USING (product)""",
    "IN on data": "SELECT sum(-amount) FROM make WHERE product IN (SELECT product FROM product WHERE lost_eur > 650)",
    "grouped by the amount": """SELECT sum(a * hours) FROM (SELECT week, o.amount AS a, count(*) AS n
        FROM overtime o JOIN make m USING (week) GROUP BY week, o.amount) JOIN week USING (week)""",
    "data alone": "SELECT sum(hours) FROM week",
    "a cast": "SELECT sum(CAST(amount AS DOUBLE) * 2.5::DECIMAL(4, 1)) FROM make",
}


def build(machine: Machine, model: DecisionModel) -> Program:
    columns = {name: tuple(map(str.lower, names)) for name, names in machine.tables.items()}
    program = Program(machine.db, model, machine.parts, Symbols(machine.db, columns), Matrix(smallest=True))
    program.build()
    return program


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_not_linear_is_refused_where_it_stands(why: str) -> None:
    with (
        machine_on(model_text("milling"), milling()) as (model, machine),
        changed_inputs(machine.db, model, machine.parts, (), None),
    ):
        program = build(machine, model)
        with pytest.raises(ToolError, match=why.split(";")[0]):
            program.terms("measure.x", REFUSED[why])


@pytest.mark.parametrize("sql", OF_CHOICES)
def test_rows_of_a_choice_are_only_summed_and_counted(sql: str) -> None:
    with (
        machine_on(model_text("teams"), teams()) as (model, machine),
        changed_inputs(machine.db, model, machine.parts, (), None),
    ):
        program = build(machine, model)
        with pytest.raises(ToolError, match="not linear"):
            program.terms("measure.x", sql)


@pytest.mark.parametrize("name", LINEAR)
def test_coefficients_are_those_of_the_sql_at_random_plans(name: str) -> None:
    with (
        machine_on(model_text("milling"), milling()) as (model, machine),
        changed_inputs(machine.db, model, machine.parts, (), None),
    ):
        program = build(machine, model)
        terms = program.terms("measure.x", LINEAR[name])
        for seed in range(3):
            amounts = np.random.default_rng(seed).uniform(1, 40, len(program.matrix.low))
            real = plain_value(program, amounts, LINEAR[name])
            mine = sum(value * (amounts[at] if at >= 0 else 1.0) for at, value in terms.items())
            assert mine == pytest.approx(real, rel=1e-9)


def plain_value(program: Program, amounts: np.ndarray, sql: str) -> float:
    """Compute a query in another database, on plain tables with these amounts."""
    with duckdb.connect() as db:
        for name in ("product", "demand", "week", "silo"):
            frame = program.db.execute(f"SELECT * FROM {name}").fetchnumpy()
            db.register("frame", {key: np.asarray(values) for key, values in frame.items()})
            db.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
        for name, source in (("make", "demand"), ("lost", "demand"), ("overtime", "week")):
            first, count = program.starts[name]
            rows = program.db.execute(
                f'SELECT * EXCLUDE (amount) FROM "__lin_{name}" ORDER BY amount[1].i'
            ).fetchnumpy()
            own = {key: np.asarray(values) for key, values in rows.items()}
            db.register("frame", own | {"amount": np.ascontiguousarray(amounts[first : first + count])})
            db.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
            assert len(db.execute(f"SELECT * FROM {source}").fetchall()) == count
        stock = next(one.sql for one in program.model.tables)
        db.execute(f"CREATE VIEW stock AS {stock}")
        return float(db.execute(sqlglot.parse_one(sql, read="duckdb").sql("duckdb")).fetchall()[0][0])


def test_a_missing_coefficient_is_named_and_is_not_free() -> None:
    world = dict(milling())
    head, rows = world["product"]
    world["product"] = (head, [rows[0], (*rows[1][:1], None, *rows[1][2:]), rows[2]])
    why = r"measure\.cost\.part\.milling: .*a coefficient is NULL"
    with machine_on(model_text("milling"), world) as (_, machine), pytest.raises(ToolError, match=why):
        machine.run("solve", {"seconds": 9, "scenario": "", "changes": "", "forced": [], "excluded": []}, Caps())
