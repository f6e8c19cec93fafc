"""The two worlds of Decision QA, written as model files, give what their vectorised models give."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from data import DATA
from decisor.databases.sql import SqlTool
from decisor.decision_models.candidates import Candidates
from decisor.decision_models.copies import Copy, build_machine_content, read_copies
from decisor.decision_models.file import parse_model
from decisor.decision_models.worker import engine as machine
from decisor.lab.dqa import worlds as dumps
from decisor.lab.dqa.databases import load_world
from decisor.lab.dqa.model_files import FILES
from decisor.lab.dqa.worlds import DqaCase, Scenario, read_dqa_questions
from decisor.sandbox.engine import Caps
from decisor.session.decision_models import opened_model

PARAMETER = {"building": "goods", "locating": "country"}
SCENARIOS: tuple[Scenario, ...] = ("building", "locating")
pytestmark = pytest.mark.skipif(not (DATA / "dqa").is_dir(), reason="no released questions at hand")


async def compare(some: list[DqaCase], scenario: Scenario, folder: Path) -> float:
    """The largest relative difference of any outcome of any candidate."""
    text = FILES[scenario].read_text()
    tables: dict[Path, dict[str, Copy]] = {}
    largest = 0.0
    for case in some:
        if case.database not in tables:
            url = f"duckdb:///{folder}/{len(tables)}.duckdb"
            await load_world(dumps.read_dump(case.database), url)
            sql = await SqlTool.open(url)
            tables[case.database] = await read_copies(parse_model(text), sql)
            await sql.close()
        model = parse_model(text, **{PARAMETER[scenario]: case.subject})
        engine = await asyncio.to_thread(
            machine.connect_machine, build_machine_content(model, tables[case.database]), Caps()
        )
        candidates = Candidates.of(engine.choice(), model.choices[0].takes)
        fast = dumps.read_dump(case.database).model(case.subject, "paper")
        names = [candidates.name(at) for at in range(len(candidates))]
        assert names == list(fast.candidates()), case.id
        results = engine.outcomes(candidates.places, most=0)
        assert results.batched
        values, expected = results.parts[model.first.name][""], fast.outcomes(names)
        largest = max(largest, float(np.max(np.abs(values - expected) / np.maximum(np.abs(expected), 1e-12))))
        best = min if fast.goal == "min" else max
        assert values[int(np.argmax(expected == best(expected)))] == pytest.approx(best(values), rel=1e-8), case.id
        engine.close()
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_world_as_a_file_gives_what_the_vectorised_one_gives(scenario: Scenario, tmp_path: Path) -> None:
    """Of every eighth question: all 151 are as near."""
    assert await compare(read_dqa_questions(DATA / "dqa", scenario, "sql")[::8], scenario, tmp_path) < 1e-7


async def test_a_world_is_opened_by_its_file_from_sqlite_too(tmp_path: Path) -> None:
    case = read_dqa_questions(DATA / "dqa", "locating", "sql")[0]
    world = dumps.read_dump(case.database)
    await load_world(world, f"sqlite:///{tmp_path}/world.db")
    async with opened_model(FILES["locating"], f"sqlite:///{tmp_path}/world.db", country=case.subject) as model:
        outcomes = await asyncio.to_thread(model.outcomes, [0, 1, 2])
        names = model.candidates.names([0, 1, 2])
    np.testing.assert_allclose(outcomes.values[:, 0], world.model(case.subject, "paper").outcomes(names), rtol=1e-7)
