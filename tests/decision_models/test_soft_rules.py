"""What it costs to break a soft rule, against plain Python, for each way to write what must hold."""

from pathlib import Path

import pytest

from decision_shops import model_in_process, source_of
from decisor.decision_models.ranking import rank_model

LOADS = {"a": 2.0, "b": 5.0, "c": 9.0}
MODEL = """format = 3
decide = "the lorry"
choice.pick.rows = "SELECT name FROM lorry"
[measure.cost]
goal = "min"
sql = "SELECT 1.0"
[rule.full]
text = "It is well loaded."
rows = "SELECT load FROM lorry JOIN pick USING (name)"
must = "MUST"
soft = 10.0
"""


@pytest.mark.parametrize(
    ("must", "low", "high"),
    [("load <= 4", -99, 4), ("(load >= 4)", 4, 99), ("load = 4", 4, 4), ("load >= 4 AND (load BETWEEN 3 AND 6)", 4, 6)],
)
async def test_each_unit_beyond_has_its_price(must: str, low: float, high: float, tmp_path: Path) -> None:
    rows = ", ".join(f"('{name}', {load}::DOUBLE)" for name, load in LOADS.items())
    async with source_of(
        f"CREATE TABLE lorry AS SELECT * FROM (VALUES {rows}) l(name, load)", tmp_path / "l"
    ) as source:
        model = await model_in_process(MODEL.replace("MUST", must), source)
        outcomes = {one.name: one.outcome for one in rank_model(model).options}
        model.close()
    beyond = {name: max(0.0, low - load) + max(0.0, load - high) for name, load in LOADS.items()}
    # A load below 3 misses both comparisons of the last one.
    twice = {name: max(0.0, 3 - load) if "BETWEEN" in must else 0.0 for name, load in LOADS.items()}
    assert outcomes == {name: 1 + 10 * (beyond[name] + twice[name]) for name in LOADS}
