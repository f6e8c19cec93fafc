"""What the checks of decision models catch: 40 mistakes planted in five right models, and 20 right models.

    python performance/planted_mistakes.py [--seed 1] [--only WORLD]

A mistake is caught where a check complains (doubts do not count). As in a draft, the candidates that decide by the
model at hand (the winner, the runner-up, better ones that a rule excludes) are worked by hand, in plain Python; the
second model (check 16) is the right one, written otherwise. A nonsense model measures nothing: 0 of every candidate.
Bars: all 40 caught with a second model and 36 without, no right model complained about, nonsense refused. It measures
the checks, not a model that writes them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import duckdb

from decisor.decision_models.checks import check_model
from decisor.decision_models.file import parse_model
from decisor.session.decision_models import opened_model
from decisor.session.model_tools import ModellingTool
from decisor.session.open_sources import open_first_database
from decisor.system.structured_files import Finding
from planted.courses import COURSES
from planted.crops import CROPS
from planted.offers import OFFERS
from planted.tariffs import TARIFFS
from planted.vans import VANS
from planted.world import KINDS, Rows, World

WORLDS = (OFFERS, TARIFFS, VANS, COURSES, CROPS)
NUMBERS = re.compile(r'^sql +=.*?"""$|^sql += "[^"].*?"$', re.M | re.S)
"""The query of a measure."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    worlds = [world for world in WORLDS if arguments.only in ("", world.name)]
    asyncio.run(measure(worlds, arguments.seed))


async def measure(worlds: Sequence[World], seed: int) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for world in worlds:
            for number in (seed, seed + 1):
                for text in (world.model, world.second()):
                    findings, _ = await findings_of(Path(folder), world, number, text)
                    counts["right", "models"] += 1
                    counts["right", "complaints"] += bool(findings)
                    tell(world.name, "right", findings)
            nonsense, _ = await findings_of(Path(folder), world, seed, NUMBERS.sub('sql = "SELECT 0.0"', world.model))
            counts["nonsense", "refused"] += bool(nonsense)
            tell(world.name, "nonsense", nonsense)
            for kind in KINDS:
                alone, by_second = await findings_of(Path(folder), world, seed, world.wrong(kind))
                counts[kind, "planted"] += 1
                counts[kind, "alone"] += bool(alone)
                counts[kind, "with second"] += bool(alone or by_second)
                tell(world.name, kind, [*alone, *by_second])
    for kind in KINDS:
        print(
            f"{kind:<24} planted {counts[kind, 'planted']}, caught {counts[kind, 'with second']}, "
            f"without check 16 {counts[kind, 'alone']}"
        )
    whole = {name: sum(counts[kind, name] for kind in KINDS) for name in ("planted", "with second", "alone")}
    print(
        f"all: {whole['with second']} of {whole['planted']} caught, {whole['alone']} without check 16; "
        f"{counts['right', 'complaints']} of {counts['right', 'models']} right models complained about; "
        f"{counts['nonsense', 'refused']} of {len(worlds)} nonsense models refused"
    )


async def findings_of(folder: Path, world: World, seed: int, text: str) -> tuple[list[Finding], list[Finding]]:
    """Errors of all checks but 16, and of 16."""
    rows = world.rows(seed)
    url = database(folder, f"{world.name}{seed}", rows)
    async with AsyncExitStack() as stack:
        whole = text + await by_hand(world, rows, text, url)
        model = await stack.enter_async_context(opened_model(parse_model(whole), url))
        second = await stack.enter_async_context(opened_model(parse_model(world.second()), url))
        found_here = await asyncio.to_thread(lambda: list(check_model(model, second)))
    errors = [one for one in found_here if one.kind == "error"]
    return [one for one in errors if one.number != 16], [one for one in errors if one.number == 16]


async def by_hand(world: World, rows: Rows, text: str, url: str) -> str:
    """The candidates that decide by a model, as they stand at the end of its file."""
    source = await open_first_database(url, "")
    tool = ModellingTool(source)
    try:
        decisive = await tool.call(f"decisive\n{text}")
    finally:
        await tool.close()
        await source.close()
    parts = []
    for record in decisive.records:
        ((_, choice),) = json.loads(str(record.fields["choice"])).items()
        outcome, breaks = world.truth(rows, choice)
        parts.append(
            f"\n[[example]]\nchoice.pick = {choice}\nmeasure.{world.measure} = {outcome:.12g}\nbreaks = {breaks}\n"
        )
    return "".join(parts)


def database(folder: Path, name: str, rows: Rows) -> str:
    path = folder / f"{name}.duckdb"
    if not path.exists():
        with duckdb.connect(str(path)) as db:
            for table, lines in rows.items():
                kinds = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
                columns = ", ".join(f'"{key}" {kinds[type(value)]}' for key, value in lines[0].items())
                db.execute(f'CREATE TABLE "{table}" ({columns})')
                marks = ", ".join("?" * len(lines[0]))
                db.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [list(line.values()) for line in lines])
    return f"duckdb:///{path}"


def tell(world: str, kind: str, findings: Sequence[Finding]) -> None:
    numbers = ", ".join(str(number) for number in sorted({one.number for one in findings}))
    first = f": {findings[0]}" if findings and kind == "right" else ""
    print(f"{world:<8} {kind:<24} checks {numbers or 'none'}{first}", flush=True)


if __name__ == "__main__":
    main()
