"""Decision QA worlds from savegames in Clausewitz text: the trade of EU4, the economies of Victoria 3.

Data that a save lacks are read from the game's own definition file: for trade, the map file of trading nodes (outgoing
edges, inland); for economies, the file of goods (cost). Nothing of a game is in this package. A country with buildings
is one Building world.

Clausewitz text has ``key=value``, ``key={ ... }``, quoted strings, # comments and repeated keys. A save may be larger
than memory: ``iterate_save_sections`` reads it line by line and holds one section, or one entry of an opened section,
at a time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np

from decisor.errors import ParseError, SetupError
from decisor.lab.dqa.generated_worlds import Floats, Ints, Supply, Trade, add_supply_state, add_trade_state
from decisor.lab.dqa.generator import Dataset, QuestionedWorld, find_world_questions, write_worlds

TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}])|([<>!?]?=|[<>])|(#.*)|([^\s{}="#<>!?]+|[!?])|(")')
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class SaveBlock:
    """The content between two braces as (key, value) pairs, in order. The key is empty if a value has none."""

    items: tuple[tuple[str, SaveValue], ...]

    def get(self, key: str) -> SaveValue | None:
        """Return the first value of a key."""
        return next(self.all(key), None)

    def all(self, key: str) -> Iterator[SaveValue]:
        """Iterate over every value of a key that may repeat."""
        return (value for name, value in self.items if name == key)

    def text(self, key: str) -> str:
        """Return the text of a key, empty if there is none."""
        value = self.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str, default: float = 0.0) -> float:
        return parse_save_number(self.text(key), default)

    def block(self, key: str) -> SaveBlock:
        """Return the block of a key, an empty one if there is none."""
        value = self.get(key)
        return value if isinstance(value, SaveBlock) else SaveBlock(())

    def blocks(self) -> Iterator[tuple[str, SaveBlock]]:
        """Iterate over the (key, block) pairs."""
        return ((key, value) for key, value in self.items if isinstance(value, SaveBlock))

    def values(self) -> tuple[str, ...]:
        """Return the texts without a key, which form a list."""
        return tuple(value for key, value in self.items if not key and isinstance(value, str))


SaveValue: TypeAlias = "str | SaveBlock"
SavePath: TypeAlias = tuple[str, ...]
SaveToken = tuple[str, str, int]
"""Its kind ({, }, = for any sign, end, or '' for a text), its text, and its line."""
SaveTokens = Iterator[tuple[SaveToken, SaveToken]]
"""Each token with the next one."""


def parse_save_number(text: str, default: float = 0.0) -> float:
    """Parse a number of a save; return ``default`` if the text is no number.

    >>> parse_save_number("1.5"), parse_save_number("none", 2)
    (1.5, 2)
    """
    try:
        return float(text)
    except ValueError:
        return default


def parse_save_text(text: str) -> SaveBlock:
    """Parse a whole Clausewitz text as one block.

    >>> parse_save_text('a=1 b={ x="two words" x=y } # note').block("b").items
    (('x', 'two words'), ('x', 'y'))
    """
    return SaveBlock(tuple((path[0], value) for path, value in iterate_save_sections(text.splitlines())))


def iterate_save_sections(
    lines: Iterable[str], opened: Set[str] = frozenset(), sections: Set[str] | None = None
) -> Iterator[tuple[SavePath, SaveValue]]:
    """Yield the sections of a text as ((key,), value).

    The entries of an ``opened`` section come one by one as ((key, entry), value).

    ``sections``: other sections than these and the opened are passed over without being held; None is all.

    Raises:
        ParseError: braces or quotes do not match.
    """
    tokens = pairwise(read_save_tokens(lines))
    for key, first in iterate_entries(tokens, 0):
        if key in opened and first[0] == "{":
            for entry, begun in iterate_entries(tokens, 1):
                yield (key, entry), read_save_value(tokens, begun, 1)
        elif sections is None or key in sections:
            yield (key,), read_save_value(tokens, first, 0)
        # Sections that nobody asked for are skipped token by token, so memory holds one section at most.
        elif first[0] == "{":
            depth = 1
            while depth and (token := next(tokens, None)):
                depth += (token[0][0] == "{") - (token[0][0] == "}")
            if depth:
                raise ParseError("The text ends inside a block.", "unclosed")


def read_save_tokens(lines: Iterable[str]) -> Iterator[SaveToken]:
    """Yield the tokens of a text, and two of the kind "end", so that each has one behind it."""
    rest, number = "", 0
    for number, line in enumerate(lines, 1):
        text, rest = rest + line.rstrip("\r\n"), ""
        for match in TOKEN.finditer(text):
            if match[6]:
                rest = text[match.start() :] + "\n"  # the string goes on in the next line
                break
            if match[1] is not None:
                yield "", match[1].replace('\\"', '"'), number
            elif not match[4]:
                yield "=" if match[3] else match[2] or "", match[0], number
    if rest:
        raise ParseError(f"The text ends at line {number} inside quotes.", "unclosed")
    yield from [("end", "", number)] * 2


def iterate_entries(tokens: SaveTokens, depth: int) -> Iterator[tuple[str, SaveToken]]:
    """Yield (key, first token of the value) of each entry of a block. The caller takes the rest of the value."""
    for (kind, text, line), ahead in tokens:
        if kind == "end" and depth:
            raise ParseError(f"The text ends at line {line} inside a block.", "unclosed")
        if kind == "}" and not depth:
            raise ParseError(f"A block is closed at line {line} that was never opened.", "unopened")
        if kind in ("}", "end"):
            return
        # A key is told from a list item only by the sign behind it.
        if not kind and ahead[0] == "=":
            value = next(tokens)[1]
            if value[0] in ("}", "end"):
                raise ParseError(f"{text!r} has no value at line {line}.", "syntax")
            next(tokens)
            yield text, value
        else:
            yield "", (kind, text, line)


def read_save_value(tokens: SaveTokens, first: SaveToken, depth: int) -> SaveValue:
    kind, text, line = first
    if kind != "{":
        return text
    # The parser recurses, and a file may nest more deeply than Python can.
    if depth >= DEEPEST:
        raise ParseError(f"Blocks are nested more than {DEEPEST} deep at line {line}.", "depth")
    entries = iterate_entries(tokens, depth + 1)
    return SaveBlock(tuple((key, read_save_value(tokens, begun, depth + 1)) for key, begun in entries))


def read_economies(sections: dict[str, SaveBlock], goods_file: SaveBlock) -> Iterator[tuple[str, Supply]]:
    """Yield the tag and the world of each country. goods_file: the file of goods, name = { cost }, in the order of
    their codes.

    Raises:
        SetupError: the file of goods names none.
    """
    goods = [(name, about.number("cost")) for name, about in goods_file.blocks()]
    if not goods:
        raise SetupError("The file of goods names none; give the game's file of goods, name = { cost = ... }.")
    by_state: dict[str, list[tuple[int, SaveBlock]]] = defaultdict(list)
    for code, building in _iterate_section(sections["building_manager"]):
        if code.isdecimal():
            by_state[building.text("state")].append((int(code), building))
    states = dict(_iterate_section(sections.get("states", SaveBlock(()))))
    for _, country in _iterate_section(sections.get("country_manager", sections.get("countries", SaveBlock(())))):
        home = [state for state in country.block("states").values() if state in by_state]
        buildings = sorted((pair for state in home for pair in by_state[state]), key=lambda pair: pair[0])
        if buildings and country.text("definition"):
            yield country.text("definition"), _build_economy(goods, buildings, [states[s] for s in home if s in states])


def _iterate_section(section: SaveBlock) -> Iterator[tuple[str, SaveBlock]]:
    """Iterate over the entries of a section, which a save may wrap in ``database``."""
    return (section.block("database") if section.get("database") else section).blocks()


def _build_economy(
    goods: list[tuple[str, float]], buildings: list[tuple[int, SaveBlock]], states: list[SaveBlock]
) -> Supply:
    needs = np.zeros(len(goods))
    for state in states:
        for code, amount in state.block("pop_needs").items:
            if code.isdecimal() and int(code) < len(goods) and isinstance(amount, str):
                needs[int(code)] += parse_save_number(amount)
    outputs, makers, most_output = _read_amounts("output_goods", buildings, len(goods))
    used, users, most_used = _read_amounts("input_goods", buildings, len(goods))
    return add_supply_state(
        Supply(
            tuple(name for name, _ in goods),
            np.array([cost for _, cost in goods]),
            needs,
            np.array([code for code, _ in buildings], dtype=np.int64),
            tuple(one.text("building") for _, one in buildings),
            np.array(
                [max(int(one.number("level", one.number("levels", 1))), 1) for _, one in buildings], dtype=np.int64
            ),
            outputs,
            makers,
            most_output,
            used,
            users,
            most_used,
        )
    )


def _read_amounts(section: str, buildings: list[tuple[int, SaveBlock]], count: int) -> tuple[Ints, Ints, Floats]:
    """Return goods, building and maximum of each amount taken or given; outputs include the building's throughput."""
    rows = []
    for place, (_, building) in enumerate(buildings):
        factor = building.number("throughput", 1.0) if section == "output_goods" else 1.0
        for code, amount in building.block(section).block("goods").items:
            if code.isdecimal() and int(code) < count and isinstance(amount, str) and parse_save_number(amount) > 0:
                rows.append((int(code), place, parse_save_number(amount) * factor))
    return (
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.float64),
    )


def read_trade(trade: SaveBlock, countries: SaveBlock, homes: dict[str, str], map_file: SaveBlock) -> Trade:
    """Read the trade network of a save. homes: province -> its trading node. map_file: the map file, node = { inland
    outgoing = { name } }.

    Raises:
        SetupError: a section is missing, or the map file's edges form a ring.
    """
    states = {node.text("definitions"): node for _, node in trade.blocks() if node.text("definitions")}
    places = {name: about for name, about in map_file.blocks() if name in states}
    if not places:
        raise SetupError("The map file names none of the save's trading nodes; give the game's file of trading nodes.")
    names = _sort_upstream_first(places)
    at = {name: number for number, name in enumerate(names)}
    ports = {tag: homes.get(about.text("trade_port"), "") for tag, about in countries.blocks()}
    tags = [tag for tag, home in ports.items() if home in at]
    edges = sorted((at[up], below, at[below]) for up in names for below in _list_outgoing(places[up]) if below in at)
    rows = [
        (at[name], of, states[name].block(tag).number("val"))
        for name in names
        for of, tag in enumerate(tags)
        if states[name].block(tag).number("val") > 0
    ]
    if not rows or not edges:
        raise SetupError("The save gives no country power in a trading node, or the map file has no edge.")
    world = Trade(
        tuple(names),
        np.array([states[name].number("local_value") for name in names]),
        np.array([places[name].text("inland") == "yes" for name in names]),
        np.array([up for up, _, _ in edges], dtype=np.int64),
        np.array([down for _, _, down in edges], dtype=np.int64),
        tuple(tags),
        np.array([at[ports[tag]] for tag in tags], dtype=np.int64),
        np.array([countries.block(tag).number("development") for tag in tags]),
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows]),
    )
    return add_trade_state(world)


def _list_outgoing(place: SaveBlock) -> list[str]:
    return [edge.text("name") for edge in place.all("outgoing") if isinstance(edge, SaveBlock)]


def _sort_upstream_first(places: dict[str, SaveBlock]) -> list[str]:
    """Return the names of the nodes sorted so that upstream nodes come first."""
    above: dict[str, list[str]] = {name: [] for name in places}
    for name, place in places.items():
        for below in _list_outgoing(place):
            if below in above:
                above[below].append(name)
    try:
        return list(TopologicalSorter(above).static_order())
    except CycleError as error:
        raise SetupError(f"The trading nodes form a ring: {', '.join(error.args[1])}.") from error


QUESTIONS = 200
LEAST_DEVELOPMENT = 50.0  # countries smaller than this are not asked about, as in the release
SECTIONS = {"countries", "trade", "building_manager", "country_manager", "date", "meta_data", "states"}
OPENED = {"provinces"}


def extract_worlds(save: Path, out: Path, definitions: Path, questions: int = QUESTIONS) -> Dataset:
    """Write the worlds of a save below ``out`` in the released layout. Their state comes from one simulation.

    Raises:
        SetupError: a file cannot be read, is no such save, or gives no question with one best decision.
    """
    try:
        sections, homes, date = read_save(save)
        game_file = parse_save_text(definitions.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise SetupError(f"{error.filename} cannot be read: {error.strerror}.") from error
    except ParseError as error:
        raise SetupError(f"{save} or {definitions} is not Clausewitz text: {error}") from error
    year = (re.match(r"\d+", date) or [""])[0]
    worlds = []
    if "trade" in sections:
        folder = out / "locating"
        trade = read_trade(sections["trade"], sections.get("countries", SaveBlock(())), homes, game_file)
        found = find_world_questions(trade, 0)
        large = (question for question in found if trade.development[question.subject] > LEAST_DEVELOPMENT)
        worlds.append(QuestionedWorld(trade, tuple(islice(large, questions)), year))
    elif "building_manager" in sections:
        folder = out / "building"
        for tag, economy in read_economies(sections, game_file):
            found = find_world_questions(economy, 0)
            worlds.append(QuestionedWorld(economy, tuple(islice(found, questions)), f"{tag}{year}"))
            questions -= len(worlds[-1].questions)
    else:
        raise SetupError(f"{save} has neither a section trade nor building_manager; is it a save in text form?")
    worlds = [world for world in worlds if world.questions]
    if not worlds:
        raise SetupError("No question on this save has one best decision.")
    return write_worlds(worlds, folder)


def read_save(save: Path) -> tuple[dict[str, SaveBlock], dict[str, str], str]:
    """Read the sections of a save that are needed, the trading node of each province, and the date."""
    homes: dict[str, str] = {}
    sections: dict[str, SaveBlock] = {}
    date = ""
    with save.open(encoding="utf-8", errors="replace") as lines:
        for path, value in iterate_save_sections(lines, OPENED, SECTIONS):
            if path[0] == "provinces" and len(path) == 2 and isinstance(value, SaveBlock):
                # EU4 writes provinces as -1, -2, ..., and their ports as 1, 2, ...
                homes[path[1].lstrip("-")] = value.text("trade")
            elif isinstance(value, SaveBlock):
                sections[path[0]] = value
            elif path == ("date",):
                date = value
    return sections, homes, date or sections.get("meta_data", SaveBlock(())).text("game_date")
