"""OptiGuide's coffee: each change of data that its benchmark asks about, put to the tool ``whatif``, beside the cost
that its authors recorded.

    python performance/coffee_whatif.py FOLDER    # coffee.py and coffee.benchmark.json of microsoft/OptiGuide

Needs decisor[solver]. The change is given in the tool's words, translated here line by line: this measures the model
file, the change of data and the solver, no LLM.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from decisor.decision_models.file import parse_model
from decisor.decision_models.tool import ModelTool
from decisor.errors import ToolError
from decisor.session.decision_models import opened_model
from head import words

MODEL = """
decide = "how much coffee goes which way"

[variable.bring]
each = "SELECT supplier, roastery, cost FROM ship"
kind = "whole"
[variable.light]
each = "SELECT roastery, cafe, d.cost + r.light AS cost FROM deliver AS d JOIN roast AS r USING (roastery)"
kind = "whole"
[variable.dark]
each = "SELECT roastery, cafe, d.cost + r.dark AS cost FROM deliver AS d JOIN roast AS r USING (roastery)"
kind = "whole"

[require.flow]
each   = "SELECT roastery FROM roast"
sum    = "bring - light - dark"
equals = 0
[require.supply]
each    = "SELECT supplier, capacity FROM supply"
sum     = "bring"
at_most = "capacity"
[require.light_demand]
each     = "SELECT cafe, light FROM need"
sum      = "light"
at_least = "light"
[require.dark_demand]
each     = "SELECT cafe, dark FROM need"
sum      = "dark"
at_least = "dark"

[measure.cost]
goal = "min"
sum  = "cost * bring + cost * light + cost * dark"
sql  = '''SELECT (SELECT sum(cost * amount) FROM bring) + (SELECT sum(cost * amount) FROM light)
               + (SELECT sum(cost * amount) FROM dark)'''
"""
PLACES = {
    "capacity_in_supplier": ("supply.capacity", ("supplier",)),
    "shipping_cost_from_supplier_to_roastery": ("ship.cost", ("supplier", "roastery")),
    "light_coffee_needed_for_cafe": ("need.light", ("cafe",)),
    "dark_coffee_needed_for_cafe": ("need.dark", ("cafe",)),
}
LINE = re.compile(r"(?P<table>\w+)\[(?P<keys>[^]]+)\]\s*=\s*(?P<value>.+)")


def tables(source: str) -> dict[str, Any]:
    """The constants of the program, read without running it."""
    assigns = [
        node for node in ast.parse(source).body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    ]
    return {ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in assigns}


def database(data: Mapping[str, Any], path: Path) -> str:
    light, dark = data["light_coffee_needed_for_cafe"], data["dark_coffee_needed_for_cafe"]
    roast = [
        (key, data["roasting_cost_light"][key], data["roasting_cost_dark"][key]) for key in data["roasting_cost_light"]
    ]
    rows = {
        "supply (supplier TEXT, capacity DOUBLE)": [*data["capacity_in_supplier"].items()],
        "ship (supplier TEXT, roastery TEXT, cost DOUBLE)": [
            (*key, cost) for key, cost in data["shipping_cost_from_supplier_to_roastery"].items()
        ],
        "deliver (roastery TEXT, cafe TEXT, cost DOUBLE)": [
            (*key, cost) for key, cost in data["shipping_cost_from_roastery_to_cafe"].items()
        ],
        "roast (roastery TEXT, light DOUBLE, dark DOUBLE)": roast,
        "need (cafe TEXT, light DOUBLE, dark DOUBLE)": [(cafe, light[cafe], dark[cafe]) for cafe in light],
    }
    with duckdb.connect(str(path)) as db:
        for table, content in rows.items():
            db.execute(f"CREATE TABLE {table}")
            db.executemany(f"INSERT INTO {table.split()[0]} VALUES ({', '.join('?' * len(content[0]))})", content)
    return f"duckdb:///{path}"


def changes(code: str) -> Iterator[str]:
    """Each line in the words of the tool."""
    for line in filter(str.strip, code.splitlines()):
        match = LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(line)
        place, columns = PLACES[match["table"]]
        value = match["value"].replace(f"{match['table']}[{match['keys']}]", place.partition(".")[2])
        keys = [key.strip().strip("\"'") for key in match["keys"].split(",")]
        where = " AND ".join(f"{column} = '{key}'" for column, key in zip(columns, keys, strict=True))
        yield f"set {place} = {value} where {where}"


async def cost_of(tool: ModelTool, wish: str) -> object:
    """As the benchmark writes it: text where nothing fits."""
    try:
        return (await tool.call(wish)).records[0].fields["cost then"]
    except ToolError as error:
        return "infeasible" if "Nothing meets all requirements" in str(error) else str(error)


async def main(folder: Path) -> None:
    questions = json.loads((folder / "coffee.benchmark.json").read_text())["questions"]
    gold = {one["DATA CODE"]: one["GT EXEC RESULT"] for one in questions if "DATA CODE" in one}
    right, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as own:
        url = database(tables((folder / "coffee.py").read_text()), Path(own) / "coffee.duckdb")
        async with opened_model(parse_model(MODEL), url) as model:
            tool = ModelTool(model)
            for code, cost in gold.items():
                value = await cost_of(tool, "; ".join(changes(code)))
                same = str(cost).startswith(str(value)) or (
                    isinstance(cost, float) and isinstance(value, float) and abs(value - cost) <= 1e-6 * cost
                )
                right += same
                if not same:
                    print(f"{'; '.join(changes(code))}: {value}, recorded {cost}")
    print(f"{right} of {len(gold)} distinct changes have the recorded cost; {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    asyncio.run(main(Path(words(__doc__)[0])))
