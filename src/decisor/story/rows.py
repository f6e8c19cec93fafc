"""Records as the rows of a table of text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.render.text import number, one_line
from decisor.types import Record, Value

CELL = 40
"""Characters of a cell."""


def row_lines(records: Sequence[Record], with_ids: bool = False) -> list[str]:
    """A head, then a line a record; of the columns of the first.

    >>> row_lines([Record("o1.r1", {"site": "elm", "rent": 400.0}), Record("o1.r2", {"site": "oak", "rent": 9})], True)
    ['         site  rent', '[o1.r1]  elm    400', '[o1.r2]  oak      9']
    """
    names = list(records[0].fields)
    ids = [["", *(f"[{record.id}]" for record in records)]] if with_ids else []
    columns = [*ids, *([name, *(show(record.fields.get(name)) for record in records)] for name in names)]
    cells = [[one_line(cell, CELL) for cell in column] for column in columns]
    widths = [max(map(len, column)) for column in cells]
    numeric = [False] * len(ids) + [isinstance(records[0].fields[name], int | float) for name in names]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in zip(*cells, strict=True)
    ]


def groups_of(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Rows of one observation with the same columns together, in the order in which the first of each comes; a passage
    alone."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        name = record.id if record.text else record.id.partition(".")[0]
        groups.setdefault((name, *record.fields), []).append(record)
    yield from groups.values()


def show(value: Value) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else str(value)
