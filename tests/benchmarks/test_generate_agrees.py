"""Generated answers are those of the decision models in whatif, with the semantics of the printed rules."""

import json
from pathlib import Path

import pytest

from decisor.benchmarks.dqa.dumps import read
from decisor.benchmarks.dqa.generator.generate import Scenario, generate
from decisor.benchmarks.examples import example
from decisor.decision_models import building, locating
from decisor.decision_models.building import BuildingData
from decisor.decision_models.model_file import load, parse_model
from decisor.decision_models.ranking import rank
from decisor.errors import SetupError
from decisor.lms.scripted import ScriptedLM
from decisor.run import Run
from decisor.techniques.exact import Exact
from decisor.tools.databases.cypher import CypherTool
from decisor.tools.databases.sandbox.blocking import open_scratch
from decisor.tools.databases.sql import SqlTool
from decisor.tools.toolbox import Toolbox
from decisor.tools.whatif import WhatIfTool

MODEL = """
measure = "rent"
goal = "min"
candidates = "SELECT name FROM site"
change = ["UPDATE site SET rent = rent / 2 WHERE name = :candidate"]
outcome = "SELECT sum(rent) FROM site"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("form", "ending"), [("SQL_format", "sql"), ("LPG_format", "cql")])
@pytest.mark.parametrize("scenario", ["locating", "building"])
@pytest.mark.parametrize("size", ["tiny", "medium"])
def test_the_answers_are_those_of_the_decision_model(
    scenario: Scenario, form: str, ending: str, size: str, tmp_path: Path
) -> None:
    made = generate(scenario, size, 3, tmp_path, 12)
    for entry in json.loads(next((made.folder / "questions").iterdir()).read_text()):
        name = f"q{entry['question_num']}" if scenario == "locating" else entry["country"]
        world = read(made.folder / "queries" / form / f"{name}.{ending}")
        subject = entry["goods"] if isinstance(world, BuildingData) else entry["country"]
        ranking = rank(world.model(subject, "paper"), trials=0)
        assert ranking.ties == (str(entry["answer"]),)
        assert ranking.margin == pytest.approx(entry["difficulty"]["margin"], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", ["supply", "trade"])
async def test_exact_decides_an_example(name: str, tmp_path: Path) -> None:
    made = example(name, tmp_path)
    sql = await SqlTool.open(made.database_url)
    try:
        if made.scenario == "building":
            economy = await building.read(sql)
            tool = WhatIfTool(lambda semantics: economy.model(made.subject, semantics), rank)  # type: ignore[arg-type]
        else:
            network = await locating.read(sql)
            tool = WhatIfTool(lambda semantics: network.model(made.subject, semantics), rank)  # type: ignore[arg-type]
        decision = await Exact(trials=20)(made.question, Run(ScriptedLM([]), Toolbox([sql, tool])))
    finally:
        await sql.close()
    assert decision.answer
    assert decision.ranking is not None and len(decision.ranking.ties) == 1
    assert (decision.ranking.margin or 0) > 0.001


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
async def test_a_model_file_runs_on_a_copy_of_a_real_database(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"shop.{kind}"
    statements = ["CREATE TABLE site(name TEXT, rent DOUBLE)", "INSERT INTO site VALUES ('a', 2.5), ('b', 1.5)"]
    make(kind, path, statements)
    sql = await SqlTool.open(f"{kind}:///{path}")
    try:
        model = await load(parse_model(MODEL), sql, open_scratch)
        ranking = rank(model, trials=10)
        model.close()
        untouched = (await sql.fetch("SELECT sum(rent) FROM site")).rows
    finally:
        await sql.close()
    assert [(option.name, option.outcome) for option in ranking.options] == [("a", 2.75), ("b", 3.25)]
    assert untouched == ((4.0,),)


GRAPH = """
measure = "level"
goal = "max"
candidates = "SELECT id FROM building"
outcome = "SELECT level FROM building WHERE id = :candidate"
[copy]
building = "MATCH (b:Building) RETURN b.id AS id, b.level AS level"
"""


async def test_a_model_file_runs_on_a_graph_through_its_copy_queries(tmp_path: Path) -> None:
    graph = await CypherTool.open(example("supply", tmp_path).graph_url)
    try:
        model = await load(parse_model(GRAPH), graph, open_scratch)
        ranking = rank(model, trials=0)
        model.close()
        with pytest.raises(SetupError, match="needs \\[copy\\]"):
            await load(parse_model(GRAPH.partition("[copy]")[0]), graph, open_scratch)
        with pytest.raises(SetupError, match="building cannot be copied"):
            await load(parse_model(GRAPH.replace("MATCH", "MATSCH")), graph, open_scratch)
    finally:
        await graph.close()
    assert ranking.options[0].outcome >= ranking.options[-1].outcome
    assert len(ranking.options) == 55


def make(kind: str, path: Path, statements: list[str]) -> None:
    if kind == "duckdb":
        import duckdb

        with duckdb.connect(str(path)) as database:
            for statement in statements:
                database.execute(statement)
        return
    import sqlite3

    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
