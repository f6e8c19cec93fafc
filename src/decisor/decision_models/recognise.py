"""Which decision model a question is about, where the database has the schema of a Decision QA world."""

from __future__ import annotations

import re
from collections.abc import Iterable

from decisor.decision_models import building, locating
from decisor.decision_models.locating import Semantics
from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, WhatIf


def world(names: Iterable[str]) -> str:
    """ "locating", "building" or "" from the names of tables, or of labels and relationship types.

    >>> world(["Country", "Trade_node", "source", "NodeCountry"])
    'locating'
    >>> world(["invoices"])
    ''
    """
    have = {name.lower().replace("_", "") for name in names}
    if {"country", "tradenode", "nodecountry"} <= have and have & {"flow", "source"}:
        return "locating"
    return "building" if {"goods", "building", "supply", "demand"} <= have else ""


def named(text: str, names: Iterable[str]) -> str | None:
    """The one name that the text says as a word, quoted ones first, longer ones before what they contain.

    >>> named('the ruler of "SWE", not Swe', ["SWE", "WE"])
    'SWE'
    >>> named("the market price of luxury_clothes", ["clothes", "luxury_clothes"])
    'luxury_clothes'
    """
    words = sorted(names, key=len, reverse=True)
    for pattern in ("[\"'“‘`]{0}[\"'”’`]", r"(?<![\w-]){0}(?![\w-])"):
        for same_case in (True, False):
            flags = re.NOFLAG if same_case else re.IGNORECASE
            for name in words:
                spoken = re.escape(name).replace("_", "[_ ]")
                if re.search(pattern.replace("{0}", spoken), text, flags):
                    return name
    return None


async def recognise(
    source: BulkSource, names: Iterable[str], text: str, semantics: Semantics = "paper"
) -> WhatIf | None:
    """The model for a question asked of ``source``, whose tables or labels are ``names``; None where there is none."""
    kind = world(names)
    try:
        if kind == "locating":
            trade = await locating.read(source)
            country = named(text, trade.network.countries)
            return trade.model(country, semantics) if country else None
        if kind == "building":
            economy = await building.read(source)
            goods = named(text, economy.chains.goods)
            return economy.model(goods, semantics) if goods else None
    except (SetupError, ToolError):
        return None
    return None
