"""How many questions with two readings the rules suspect, and how many clear ones they suspect in vain.

python performance/readings/measure.py [--unseen] [--show]

Two minutes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from data import DATA
from decisor.databases.sql import SqlTool
from decisor.semantics.readings import suspect_readings
from decisor.types import Question
from head import words
from readings.worlds import chinook, contracts, northwind

HERE = Path(__file__).parent


def questions() -> dict[str, dict[str, Any]]:
    return tomllib.loads((HERE / "questions.toml").read_text("utf-8"))


def part(group: Sequence[Any], unseen: bool | None) -> list[Any]:
    """Every second one was not looked at while the rules were written."""
    return [one for at, one in enumerate(group) if unseen is None or (at % 2 == 1) == unseen]


def places(folder: Path) -> dict[str, str]:
    return {
        "northwind": northwind(folder / "northwind.db", DATA),
        "chinook": chinook(DATA),
        "contracts": contracts(folder / "contracts.db"),
    }


async def main(unseen: bool | None, show: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        hits = total = alarms = clear = 0
        for name, url in places(Path(folder)).items():
            tool = await SqlTool.open(url)
            for one in part(questions()[name]["ambiguous"], unseen):
                found = suspect_readings(Question(one["ask"]), tool.tables)
                hits, total = hits + bool(found), total + 1
                if show:
                    print("   " if found else "NO ", one["ask"], [(x.words, *x.choices) for x in found])
            for text in part(questions()[name]["clear"], unseen):
                found = suspect_readings(Question(text), tool.tables)
                alarms, clear = alarms + bool(found), clear + 1
                if show and found:
                    print("VAIN", text, [(x.words, *x.choices) for x in found])
            await tool.close()
    print(f"suspected {hits} of {total}; in vain {alarms} of {clear} clear ones")


if __name__ == "__main__":
    words(__doc__)
    which = True if "--unseen" in sys.argv else False if "--seen" in sys.argv else None
    asyncio.run(main(which, "--show" in sys.argv))
