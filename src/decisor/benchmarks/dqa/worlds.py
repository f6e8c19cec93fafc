"""The questions and worlds of a folder of Decision QA, each database read once however many names it goes by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.benchmarks.protocol import Case
from decisor.errors import SetupError
from decisor.types import WhatIf

if TYPE_CHECKING:
    from decisor.benchmarks.dqa.cases import DqaCase
    from decisor.decision_models.building import BuildingData
    from decisor.decision_models.locating import LocatingData

SCENARIOS = ("locating", "building")
FORMS = ("sql", "graph")
NO_FOLDER = (
    "{folder} holds no questions of Decision QA ({folder}/{scenario}/questions/*.json). "
    "Make some: decisor bench dqa generate --scenario {scenario} --size small --seed 1 --out {folder}"
)


@dataclass(frozen=True)
class World:
    """A database as the release gives it: its dump, and the same read. ``key`` is the same for equal content."""

    key: str
    dump: Path
    data: LocatingData | BuildingData


@dataclass(frozen=True)
class WorldCase:
    """A case, its world, and whom the question is about (a country, or goods). ``ties``: what is as good as the gold
    answer; ``printed``: what is best by the rules as they are printed; ``able``: what can change the outcome."""

    case: Case
    world: World
    subject: str
    candidates: tuple[str, ...]
    ties: tuple[str, ...]
    printed: tuple[str, ...]
    able: frozenset[str]

    def model(self, semantics: str) -> WhatIf:
        """The decision model for this question."""
        return model(self.world.data, self.subject, semantics)


def model(data: LocatingData | BuildingData, subject: str, semantics: str) -> WhatIf:
    if semantics not in ("released", "paper"):
        raise SetupError(f"semantics is released or paper, not {semantics!r}.")
    return data.model(subject, "paper" if semantics == "paper" else "released")


def read_cases(folder: Path, scenario: str, form: str, limit: int | None = None) -> list[WorldCase]:
    """The first ``limit`` questions, in file order.

    Raises:
        SetupError: the folder, a question or its database cannot be read.
    """
    from decisor.benchmarks.dqa.cases import cases

    if not (folder / scenario / "questions").is_dir():
        raise SetupError(NO_FOLDER.format(folder=folder, scenario=scenario))
    released = cases(folder, "locating" if scenario == "locating" else "building", "sql" if form == "sql" else "graph")
    worlds: dict[str, World] = {}
    return [world_case(one, find_world(one.database, worlds)) for one in released[:limit]]


def find_world(path: Path, worlds: dict[str, World]) -> World:
    """The world of a dump, from ``worlds`` where its file or its content has been read before."""
    from decisor.benchmarks.dqa import dumps

    if str(path) in worlds:
        return worlds[str(path)]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SetupError(f"Cannot read the database {path}: {error}") from error
    key = hashlib.blake2b(content, digest_size=12).hexdigest()
    if key not in worlds:
        worlds[key] = World(key, path, dumps.parse(content.decode("utf-8")))
    worlds[str(path)] = worlds[key]
    return worlds[key]


def world_case(one: DqaCase, world: World) -> WorldCase:
    return WorldCase(
        Case(one.id, one.question, (one.gold,), one.scenario),
        world,
        one.subject,
        model(world.data, one.subject, "released").candidates(),
        ties(world.data, one.subject, one.gold),
        best(world.data, one.subject, "paper"),
        able(world.data, one.subject),
    )


def best(data: LocatingData | BuildingData, subject: str, semantics: str) -> tuple[str, ...]:
    """The tie set: everything that is best."""
    from decisor.decision_models.ranking import rank

    return rank(model(data, subject, semantics), trials=0).ties


def ties(data: LocatingData | BuildingData, subject: str, gold: str) -> tuple[str, ...]:
    """What is as good as the gold answer: the tie set of the released semantics, or of the printed rules where the
    gold answer is from these (generated questions); the gold answer alone where it is best under neither."""
    sets = (best(data, subject, semantics) for semantics in ("released", "paper"))
    return next((one for one in sets if gold in one), (gold,))


def able(data: LocatingData | BuildingData, subject: str) -> frozenset[str]:
    """The candidates that can change the outcome: nodes where the country has power, suppliers of the goods."""
    from decisor.decision_models.locating import LocatingData

    if isinstance(data, LocatingData):
        return frozenset(row.trade_node for row in data.powers if row.country_name == subject and not row.is_home)
    code = next(row.code for row in data.goods if row.goods_name == subject)
    return frozenset(str(row.building_id) for row in data.supply if row.goods_id == code)
