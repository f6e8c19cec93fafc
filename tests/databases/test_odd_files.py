"""Odd files are read as a person reads them: a corpus with the right values, held against pandas, polars and DuckDB."""

from __future__ import annotations

import csv
import io
import math
import sqlite3
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import duckdb
import openpyxl
import pandas
import polars
import pytest

from databases.odd_exports import ODD_EXPORTS
from databases.odd_files import DATES, NUMBERS, OddFile
from databases.odd_files import ODD_FILES as FORMER_FILES
from decisor.databases.files.import_process import import_files
from decisor.databases.files.numerals import count_numerals
from decisor.databases.files.store import find_data_files

ODD_FILES = (*FORMER_FILES, *ODD_EXPORTS)


def written(odd: OddFile, folder: Path) -> Path:
    path = folder / f"t.{odd.ending}"
    path.write_bytes(odd.content if isinstance(odd.content, bytes) else odd.content.encode())
    return path


def columns_of(path: str, folder: Path) -> tuple[dict[str, list[object]], list[str]]:
    files = find_data_files(path)
    store = folder / "store.duckdb"
    notes = import_files(store, list(files.parts), files.decimal, files.dates)
    with duckdb.connect(str(store), read_only=True) as database:
        result = database.execute("SELECT * FROM t")
        names = [column[0] for column in result.description]
        rows = result.fetchall()
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}, notes


@pytest.mark.parametrize("odd", ODD_FILES, ids=lambda odd: odd.name)
def test_an_odd_file_is_read_as_a_person_reads_it(odd: OddFile, tmp_path: Path) -> None:
    columns, notes = columns_of(f"{written(odd, tmp_path)}{odd.habits}", tmp_path)
    assert columns == odd.columns, notes
    for name, values in odd.columns.items():  # True is no 1
        assert [isinstance(value, bool) for value in columns[name]] == [isinstance(value, bool) for value in values]
    assert odd.note in " ".join(notes)
    assert odd.note or "add up the others" not in " ".join(notes)


@pytest.mark.parametrize(
    "odd", [odd for odd in (*NUMBERS, *DATES) if odd.content and "\t" not in str(odd.content)], ids=lambda odd: odd.name
)
def test_texts_of_a_sheet_are_read_as_those_of_a_csv_file(odd: OddFile, tmp_path: Path) -> None:
    """But for a file whose separator says something, and errors, which a sheet has as cells without a value."""
    assert isinstance(odd.content, str)
    if odd.name == "error_in_texts" or (";" in odd.content and not odd.habits and "#decimal" in odd.note):
        return
    book = openpyxl.Workbook()
    assert book.active is not None
    quote = ";" if ";" in odd.content else ","
    for row in pandas.read_csv(
        io.StringIO(odd.content), sep=quote, dtype=str, header=None, keep_default_na=False, skip_blank_lines=False
    ).itertuples(index=False):
        book.active.append(list(row))
    book.save(tmp_path / "t.xlsx")
    columns, notes = columns_of(f"{tmp_path / 't.xlsx'}{odd.habits}", tmp_path)
    assert columns == odd.columns, notes


FORMATTED: list[tuple[str, list[float | str], str, list[object], str]] = [
    ("0.0%", [0.125, 0.07, 0.29], "12.5%,7.0%,29.0%", [12.5, 7, 29], "in %"),
    ("[$€-407] #,##0.00", [1250, 2.5], '"€ 1,250.00",€ 2.50', [1250, 2.5], "in €"),
    ('_-* #,##0.00\\ "€"_-;-* #,##0.00\\ "€"_-', [-1250, 2.5], '"-1,250.00 €",2.50 €', [-1250, 2.5], "in €"),
    ("[$CHF] #,##0", [1250, 2], '"CHF 1,250",CHF 2', [1250, 2], "in CHF"),
    ("#,##0.00;(#,##0.00)", [-450, 2.5], "(450.00),2.50", [-450, 2.5], ""),
    ("00000", [1067, 10115], "01067,10115", ["01067", "10115"], ""),
    ('0 "kg"', [12, 3], "", [12, 3], ""),
    ('0.0"%"', [12.5, 3], "12.5%,3.0%", [12.5, 3], "in %"),
    ("0.0\\%", [12.5, 3], "12.5%,3.0%", [12.5, 3], "in %"),
    ("0%", [0.5, "n/a"], "50%,n/a", [50, None], "in %; 'n/a' is no value"),
]


@pytest.mark.parametrize(("code", "cells", "shown", "right", "note"), FORMATTED, ids=[row[0] for row in FORMATTED])
def test_a_cell_is_read_as_its_format_shows_it(
    code: str, cells: list[float | str], shown: str, right: list[object], note: str, tmp_path: Path
) -> None:
    """And as the text that a spreadsheet writes of it into a CSV file."""
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in ([], ["x", "name", "v", "w"], *(["x", f"r{at}", cell, 1.5] for at, cell in enumerate(cells))):
        book.active.append(row)
    for at in range(len(cells)):
        book.active.cell(at + 3, 3).number_format = code
    book.active.cell(1, 3).number_format = code  # an empty cell above the table
    book.save(tmp_path / "t.xlsx")
    columns, notes = columns_of(str(tmp_path / "t.xlsx"), tmp_path)
    assert columns["v"] == right and note in " ".join(notes), notes
    assert columns["w"] == [1.5] * len(cells)
    if shown:
        texts = next(csv.reader([shown]))
        lines = "".join(f'r{at},"{text}"\n' for at, text in enumerate(texts))
        (tmp_path / "csv").mkdir()
        (tmp_path / "csv" / "t.csv").write_text(f"name,v\n{lines}")
        (tmp_path / "store.duckdb").unlink()
        assert columns_of(str(tmp_path / "csv" / "t.csv"), tmp_path)[0]["v"] == right


@pytest.mark.parametrize(
    ("codes", "right", "note"),
    [
        (["0%", "General"], ["50%", "3"], "1 value of 2 are in %"),
        (["[$$-409]#,##0", "[$€-407]#,##0"], ["0.5$", "3€"], "its amounts are in $ and €"),
    ],
)
def test_cells_of_two_units_stay_text(codes: list[str], right: list[str], note: str, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (["name", "v"], ["a", 0.5], ["b", 3]):
        book.active.append(row)
    for at, code in enumerate(codes):
        book.active.cell(at + 2, 2).number_format = code
    book.save(tmp_path / "t.xlsx")
    columns, notes = columns_of(str(tmp_path / "t.xlsx"), tmp_path)
    assert columns["v"] == right and note in " ".join(notes)


def test_formulas_that_no_spreadsheet_has_computed_are_told(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (["name", "v"], ["a", "=1+1"], ["b", 5]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    columns, notes = columns_of(str(tmp_path / "t.xlsx"), tmp_path)
    assert columns == {"name": ["a", "b"], "v": [None, 5]}
    assert "1 cell with a formula that no spreadsheet has computed" in notes[0]


def read_by_pandas(path: Path, separator: str) -> dict[str, list[object]]:
    frame = pandas.read_csv(path, sep=separator)
    return {str(name): [None if pandas.isna(value) else value for value in frame[name].tolist()] for name in frame}


def read_by_polars(path: Path, separator: str) -> dict[str, list[object]]:
    return polars.read_csv(path, separator=separator, try_parse_dates=True).to_dict(as_series=False)


def read_by_duckdb(path: Path, separator: str) -> dict[str, list[object]]:
    result = duckdb.connect().execute(f"FROM read_csv('{path}', delim='{separator}', header=true)")
    rows = result.fetchall()
    return {column[0]: [row[at] for row in rows] for at, column in enumerate(result.description)}


@pytest.mark.parametrize(
    "odd", [odd for odd in ODD_FILES if not odd.apart and not odd.habits], ids=lambda odd: odd.name
)
def test_what_three_libraries_agree_on_is_right(odd: OddFile, tmp_path: Path) -> None:
    """Where all of them read a column as values that are no texts, and read the same, so does the corpus."""
    path = written(odd, tmp_path)
    text = odd.content if isinstance(odd.content, str) else ""
    separator = next((mark for mark in ("\t", ";", "|") if mark in text.split("\n")[0]), ",")
    try:
        readings = [read(path, separator) for read in (read_by_pandas, read_by_polars, read_by_duckdb)]
    except Exception as error:  # one of them reads nothing, so they agree on nothing
        pytest.skip(str(error)[:80])
    for name, right in odd.columns.items():
        if not all(name in reading for reading in readings):
            continue
        first, *others = ([plain(value) for value in reading[name]] for reading in readings)
        if all(other == first for other in others) and not any(isinstance(value, str) for value in first):
            assert first == [plain(value) for value in right], name


def plain(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return float(value) if isinstance(value, int | float) else value


def test_the_corpus_has_250_files() -> None:
    assert len({odd.name for odd in ODD_FILES}) == len(ODD_FILES) >= 250


def test_rows_of_several_json_files_say_their_file(tmp_path: Path) -> None:
    (tmp_path / "sales_2023.json").write_bytes(b'\xef\xbb\xbf[{"v": 18446744073709551617}]')
    (tmp_path / "sales_2024.json").write_text('[{"v": 2}]')
    (tmp_path / "made_1.jsonl").write_text('{"file": "x"}\nnone\n')
    (tmp_path / "made_2.jsonl").write_text('{"file": "y"}\n')
    store = tmp_path / "store.duckdb"
    notes = import_files(store, list(find_data_files(str(tmp_path)).parts))
    with duckdb.connect(str(store), read_only=True) as database:
        rows = database.execute("SELECT v, file FROM sales ORDER BY v").fetchall()
        assert rows == [(2, "sales_2024.json"), (18446744073709551617, "sales_2023.json")]
        rows = database.execute("SELECT file, file_2 FROM made ORDER BY file").fetchall()
        assert rows == [("x", "made_1.jsonl"), ("y", "made_2.jsonl")]
    assert "made: 1 line left out, because not readable." in notes


def test_a_long_number_of_sqlite_beside_decimals_stays_exact(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with closing(sqlite3.connect(tmp_path / "folder" / "s.db")) as source, source:
        source.execute("CREATE TABLE t(a, b, c)")
        rows = [(2**53 + 1, 2**53 + 1, 7), (2.5, 1, 2.5), (-(2**63), None, None)]
        source.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    columns, _ = columns_of(str(tmp_path / "folder"), tmp_path)
    assert columns["a"] == ["9007199254740993", "2.5", "-9223372036854775808"]
    assert columns["b"] == [9007199254740993, 1, None]
    assert columns["c"] == [7, 2.5, None]


def test_numerals_of_a_long_column_are_counted_by_row() -> None:
    """A million rows of ten texts: the figures of rows are those of plain Python."""
    texts = [f"{number:05d}" if number < 3 else f"${number},500" for number in range(10)]
    with duckdb.connect(config={"threads": 1}) as db:
        listed = ", ".join(f"'{text}'" for text in texts)
        db.execute(f"CREATE TABLE t AS SELECT [{listed}][1 + i % 10] AS v FROM range(1000000) AS rows (i)")
        numerals = count_numerals(db, "t", "v")
    assert (numerals.texts, numerals.strange, numerals.tagged) == (1_000_000, 300_000, 700_000)
    assert numerals.units == ("$",) and numerals.example == "00000"
