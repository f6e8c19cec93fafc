"""Small decisions on real databases, for the tests of decision models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from decisor.databases.sql import SqlTool
from decisor.decision_models.client import OpenModel, open_decision_model
from decisor.decision_models.file import parse_model
from decisor.decision_models.worker.engine import Machine, connect_machine
from decisor.sandbox.engine import Caps
from decisor.session.decision_models import opened_model
from decisor.types import Table, Value

SITES = """CREATE TABLE site AS SELECT * FROM (VALUES ('Basel',41000.0,5200),('Genua',38000.0,4100),
    ('Lyon',52000.0,6000),
    ('Mainz',33000.0,3600),('Linz',29000.0,3000),('Ulm',31000.0,3900),('Metz',27000.0,2800)) t(name, rent, capacity);
CREATE TABLE customer AS SELECT i AS id, 20 + (i * 37) % 90 AS units FROM range(200) t(i);
CREATE TABLE lane AS SELECT c.id AS customer, s.name AS site, 2.0 + (c.id * 131 + ascii(s.name) * 17
    + ascii(substr(s.name, 2, 1)) * 59) % 900 / 100.0
    AS cost FROM customer c, site s;"""
CLOSE = """
format = 3
decide = "the two warehouses to close"
choice.pick.rows = "SELECT name FROM site"
choice.pick.take = 2
change = "DELETE FROM site WHERE name IN (SELECT name FROM pick)"

[measure.cost]
goal = "min"
unit = "EUR"
sql  = '''SELECT (SELECT sum(rent) FROM site) + sum(units * cheapest)
FROM customer JOIN (SELECT customer, min(cost) AS cheapest FROM lane
                    WHERE site IN (SELECT name FROM site) GROUP BY customer) ON customer = id'''

[rule.capacity]
text    = "No warehouse may hold more than its capacity."
absent  = '''SELECT site, sum(units) AS load, capacity
FROM customer JOIN (SELECT customer, arg_min(site, (cost, site)) AS site FROM lane
                    WHERE site IN (SELECT name FROM site) GROUP BY customer) ON customer = id
JOIN site ON name = site GROUP BY site, capacity HAVING sum(units) > capacity'''
because = "{site} would hold {load} of {capacity}"

[scenario.dear_fuel]
change = "UPDATE lane SET cost = cost * 1.3"

[input]
"lane.cost"      = { unit = "EUR/piece", raises = "cost", spread = "15 % together" }
"customer.units" = { unit = "piece",     raises = "cost", spread = "20 % each" }
"site.rent"      = { unit = "EUR",       raises = "cost", spread = "5 % by name" }
"""


def database(folder: Path, statements: str, name: str = "shop.duckdb") -> str:
    """The URL of a DuckDB file with these tables."""
    path = folder / name
    with duckdb.connect(str(path)) as db:
        db.execute(statements)
    return f"duckdb:///{path}"


@asynccontextmanager
async def opened_in_worker(folder: Path, model: str = CLOSE, statements: str = SITES) -> AsyncIterator[OpenModel]:
    """As the product opens it: what is endless or hostile is ended from outside."""
    async with opened_model(parse_model(model), database(folder, statements)) as machine:
        yield machine


@asynccontextmanager
async def opened(folder: Path, model: str = CLOSE, statements: str = SITES) -> AsyncIterator[OpenModel]:
    """On the engine of the worker in this process, which spares the start of another."""
    async with source_of(statements, folder / "shop.duckdb") as source:
        machine = await model_in_process(model, source)
        try:
            yield machine
        finally:
            machine.close()


class MachineInProcess:
    """The machine of the worker, in this process: a small model takes milliseconds."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def run(self, statement: str, parameters: Mapping[str, Value], seconds: float) -> Table:
        return self.machine.run(statement, parameters, Caps(seconds=seconds))

    def close(self) -> None:
        self.machine.close()


@asynccontextmanager
async def source_of(statements: str, path: Path) -> AsyncIterator[SqlTool]:
    """A DuckDB file with the tables of many models, open."""
    with duckdb.connect(str(path)) as db:
        db.execute(statements)
    source = await SqlTool.open(f"duckdb:///{path}")
    try:
        yield source
    finally:
        await source.close()


async def model_in_process(text: str, source: SqlTool) -> OpenModel:
    model = parse_model(text)
    return await open_decision_model(model, source, start_in_process)


async def start_in_process(content: str) -> MachineInProcess:
    return MachineInProcess(connect_machine(content, Caps()))


async def factors_of(source: SqlTool, name: str, spread: str, trials: int) -> NDArray[np.float64]:
    """(rows, trials): by how much each cell of an input is moved, as a model says that has each row as a candidate."""
    table, column = name.split(".")
    text = f"""format = 3
decide = "x"\nchoice.pick.rows = "SELECT n FROM {table}"\n[measure.cell]\ngoal = "min"
sql = "SELECT {column} FROM {table} WHERE n = (SELECT n FROM pick)"\n[copy]
{table} = "SELECT 1.0::DOUBLE AS {column}, * EXCLUDE ({column}), row_number() OVER () AS n FROM {table}"
[input]\n"{name}" = {{ spread = "{spread}" }}"""
    model = await model_in_process(text, source)
    try:
        values: NDArray[np.float64] = model.trials(range(len(model.candidates)), trials).values[:, 0]
        return values
    finally:
        model.close()
