"""Values of functions in a file: the rows that they were called for are held against those of today."""

import random
from pathlib import Path

from decision_shops import model_in_process, source_of
from decisor.decision_models.checks import check_model
from decisor.decision_models.client import find_changed_arguments

MODEL = """format = 3
decide = "the lot"
[choice.pick]
rows = "SELECT name, region, kwh FROM lot"
[function.grid]
call = "fee"
rows = "SELECT name, region, kwh FROM lot"
gives = { eur = "EUR" }
at = "2026-11-28T10:00:00Z"
values = [VALUES]
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT sum(eur) FROM pick JOIN grid USING (name)"
"""
Row = tuple[str, str, float]


def create_lots(rows: list[Row]) -> str:
    values = ", ".join(f"('{name}', '{region}', {kwh}::DOUBLE)" for name, region, kwh in rows)
    return f"CREATE TABLE lot AS SELECT * FROM (VALUES {values}) l(name, region, kwh)"


def model_of(rows: list[Row]) -> str:
    values = ", ".join(
        f'{{ name = "{name}", region = "{region}", kwh = {kwh!r}, eur = {kwh * 0.01!r} }}' for name, region, kwh in rows
    )
    return MODEL.replace("VALUES", values)


def say(row: Row) -> str:
    return f"name {row[0]}, region {row[1]}, kwh {row[2]:,.0f}"


async def test_changed_gone_and_new_rows_are_told_with_before_and_after(tmp_path: Path) -> None:
    chance, told = random.Random(2), 0
    for case in range(8):
        called = [(f"l{at}", chance.choice("ns"), float(chance.randint(1, 9) * 1000)) for at in range(4)]
        today = dict.fromkeys(range(4))
        rows: list[Row] = []
        expected: set[tuple[str, str]] = set()
        for at, row in zip(today, called, strict=True):
            # A changed cell leaves two cells that are equal, and the name is one's own.
            match chance.choice(("same", "same", "kwh", "region")):
                case "kwh":
                    rows.append((row[0], row[1], row[2] + 500 + at))
                case "region":
                    rows.append((row[0], "x", row[2]))
                case _:
                    rows.append(row)
            if rows[-1] != row:
                expected.add((say(row), say(rows[-1])))
        async with source_of(create_lots(rows), tmp_path / f"{case}.duckdb") as source:
            model = await model_in_process(model_of(called), source)
            found = {(one.before, one.after) for one in find_changed_arguments(model)}
            doubts = [one for one in check_model(model) if one.number == 19]
            model.close()
        assert found == expected and len(doubts) == len(expected)
        assert all(one.kind == "doubt" and one.line == 5 for one in doubts)
        told += len(expected)
    assert told > 10


async def test_a_row_that_is_gone_or_new_has_one_side(tmp_path: Path) -> None:
    called: list[Row] = [("a", "n", 1000.0), ("b", "s", 2000.0)]
    for case, (rows, expected) in enumerate(
        (
            ([called[0]], [(say(called[1]), "")]),
            ([*called, ("c", "w", 3000.0)], [("", "name c, region w, kwh 3,000")]),
            ([called[0], ("c", "w", 3000.0)], [(say(called[1]), ""), ("", "name c, region w, kwh 3,000")]),
        )
    ):
        async with source_of(create_lots(rows), tmp_path / f"{case}.duckdb") as source:
            model = await model_in_process(model_of(called), source)
            assert [(one.before, one.after) for one in find_changed_arguments(model)] == expected
            model.close()
