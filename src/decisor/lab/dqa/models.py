"""Which decision model a question is about, where the database has the schema of a Decision QA world."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, WhatIf

if TYPE_CHECKING:
    from decisor.lab.dqa.locating import Semantics


def recognise_world(names: Iterable[str]) -> str:
    """Return "locating", "building" or "" by the names of tables, labels and relationship types.

    >>> recognise_world(["Country", "Trade_node", "source", "NodeCountry"])
    'locating'
    >>> recognise_world(["invoices"])
    ''
    """
    have = {name.lower().replace("_", "") for name in names}
    if {"country", "tradenode", "nodecountry"} <= have and have & {"flow", "source"}:
        return "locating"
    return "building" if {"goods", "building", "supply", "demand"} <= have else ""


def find_spoken_name(text: str, names: Iterable[str]) -> str | None:
    """Find the name that a text contains as a word; None without one.

    Quoted names come first, and longer names before names within them.

    >>> find_spoken_name('the ruler of "SWE", not Swe', ["SWE", "WE"])
    'SWE'
    >>> find_spoken_name("the market price of luxury_clothes", ["clothes", "luxury_clothes"])
    'luxury_clothes'
    """
    words = sorted(names, key=len, reverse=True)
    for pattern in ("[\"'“‘`]{0}[\"'”’`]", r"(?<![\w-]){0}(?![\w-])"):
        # Tags such as SWE are spelled like words in another case, so the same case counts first.
        for same_case in (True, False):
            flags = re.NOFLAG if same_case else re.IGNORECASE
            for name in words:
                spoken = re.escape(name).replace("_", "[_ ]")
                if re.search(pattern.replace("{0}", spoken), text, flags):
                    return name
    return None


async def recognise_model(
    source: BulkSource, names: Iterable[str], text: str, semantics: Semantics = "paper"
) -> WhatIf | None:
    """Find the decision model for a question asked of ``source``; None if there is none.

    names: of the source's tables, or labels and relationship types.
    """
    kind = recognise_world(names)
    if not kind:
        return None
    # Every session asks this module of its databases; the simulators are loaded where there is a world.
    from decisor.lab.dqa import building, locating
    from decisor.lab.dqa.rows import BUILDING, LOCATING, read_world_tables

    try:
        if kind == "locating":
            trade = locating.LocatingData.of(await read_world_tables(source, LOCATING))
            country = find_spoken_name(text, trade.network.countries)
            return trade.model(country, semantics) if country else None
        if kind == "building":
            economy = building.BuildingData.of(await read_world_tables(source, BUILDING))
            goods = find_spoken_name(text, economy.chains.goods)
            return economy.model(goods, semantics) if goods else None
    except (SetupError, ToolError):
        return None
    return None
