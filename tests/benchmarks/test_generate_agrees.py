"""Generated answers are those of the decision models in whatif, with the semantics of the printed rules."""

import json
from pathlib import Path

import pytest

from decisor.databases.sql import SqlTool
from decisor.decision_models.ranking import rank_what_if
from decisor.lab.dqa import building, locating
from decisor.lab.dqa.building import BuildingData
from decisor.lab.dqa.generator import generate_dataset, make_example
from decisor.lab.dqa.rows import BUILDING, LOCATING, read_world_tables
from decisor.lab.dqa.worlds import Scenario, read_dump
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques.exact import Exact
from decisor.tools.toolbox import Toolbox
from decisor.tools.whatif import WhatIfTool


@pytest.mark.slow
@pytest.mark.parametrize(("form", "ending"), [("SQL_format", "sql"), ("LPG_format", "cql")])
@pytest.mark.parametrize("scenario", ["locating", "building"])
@pytest.mark.parametrize("size", ["tiny", "medium"])
def test_the_answers_are_those_of_the_decision_model(
    scenario: Scenario, form: str, ending: str, size: str, tmp_path: Path
) -> None:
    made = generate_dataset(scenario, size, 3, tmp_path, 12)
    for entry in json.loads(next((made.folder / "questions").iterdir()).read_text()):
        name = f"q{entry['question_num']}" if scenario == "locating" else entry["country"]
        world = read_dump(made.folder / "queries" / form / f"{name}.{ending}")
        subject = entry["goods"] if isinstance(world, BuildingData) else entry["country"]
        ranking = rank_what_if(world.model(subject, "paper"), trials=0)
        assert ranking.ties == (str(entry["answer"]),)
        assert ranking.margin == pytest.approx(entry["difficulty"]["margin"], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", ["supply", "trade"])
async def test_exact_decides_an_example(name: str, tmp_path: Path) -> None:
    made = make_example(name, tmp_path)
    sql = await SqlTool.open(made.database_url)
    try:
        if made.scenario == "building":
            economy = building.BuildingData.of(await read_world_tables(sql, BUILDING))
            tool = WhatIfTool(lambda semantics: economy.model(made.subject, semantics), rank_what_if)  # type: ignore[arg-type]
        else:
            network = locating.LocatingData.of(await read_world_tables(sql, LOCATING))
            tool = WhatIfTool(lambda semantics: network.model(made.subject, semantics), rank_what_if)  # type: ignore[arg-type]
        decision = await Exact(trials=20)(made.question, Run(ScriptedLLM([]), Toolbox([sql, tool])))
    finally:
        await sql.close()
    assert decision.answer
    assert decision.ranking is not None and len(decision.ranking.ties) == 1
    assert (decision.ranking.margin or 0) > 0.001
