"""How long a decision model takes: all candidates at once, one by one, and by hand in numpy, in the same run.

    python performance/decision_models/speed.py [--rows N] [--candidates N] [--trials N]
        [--only sparse|dense|close|knapsack|examples]

`--only sparse --trials 20` takes 20 s, `close` needs decisor[solver]; all of it some minutes.

``sparse``: a candidate changes few rows of the table. ``dense``: it changes every row. One by one is measured on a
sample and reckoned up. Memory is the most that the worker held. ``examples``: the CPU of the trials of each model in
examples/decision_models that is computed, beside the CPU of its first 16 candidates one by one in one trial.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from decisor.databases.sql import SqlTool
from decisor.decision_models.client import OpenModel, open_decision_model
from decisor.decision_models.file import parse_model
from decisor.sandbox.process import start_machine
from decisor.session.decision_models import opened_model

EXAMPLES = Path(__file__).parents[2] / "examples" / "decision_models"
BEST = 50
SAMPLE = 10
TABLES = """CREATE TABLE lane AS SELECT i AS id, i % {candidates} AS carrier,
    (20 + (i * 37) % 90)::DOUBLE AS units,
    2 + (i * 7919) % 900 / 100.0::DOUBLE AS cost, 1 + (i % 13) / 10.0::DOUBLE AS bend FROM range({rows}) t(i);
CREATE TABLE offer AS SELECT i AS carrier,
    0.7 + (i * 131) % 997 / 2000.0::DOUBLE AS factor FROM range({candidates}) t(i);"""
SPARSE = "UPDATE lane SET cost = cost * (SELECT factor FROM pick) WHERE carrier = (SELECT carrier FROM pick)"
DENSE = """UPDATE lane SET cost = cost * (SELECT factor FROM pick),
    units = units * exp(-bend * ln((SELECT factor FROM pick)))"""
MODEL = """format = 3
decide = "the offer to take"
choice.pick.rows = "SELECT carrier, factor FROM offer"
change = "{change}"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT sum(units * cost) FROM lane"
[input]
"lane.cost" = {{ unit = "EUR/piece", raises = "cost", spread = "5 % each" }}
"lane.units" = {{ unit = "piece", raises = "cost", spread = "5 % each" }}
"""
PROJECTS = """CREATE TABLE project AS SELECT 'P' || i AS project, (20 + (i * 67) % 180)::DOUBLE AS cost,
    (15 + (i * 104729) % 300)::DOUBLE AS value FROM range(40) t(i); CREATE TABLE firm AS SELECT 1200.0 AS budget"""
KNAPSACK = """format = 3
decide = "which projects to pay for"
[unknown.pay]
per = "SELECT project, cost, value FROM project"
kind = "binary"
[rule.budget]
rows = "SELECT budget, (SELECT sum(cost * amount) FROM pay) AS spent FROM firm"
must = "spent <= budget"
[measure.value]
goal = "max"
sql = "SELECT sum(value * amount) FROM pay"
"""
SITES = """SELECT setseed(0.1);
CREATE TABLE site AS SELECT i AS name, 20000 + 15000 * random() AS rent, random() AS x, random() AS y
    FROM range(100) t(i);
CREATE TABLE customer AS SELECT i AS id, 20 + 90 * random() AS units, random() AS x, random() AS y FROM range(1000)
    t(i);
CREATE TABLE lane AS SELECT c.id AS customer, s.name AS site, 1 + 12 * sqrt((c.x-s.x)**2 + (c.y-s.y)**2) AS cost
    FROM customer c, site s"""
CLOSE = """format = 3
decide = "the 20 warehouses to close"
[unknown.close]
per = "SELECT name AS site, rent FROM site"
kind = "binary"
[unknown.serve]
per = "SELECT customer, site, units * cost AS cost FROM lane JOIN customer ON id = customer"
[rule.served]
rows = "SELECT customer, sum(amount) AS share FROM serve GROUP BY customer"
must = "share = 1"
[rule.open]
rows = "SELECT s.customer, s.site, s.amount + c.amount AS both FROM serve s JOIN close c USING (site)"
must = "both <= 1"
[rule.number]
rows = "SELECT sum(amount) AS number FROM close"
must = "number = 20"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT (SELECT sum(cost * amount) FROM serve) - (SELECT sum(rent * amount) FROM close)"
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--candidates", type=int, default=1_000)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--only", default="")
    settings = options.parse_args()
    for name, change in (("sparse", SPARSE), ("dense", DENSE)):
        if settings.only in ("", name):
            asyncio.run(enumerated(name, change, settings))
    for name, tables, text in (("knapsack", PROJECTS, KNAPSACK), ("close", SITES, CLOSE)):
        if settings.only in ("", name):
            asyncio.run(solved(name, tables, text))
    for file in sorted(EXAMPLES.glob("*.toml")) if settings.only in ("", "examples") else ():
        asyncio.run(tried(file, settings.trials))


async def tried(file: Path, count: int) -> None:
    """The trials of an example, among all its candidates."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.duckdb"
        with duckdb.connect(str(path)) as db:
            db.execute(file.with_suffix(".sql").read_text("utf-8"))
        async with opened_model(parse_model(file.read_text("utf-8")), f"duckdb:///{path}") as model:
            if model.model.choice:
                print(await asyncio.to_thread(trials_of, file.stem, model, count))


def trials_of(name: str, model: OpenModel, count: int) -> str:
    model.outcomes()
    before = cpu(model)
    trials = model.trials(range(len(model.candidates)), count)
    taken, some = cpu(model) - before, range(min(16, len(model.candidates)))
    before = cpu(model)
    alone = model.outcomes(some, one_by_one=True, seed=0)
    each = (cpu(model) - before) / len(some)
    assert np.allclose(alone.values[:, 0], trials.values[: len(some), 0, 0], equal_nan=True)
    share = len(model.candidates) * count * each / max(taken, 0.01)
    how = trials.execution or "batched"
    head = f"{name}: {count} trials x {len(model.candidates):,} candidates"
    return f"{head}, CPU {taken:.2f} s ({share:.0f} x one by one); {how}"


async def enumerated(name: str, change: str, settings: argparse.Namespace) -> None:
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.duckdb"
        with duckdb.connect(str(path)) as db:
            db.execute(TABLES.format(rows=settings.rows, candidates=settings.candidates))
            lane = db.execute("SELECT * FROM lane").fetchnumpy()
            offer = db.execute("SELECT * FROM offer").fetchnumpy()
        sql = await SqlTool.open(f"duckdb:///{path}")
        began = time.perf_counter()
        model = await open_decision_model(parse_model(MODEL.format(change=change)), sql, start_machine)
        opened = time.perf_counter() - began
        try:
            await asyncio.to_thread(measured, name, model, opened, lane, offer, settings)
        finally:
            await asyncio.to_thread(model.close)
            await sql.close()


async def solved(name: str, tables: str, text: str) -> None:
    import duckdb

    from decisor.decision_models.optimize import solve_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.duckdb"
        with duckdb.connect(str(path)) as db:
            db.execute(tables)
        sql = await SqlTool.open(f"duckdb:///{path}")
        model = await open_decision_model(parse_model(text), sql, start_machine)
        try:
            began = time.perf_counter()
            best = await asyncio.to_thread(solve_model, model)
            print(
                f"{name}: {best.status} in {time.perf_counter() - began:.1f} s, {best.figures}, "
                f"{best.measures}; the worker held at most {peak(model):.0f} MB"
            )
        finally:
            await asyncio.to_thread(model.close)
            await sql.close()


def measured(
    name: str,
    model: OpenModel,
    opened: float,
    lane: dict[str, Any],
    offer: dict[str, Any],
    settings: argparse.Namespace,
) -> None:
    began = time.perf_counter()
    values = by_hand(name, lane, offer)
    numpy_seconds = time.perf_counter() - began
    began = time.perf_counter()
    before = cpu(model)
    outcomes = model.outcomes()
    together, busy = time.perf_counter() - began, cpu(model) - before
    assert np.allclose(outcomes.values[:, 0], values, rtol=1e-9)
    alone = model.outcomes(range(SAMPLE), one_by_one=True).seconds / SAMPLE * len(values)
    order = outcomes.order()
    before = cpu(model)
    trials = model.trials(order[:BEST], settings.trials)
    shaking = cpu(model) - before
    how = outcomes.execution or "batched"
    print(f"{name}: {len(values):,} candidates x {settings.rows:,} rows, {how}; opened in {opened:.2f} s")
    print(
        f"  ranked in {together:.2f} s (CPU {busy:.2f} s); one by one {alone:.1f} s ({alone / together:.0f} x); "
        f"numpy by hand {numpy_seconds:.2f} s ({together / numpy_seconds:.1f} x)"
    )
    print(
        f"  {settings.trials} trials over the best {min(BEST, len(order))}: {trials.seconds:.1f} s "
        f"(CPU {shaking:.1f} s); "
        f"the best wins {np.mean(trials.winners() == 0):.0%}"
    )
    print(f"  the worker held at most {peak(model):.0f} MB")


def by_hand(name: str, lane: dict[str, Any], offer: dict[str, Any]) -> Any:
    cost, units, bend = lane["cost"], lane["units"], lane["bend"]
    if name == "sparse":
        base, own = float((units * cost).sum()), np.bincount(lane["carrier"], units * cost, len(offer["carrier"]))
        return base + own * (offer["factor"] - 1)
    return np.array([((units * np.exp(-bend * np.log(one))) * (cost * one)).sum() for one in offer["factor"]])


def cpu(model: Any) -> float:
    """Seconds of CPU that the process of the model has used: on a busy machine, what its wall clock does not tell."""
    import os

    fields = Path(f"/proc/{model.jobs.worker.child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(model: Any) -> float:
    """Megabytes, of the process that runs at present."""
    status = Path(f"/proc/{model.jobs.worker.child.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
