"""Decision QA worlds from savegames in Clausewitz text: the trade of EU4, the economies of Victoria 3.

What a save does not hold is read from the game's own definition file: for trade, the map file of trading nodes
(outgoing edges, inland); for economies, the file of goods (cost). Nothing of a game is in this package.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from decisor.benchmarks.dqa.generator.generate import Dataset, QuestionedWorld, find, publish
from decisor.benchmarks.dqa.savegames.clausewitz import Block, parse, walk
from decisor.benchmarks.dqa.savegames.economy import read_economies
from decisor.benchmarks.dqa.savegames.trade import read_trade
from decisor.errors import ParseError, SetupError

QUESTIONS = 200
LEAST_DEVELOPMENT = 50.0  # countries smaller than this are not asked about, as in the release
SECTIONS = {"countries", "trade", "building_manager", "country_manager", "date", "meta_data", "states"}
OPENED = {"provinces"}


def extract(save: Path, out: Path, definitions: Path, questions: int = QUESTIONS) -> Dataset:
    """Write the worlds of a save below ``out``, in the released layout, with a state that is simulated once.

    Raises:
        SetupError: a file cannot be read, is no such save, or gives no question with one best decision.
    """
    homes: dict[str, str] = {}
    sections: dict[str, Block] = {}
    date = ""
    try:
        with save.open(encoding="utf-8", errors="replace") as lines:
            for path, value in walk(lines, OPENED, SECTIONS):
                if path[0] == "provinces" and len(path) == 2 and isinstance(value, Block):
                    homes[path[1].lstrip("-")] = value.text("trade")
                elif isinstance(value, Block):
                    sections[path[0]] = value
                elif path == ("date",):
                    date = value
        game_file = parse(definitions.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise SetupError(f"{error.filename} cannot be read: {error.strerror}.") from error
    except ParseError as error:
        raise SetupError(f"{save} or {definitions} is not Clausewitz text: {error}") from error
    year = (re.match(r"\d+", date or sections.get("meta_data", Block(())).text("game_date")) or [""])[0]
    if "trade" in sections:
        return _trade(sections, homes, game_file, year, out / "locating", questions)
    if "building_manager" in sections:
        return _economies(sections, game_file, year, out / "building", questions)
    raise SetupError(f"{save} has neither a section trade nor building_manager; is it a save in text form?")


def _trade(
    sections: dict[str, Block], homes: dict[str, str], game_file: Block, year: str, out: Path, most: int
) -> Dataset:
    world = read_trade(sections["trade"], sections.get("countries", Block(())), homes, game_file)
    large = (question for question in find(world, 0) if world.development[question.subject] > LEAST_DEVELOPMENT)
    return _publish([QuestionedWorld(world, tuple(islice(large, most)), year)], out)


def _economies(sections: dict[str, Block], game_file: Block, year: str, out: Path, most: int) -> Dataset:
    worlds = []
    for tag, world in read_economies(sections, game_file):
        worlds.append(QuestionedWorld(world, tuple(islice(find(world, 0), most)), f"{tag}{year}"))
        most -= len(worlds[-1].questions)
    return _publish(worlds, out)


def _publish(worlds: list[QuestionedWorld], out: Path) -> Dataset:
    worlds = [each for each in worlds if each.questions]
    if not worlds:
        raise SetupError("No question on this save has one best decision.")
    return publish(worlds, out)
