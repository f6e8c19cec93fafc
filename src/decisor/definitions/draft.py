"""Definitions drafted from a schema and its rows, each with its reason: a beginning, for a person to go on from."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace

from decisor.definitions.format import Definition, Definitions, Dimension, Entity, Join, Metric, Origin
from decisor.definitions.measure import Rows, cardinality, doubles, number
from decisor.definitions.naming import name_of, named_once
from decisor.definitions.relations import Column, Relation
from decisor.errors import ToolError
from decisor.outside import one_line
from decisor.plurals import counted

NUMBER = re.compile(r"int|num|dec|real|double|float|money|serial", re.I)
TEXT = re.compile(r"char|text|string|enum|^$", re.I)
DAY = re.compile(r"date|time", re.I)
AMOUNT = re.compile(r"(amount|total|revenue|sales|cost|freight|fee|tax|profit|salary|budget|spend|paid)", re.I)
PRICE = re.compile(r"price|rate$", re.I)
QUANTITY = re.compile(r"quantity|qty|units$|pieces", re.I)
DISCOUNT = re.compile(r"discount|rebate", re.I)
BIRTH = re.compile(r"birth|modified|updated", re.I)
KEYLIKE = re.compile(r"(^|_)(id|key|code|no|nr)$|Id$|ID$|_sk$", re.I)
FEW, MOST_COLUMNS, MOST_TABLES = 40, 40, 60


async def draft(rows: Rows, tables: Sequence[Relation]) -> Definitions:
    """What keys, names and counts say. Measures at most ``MOST_TABLES`` tables, and looks at no row that it shows."""
    own = [table for table in tables if not table.view and table.rows != 0][:MOST_TABLES]
    parts: list[Definition] = []
    for table in own:
        parts += [one async for one in entities(table, rows)]
        parts += metrics(table, rows)
        parts += [one async for one in joins(table, rows)]
        if sum(isinstance(one, Dimension) for one in parts) < MOST_COLUMNS:
            parts += [one async for one in dimensions(table, rows)]
    return Definitions(
        metrics=named_once(one for one in parts if isinstance(one, Metric)),
        dimensions=named_once(one for one in parts if isinstance(one, Dimension)),
        entities=named_once(one for one in parts if isinstance(one, Entity)),
        joins=named_once(one for one in parts if isinstance(one, Join)),
    )


async def entities(table: Relation, rows: Rows) -> AsyncIterator[Entity]:
    """By the key that is declared, else by a column that looks like one and is measured to be one."""
    name = snake(table.name)
    if key := [column.name for column in table.columns if column.key]:
        about = comment_of(table)
        yield Entity(name, table.name, key, about=about, origin=Origin(why="its declared primary key"))
        return
    for column in [one for one in table.columns if KEYLIKE.search(one.name)][:4]:
        at = spelt(rows, table.name)
        try:
            shared = await doubles([spelt(rows, column.name)], at, rows)
            empty = await number(f"SELECT count(*) AS n FROM {at} WHERE {spelt(rows, column.name)} IS NULL", rows)
        except ToolError:
            continue
        if not shared and not empty:
            why = f"no key is declared; as measured, no two of {table.rows or 'its'} rows share it"
            yield Entity(name, table.name, [column.name], origin=Origin(why=why))
            return


def metrics(table: Relation, rows: Rows) -> Iterator[Metric]:
    """Sums of what is named like an amount, price times quantity, and a count of what has a day."""
    name, at = snake(table.name), spelt(rows, table.name)
    numbers = [one for one in table.columns if NUMBER.search(one.type) and not one.key and not one.references]
    grain = [spelt(rows, one.name) for one in table.columns if one.key]
    days = [one.name for one in table.columns if DAY.search(one.type) and not BIRTH.search(one.name)]
    day = spelt(rows, days[0]) if days else ""

    def metric(called: str, sql: str, why: str) -> Metric:
        return Metric(f"{name}_{called}", sql, at, grain=grain, date=day, origin=Origin(why=why))

    price, pieces, discount = (next((one for one in numbers if pattern.search(one.name)), None)
                               for pattern in (PRICE, QUANTITY, DISCOUNT))  # fmt: skip
    if price and pieces:
        product, why = f"{spelt(rows, price.name)} * {spelt(rows, pieces.name)}", f"{price.name} times {pieces.name}"
        yield metric("gross_value", f"SUM({product})", f"{why} of each row, before any discount")
        if discount:
            net = f"SUM({product} * (1 - {spelt(rows, discount.name)}))"
            yield metric("net_value", net, f"{why} of each row, {discount.name} read as a share of 1")
    for one in numbers:
        if AMOUNT.search(one.name) and not DISCOUNT.search(one.name):
            own = metric(snake(one.name), f"SUM({spelt(rows, one.name)})", f"{one.name} is named like an amount")
            yield replace(own, about=comment_of(one))
    if day and grain:
        yield metric("count", "COUNT(*)", "its rows have a key and a day, so they are counted")


async def joins(table: Relation, rows: Rows) -> AsyncIterator[Join]:
    """By foreign keys of one column, and by values that are keys elsewhere."""
    for column in table.columns:
        place = column.references or column.joins
        if not place:
            continue
        other = place.rpartition(".")[0].rpartition(".")[2]
        join = Join(
            f"{snake(table.name)}_{snake(column.name)}_{snake(other)}", [f"{table.name}.{column.name}"], [place]
        )
        try:
            measured, alone = await cardinality(join, rows)
        except ToolError:
            continue
        why = "a declared foreign key" if column.references else "its values are keys there, though nothing declares it"
        left = f"; {counted(alone, 'row')} without a partner" if alone else ""
        yield Join(join.name, join.left, join.right, measured, Origin(why=f"{why}; {measured} as measured{left}"))


async def dimensions(table: Relation, rows: Rows) -> AsyncIterator[Dimension]:
    """Texts with few values."""
    for column in table.columns:
        if not TEXT.search(column.type) or column.key or column.references or (table.rows or 0) < 2:
            continue
        name, at = spelt(rows, column.name), spelt(rows, table.name)
        try:
            count = await number(f"SELECT count(DISTINCT {name}) AS n FROM {at}", rows)
        except ToolError:
            continue
        if 1 < count <= FEW and count * 2 <= (table.rows or 0):
            why = f"{counted(count, 'value')} in {counted(table.rows or 0, 'row')}"
            yield Dimension(f"{snake(table.name)}_{snake(column.name)}", name, at, origin=Origin(why=why))


def comment_of(part: Relation | Column) -> str:
    """What the database says of it, where it keeps comments."""
    return one_line(str(getattr(part, "comment", "") or ""), 200)


def spelt(rows: Rows, name: str) -> str:
    """In quotes only where they are needed."""
    from decisor.tools.databases.sql_render import identifier

    worker = getattr(rows, "worker", None)
    return identifier(name, worker.description.dialect) if worker else rows.quoted(name)


def snake(name: str) -> str:
    """
    >>> snake("OrderDetails"), snake("Order Details"), snake("ORDERS")
    ('order_details', 'order_details', 'orders')
    """
    return name_of(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
