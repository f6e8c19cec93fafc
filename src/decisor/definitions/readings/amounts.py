"""Gross or net, pieces or money."""

from __future__ import annotations

import re
from collections.abc import Iterator

from decisor.definitions.readings.open import OpenReading, Subject, pieces
from decisor.definitions.relations import Column, Relation

MONEY = r"\b(revenues?|turnover|sales|income|earnings?|worth|values?|billing|amounts?|money|cash)\b"
MAKING = r"\b(earn(s|ed)?|spen[dt]s?|pa(y|ys|id)|bring(s|ing)?|did we make|make for us)\b"
SETTLED = r"\b(gross|net|discounts?|tax(es)?|vat|freight|rebates?|list price)\b"
LESS = re.compile(r"^(discount|rebate|tax|vat|fee|fees|freight|shipping|deduction)$")
AMOUNT = re.compile(r"^(price|amount|total|value|revenue|cost|sum)$")
PAIRS = (("gross", "net"), ("list", "net"), ("before", "after"))
NUMBER = re.compile(r"int|num|dec|real|double|float|money|^$", re.I)
DEAL = r"\b(sells?|sold|selling|buys?|bought|purchases? most|best-?sell(er|ers|ing))\b"
RANK = r"\b(most|best|least|worst|more|better|fewest|top)\b"
COUNTS = r"\b(units?|pieces?|cop(y|ies)|quantit(y|ies)|number of)\b"
PIECES = rf"{COUNTS}|\b(revenue|money|value|turnover)\b"
DAY = re.compile(r"date|time", re.I)
COUNTED = re.compile(r"quantity|qty|units|pieces", re.I)


def gross_or_net(subject: Subject) -> Iterator[OpenReading]:
    match = subject.has(MONEY) or (not subject.has(COUNTS) and subject.has(MAKING))
    if not match or subject.has(SETTLED):
        return
    if any(
        match[0] in pieces(column.name) and DAY.search(column.type)
        for table in subject.tables
        for column in table.columns
    ):
        return  # the day on which something was paid, say
    for table in near(subject):
        numbers = [one for one in table.columns if NUMBER.search(one.type) and not one.key and not one.references]
        if any(subject.says(one) for one in numbers):
            return
        if pair := gross_net_columns(numbers):
            yield OpenReading(match[0], pair, [*pair, "gross", "net"])
            return
        amount = next((one for one in numbers if set(pieces(one.name)) & WORDS_OF_AMOUNT), None)
        less = next((one for one in numbers if any(LESS.match(word) for word in pieces(one.name))), None)
        if amount and less and amount is not less:
            way = "with" if less.name.lower() in ("tax", "vat", "freight", "shipping") else "before"
            other = "without" if way == "with" else "after"
            yield OpenReading(match[0], (f"{other} {less.name}", f"{way} {less.name}"), [less.name, "gross", "net"])
            return


WORDS_OF_AMOUNT = {"price", "amount", "total", "value", "revenue", "cost", "sum", "gross"}


def gross_net_columns(numbers: list[Column]) -> tuple[str, str] | None:
    """Two columns that differ in such a word alone."""
    for one in numbers:
        for other in numbers:
            for gross, net in PAIRS:
                words = pieces(one.name)
                if gross in words and tuple(net if word == gross else word for word in words) == pieces(other.name):
                    return other.name, one.name
    return None


def near(subject: Subject) -> list[Relation]:
    """The tables that it names, and what belongs to them; all where it names none."""
    own = subject.named()
    children = [
        table for table in subject.tables if not table.view and any(one in own for one in subject.parents(table))
    ]
    return list(dict.fromkeys([*own, *children, *(table for table in subject.tables if not table.view)]))


def pieces_or_money(subject: Subject) -> Iterator[OpenReading]:
    deal, count = subject.has(DEAL), subject.has(r"\bhow many\b")
    if not deal or not (subject.has(RANK) or count) or subject.has(PIECES):
        return
    quantity = next((column for table in subject.tables if not table.view for column in table.columns
                     if COUNTED.search(column.name) and NUMBER.search(column.type)), None)  # fmt: skip
    if quantity is None:
        return
    if count:
        yield OpenReading(deal[0], (f"pieces, the sum of {quantity.name}", "how many different ones"), [quantity.name])
    else:
        yield OpenReading(deal[0], ("by money", f"by pieces, the sum of {quantity.name}"), [quantity.name, "money"])
