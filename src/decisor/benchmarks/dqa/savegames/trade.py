"""The trade network of an EU4 save, as a Locating world."""

from __future__ import annotations

from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from decisor.benchmarks.dqa.generator.trade import Trade, simulate
from decisor.benchmarks.dqa.savegames.clausewitz import Block
from decisor.errors import SetupError


def read_trade(trade: Block, countries: Block, homes: dict[str, str], map_file: Block) -> Trade:
    """``homes``: province -> its trading node. ``map_file``: the map file, node = { inland outgoing = { name } }.

    Raises:
        SetupError: a section is missing, or the map file's edges form a ring.
    """
    states = {node.text("definitions"): node for _, node in trade.blocks() if node.text("definitions")}
    places = {name: about for name, about in map_file.blocks() if name in states}
    if not places:
        raise SetupError("The map file names none of the save's trading nodes; give the game's file of trading nodes.")
    names = _order(places)
    at = {name: number for number, name in enumerate(names)}
    ports = {tag: homes.get(about.text("trade_port"), "") for tag, about in countries.blocks()}
    tags = [tag for tag, home in ports.items() if home in at]
    edges = sorted((at[up], below, at[below]) for up in names for below in _outgoing(places[up]) if below in at)
    rows = [
        (at[name], of, states[name].block(tag).number("val"))
        for name in names
        for of, tag in enumerate(tags)
        if states[name].block(tag).number("val") > 0
    ]
    if not rows or not edges:
        raise SetupError("The save gives no country power in a trading node, or the map file has no edge.")
    count, nothing = len(names), np.zeros(len(names))
    world = Trade(
        tuple(names), np.array([states[name].number("local_value") for name in names]),
        np.array([places[name].text("inland") == "yes" for name in names]),
        np.array([up for up, _, _ in edges], dtype=np.int64), np.array([down for _, _, down in edges], dtype=np.int64),
        tuple(tags), np.array([at[ports[tag]] for tag in tags], dtype=np.int64),
        np.array([countries.block(tag).number("development") for tag in tags]),
        np.array([row[0] for row in rows], dtype=np.int64), np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows]), nothing, nothing, np.zeros(count), np.zeros(len(edges)),
    )  # fmt: skip
    state = simulate(world)
    return replace(
        world, total_power=state.total_power, ingoing=state.ingoing, outgoing=state.outgoing, flow=state.flow
    )


def _outgoing(place: Block) -> list[str]:
    return [edge.text("name") for edge in place.all("outgoing") if isinstance(edge, Block)]


def _order(places: dict[str, Block]) -> list[str]:
    """Upstream nodes first."""
    above: dict[str, list[str]] = {name: [] for name in places}
    for name, place in places.items():
        for below in _outgoing(place):
            if below in above:
                above[below].append(name)
    try:
        return list(TopologicalSorter(above).static_order())
    except CycleError as error:
        raise SetupError(f"The trading nodes form a ring: {', '.join(error.args[1])}.") from error
