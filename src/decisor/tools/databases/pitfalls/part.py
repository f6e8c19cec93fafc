"""A part of a query that groups, cuts or numbers rows, as a source: which of its columns tell its rows apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from decisor.tools.databases.pitfalls.block import Block, conjuncts
from decisor.tools.databases.pitfalls.source import FromColumn, FromItem

if TYPE_CHECKING:
    from sqlglot import Expr

CUTTING = ("group", "having", "distinct", "limit", "offset", "qualify", "fetch")
ONE_ROW = frozenset[str]()


def is_plain(block: Block) -> bool:
    """Whether it only chooses rows and columns."""
    return (
        bool(block.sources)
        and not any(block.select.args.get(name) for name in CUTTING)
        and not any(own(block, aggregates(one) or windows(one)) for one in block.select.expressions)
    )


def own(block: Block, nodes: Iterable[Expr]) -> bool:
    return any(node.parent_select is block.select for node in nodes)


def aggregates(value: Expr) -> list[Expr]:
    from sqlglot import exp

    return [
        *value.find_all(exp.AggFunc),
        *(one for one in value.find_all(exp.Anonymous) if one.name.lower() == "total"),
    ]


def windows(value: Expr) -> list[Expr]:
    from sqlglot import exp

    return list(value.find_all(exp.Window))


def part(block: Block, name: str, text: str) -> FromItem:
    keys = tuple(dict.fromkeys(keys_of(block)))
    columns = tuple(block.outputs)
    return FromItem(name, columns, keys, text, block=block)


def keys_of(block: Block) -> Iterator[frozenset[str]]:
    from sqlglot import exp

    select = block.select
    grouped = block.groups()
    limit = select.args.get("limit") or select.args.get("fetch")
    count = limit and (limit.args.get("expression") or limit.args.get("count"))
    if isinstance(count, exp.Literal) and count.name in ("0", "1"):
        yield ONE_ROW
    if not block.sources and not select.args.get("from_"):
        yield ONE_ROW
    if grouped is None and any(own_aggregates(block)):
        yield ONE_ROW
    distinct = select.args.get("distinct")
    if grouped:
        yield from named_by(block, grouped)
    if distinct is not None:
        on = distinct.args.get("on")
        if on is not None:
            yield from named_by(block, on.expressions if isinstance(on, exp.Tuple) else [on])
        else:
            yield from named_by(block, list(block.outputs.values()))
    if grouped is None and distinct is None:
        yield from numbered(block)
        yield from inherited(block)


def own_aggregates(block: Block) -> Iterator[Expr]:
    from sqlglot import exp

    for one in block.select.expressions:
        for node in aggregates(one):
            if node.parent_select is block.select and not isinstance(node.parent, exp.Window):
                yield node


def named_by(block: Block, values: list[Expr]) -> Iterator[frozenset[str]]:
    """The columns of the result that are these values, less those that follow from the others."""
    names: list[str] = []
    without: set[FromColumn] = set()
    for value in values:
        column = output_of(block, value)
        if column:
            names.append(column)
        else:
            without |= block.of(value)
    for name in list(names):
        others = [one for one in names if one != name]
        if follows(block, block.of(block.outputs[name]), others):
            names = others
    if not without or follows(block, without, names):
        yield frozenset(names)


def output_of(block: Block, value: Expr) -> str:
    """The column of the result that is this value, '' where none is."""
    origin = block.bare(value)
    for name, one in block.outputs.items():
        if one == value or (origin is not None and block.bare(one) == origin):
            return name
    return ""


def follows(block: Block, origins: Iterable[FromColumn], names: Iterable[str]) -> bool:
    """Whether these columns have one value for given values of those of the result."""
    origins = set(origins)
    known = {origin for name in names if (origin := block.bare(block.outputs[name])) is not None}
    columns, single = block.closure(known, ())
    return bool(origins) and all(one in columns or one.source in single for one in origins)


def numbered(block: Block) -> Iterator[frozenset[str]]:
    """ROW_NUMBER() with its partition tells rows apart; QUALIFY may keep the first of each."""
    from sqlglot import exp

    for name, value in block.outputs.items():
        if isinstance(value, exp.Window) and isinstance(value.this, exp.RowNumber):
            partition = [output_of(block, one) for one in value.args.get("partition_by") or ()]
            if all(partition):
                yield frozenset({name, *partition})
    qualify = block.select.args.get("qualify")
    for condition in conjuncts(qualify.this if qualify else None):
        window = condition.find(exp.Window) if isinstance(condition, exp.EQ) else None
        if window is not None and isinstance(window.this, exp.RowNumber):
            yield from named_by(block, list(window.args.get("partition_by") or ()))


def inherited(block: Block) -> Iterator[frozenset[str]]:
    """The key of a source whose row tells those of all others."""
    by_origin = {block.bare(value): name for name, value in reversed(block.outputs.items())}
    for source in block.sources:
        if len(block.closure((), [source])[1]) == len(block.sources):
            for key in source.keys:
                names = [by_origin.get(FromColumn(source, column), "") for column in key]
                if all(names):
                    yield frozenset(names)
