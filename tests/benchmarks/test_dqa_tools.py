"""What the environment of a question of Decision QA holds: the database, the model behind it, or both."""

from dataclasses import replace
from pathlib import Path

from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.generator import generate_dataset
from decisor.types import Action


async def test_the_model_stands_beside_the_database_where_both_are_wanted(tmp_path: Path) -> None:
    generate_dataset("building", "small", 3, tmp_path, 3)
    bench = DqaBench(tmp_path, tools="both")
    case = bench.cases()[0]
    try:
        async with bench.environment(case) as env:
            assert env.tools() == ("sql", "whatif")
            assert "The outcome is price, to be as small as possible, of" in env.describe()
            assert (await env.step(Action("whatif", "rank trials=0"))).ranking is not None
            assert (await env.step(Action("sql", "SELECT count(*) FROM goods"))).records
        async with replace(bench, tools="database").environment(case) as env:
            assert env.tools() == ("sql",)
        async with replace(bench, tools="decision_model").environment(case) as env:
            assert env.tools() == ("sql", "decision_model")
    finally:
        await bench.close()
