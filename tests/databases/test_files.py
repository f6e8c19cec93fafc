"""Files as a database: what is read, what is guessed, what is told, and what cannot be reached."""

import datetime
import gzip
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import openpyxl
import pandas
import polars
import pytest

import decisor
from decisor.cli import run_command_line
from decisor.databases.files.columns import TOO_LARGE, reason_of_end
from decisor.databases.files.import_process import open_new_store
from decisor.databases.files.store import ImportedStore, import_place
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError

MODEL = """
format = 3
decide = "the supplier"
choice.pick.rows = "SELECT supplier FROM offers WHERE price IS NOT NULL"
[measure.price]
goal = "min"
sql = "SELECT price FROM offers WHERE supplier = (SELECT supplier FROM pick)"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def rows(store: ImportedStore, query: str) -> Sequence[tuple[object, ...]]:
    with duckdb.connect(store.url.removeprefix("duckdb:///"), read_only=True) as database:
        return database.execute(query).fetchall()


def kinds(store: ImportedStore, table: str) -> dict[str, str]:
    query = f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{table}'"
    return {str(name): str(kind) for name, kind in rows(store, query)}


def test_a_csv_file_is_decided_on_without_a_word_about_databases(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "offers.csv").write_text("supplier,price\nAcme,12.5\nBolt,11.0\nCrux,n/a\n")
    Path("model.toml").write_text(MODEL)
    assert (
        run_command_line(
            ["ask", "Which supplier?", "--db", "data/offers.csv", "--model", "model.toml", "--llm", "none"]
        )
        == 0
    )
    out, how = capsys.readouterr()
    assert "Decision: Bolt" in out
    assert "offers: 3 rows from offers.csv." in how and "'n/a' is no value, 1 time" in how


def test_numbers_dates_codes_and_words_for_no_value_get_their_types(folder: Path) -> None:
    lines = [f"{n:05d},{n}.5,2024-01-{n % 28 + 1:02d},{n}" for n in range(30_000)]
    path = folder / "sales.csv"
    path.write_text("\n".join(["code,price,day,units", *lines, "30000,-,2024-02-01,n/a"]))
    store = import_place(str(path))
    assert kinds(store, "sales") == {"code": "VARCHAR", "price": "DOUBLE", "day": "DATE", "units": "BIGINT"}
    assert rows(store, "SELECT count(*), count(price), count(units), min(code) FROM sales") == [
        (30_001, 30_000, 30_000, "00000")
    ]
    assert any("'n/a' is no value, 1 time" in note for note in store.notes)


def test_codes_that_begin_with_0_stay_text_beside_a_word_for_no_value(folder: Path) -> None:
    path = folder / "towns.csv"
    path.write_text("zip,height,town\n01234,0.5,Ghent\n09999,0,Oslo\nn/a,-,n/a\n")
    store = import_place(str(path))
    assert kinds(store, "towns") == {"zip": "VARCHAR", "height": "DOUBLE", "town": "VARCHAR"}
    assert rows(store, "SELECT zip, height FROM towns ORDER BY zip")[0] == ("01234", 0.5)


def test_a_column_with_one_real_word_in_it_stays_text_and_the_note_names_the_word(folder: Path) -> None:
    path = folder / "sales.csv"
    path.write_text("units\n" + "\n".join(map(str, range(30_000))) + "\nabout twelve\n")
    store = import_place(str(path))
    assert kinds(store, "sales") == {"units": "VARCHAR"}
    assert rows(store, "SELECT count(*) FROM sales") == [(30_001,)]
    assert any("sales.units is text: 'about twelve' is no number (1 such text)" in note for note in store.notes)


def test_rows_with_too_many_values_are_left_out_counted_and_told(folder: Path) -> None:
    path = folder / "sales.csv"
    path.write_text("a,b\n" + "1,2\n" * 25_000 + "1,2,3\n4,5,6\n")
    store = import_place(str(path))
    assert rows(store, "SELECT count(*) FROM sales") == [(25_000,)]
    assert any(
        "sales: 2 rows left out, because not readable: line 25002 (too many columns): '1,2,3'" in note
        for note in store.notes
    )


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "name"), [("cp1252", "cp1252"), ("utf-16", "utf-16"), ("utf-8-sig", "")])
def test_encodings_and_decimal_commas_are_read(folder: Path, encoding: str, name: str) -> None:
    path = folder / "preise.csv"
    path.write_bytes("Größe;Preis\nklein;1.234,50\ngroß;2,75\n".encode(encoding))
    store = import_place(str(path))
    assert rows(store, 'SELECT "Größe", "Preis" FROM preise ORDER BY 2') == [("groß", 2.75), ("klein", 1234.5)]
    assert any(f"is read as {name}" in note for note in store.notes) == bool(name)


def test_a_folder_of_everything_is_one_database(folder: Path) -> None:
    for year in (2023, 2024):
        (folder / f"sales_{year}.csv").write_text(f"shop,units\na,{year}\n")
    (folder / "log.jsonl").write_text('{"a": 1, "b": {"c": 2}}\nnot json\n{"a": 2}\n')
    (folder / "notes.txt").write_text("nothing for a database")
    (folder / "old.csv.gz").write_bytes(gzip.compress(b"x\n1\n"))
    duckdb.sql(f"COPY (SELECT 1 AS i) TO '{folder / 'part.parquet'}'")
    with duckdb.connect(str(folder / "more.duckdb")) as database:
        database.execute("CREATE TABLE deep AS SELECT 1 AS one")
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE town (name TEXT, size)")
        shop.executemany("INSERT INTO town VALUES (?, ?)", [("Genua", 1.5), ("", None), (None, 2)])
    store = import_place(str(folder))
    names = {str(name) for (name,) in rows(store, "SELECT table_name FROM information_schema.tables")}
    assert names == {"sales", "log", "old", "part", "deep", "town"}
    assert rows(store, "SELECT file, units FROM sales ORDER BY 2") == [
        ("sales_2023.csv", 2023),
        ("sales_2024.csv", 2024),
    ]
    assert rows(store, "SELECT name, size FROM town") == [("Genua", 1.5), ("", None), (None, 2.0)]
    assert any("log: 1 line left out" in note for note in store.notes)


def test_each_sheet_of_a_workbook_is_a_table_with_the_types_of_its_cells(folder: Path) -> None:
    path = folder / "book.xlsx"
    with pandas.ExcelWriter(path) as book:
        orders = {"id": ["001", "002"], "n": [1, 2], "day": pandas.to_datetime(["2024-01-01", "2024-02-01"])}
        pandas.DataFrame(orders).to_excel(book, sheet_name="Orders 24", index=False)
        pandas.DataFrame({"x": [1.5, None], "y": ["a", "b"]}).to_excel(book, sheet_name="Rest", index=False, startrow=3)
        pandas.DataFrame().to_excel(book, sheet_name="Empty")
    store = import_place(str(path))
    assert rows(store, 'SELECT id, n, day FROM "Orders_24" WHERE n = 2') == [("002", 2, datetime.date(2024, 2, 1))]
    assert rows(store, "SELECT x, y FROM rest ORDER BY y") == [(1.5, "a"), (None, "b")]
    assert any("The sheet Empty of book.xlsx holds no table" in note for note in store.notes)


def test_what_did_not_change_is_not_read_again_and_what_changed_is(folder: Path) -> None:
    path = folder / "a.csv"
    path.write_text("x\n1\n")
    first = import_place(str(path))
    inode = os.stat(first.url.removeprefix("duckdb:///")).st_ino  # noqa: PTH116
    assert os.stat(import_place(str(path)).url.removeprefix("duckdb:///")).st_ino == inode  # noqa: PTH116
    path.write_text("x\n1\n2\n")
    again = import_place(str(path))
    assert again.url != first.url and rows(again, "SELECT count(*) FROM a") == [(2,)]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.csv", None, "There is no file"),
        ("x.parquet", b"no parquet", "cannot be read as Parquet"),
        ("x.xlsx", b"no workbook", "cannot be read as a workbook"),
        ("x.csv", b"a\0b", "is no text"),
        ("x.csv", b"", "is an empty file"),
    ],
)
def test_what_cannot_be_read_is_a_line(folder: Path, name: str, content: bytes | None, complaint: str) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(SetupError, match=complaint):
        import_place(str(folder / name))
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("*.new*"))


@pytest.mark.parametrize(
    "statement",
    [
        "FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH '/etc/passwd' AS x",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ],
)
def test_the_process_that_reads_reaches_no_other_file(folder: Path, statement: str) -> None:
    (folder / "a.csv").write_text("x\n1\n")
    scratch = folder / "scratch"
    scratch.mkdir()
    with open_new_store(folder / "store.duckdb", scratch, [str(folder / "a.csv")]) as database:
        assert database.execute(f"FROM read_csv('{folder / 'a.csv'}')").fetchall() == [(1,)]
        with pytest.raises(duckdb.Error):
            database.execute(statement)


@pytest.mark.slow
def test_data_frames_are_asked_by_name_beside_files(folder: Path) -> None:
    offers = pandas.DataFrame({"supplier": ["Acme", "Bolt"], "price": [2.5, 1.5]})
    (folder / "more.csv").write_text("x\n1\n")
    Path("model.toml").write_text(MODEL)
    tables = {"offers": offers, "rates": polars.DataFrame({"day": [1, 2]}), "files": "data/more.csv"}
    result = decisor.ask("Which supplier?", db=tables, model="model.toml", llm="none")
    assert result.answer == "Bolt"
    assert decisor.ask("Which?", db={"offers": offers}, model="model.toml", llm="none").answer == "Bolt"
    with pytest.raises(SetupError, match="is no place"):
        decisor.ask("Which?", db=[json], llm="none")  # type: ignore[list-item]


def test_a_sheet_as_people_make_it_is_a_table(folder: Path) -> None:
    """A title, a header of two rows with merged cells, numbers and dates as they are written in German, a total."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    rows_of_it = [
        ("Umsatz der Filialen",),
        (),
        ("Filiale", "Umsatz", None, "Seit", "Code"),
        (None, "Q1", "Q2"),
        ("Nord", "1.234,50", "2.000,00", "01.02.2003", "007"),
        ("Süd", "999,90", "k.A.", "15.03.2010", "012"),
        ("Summe", "2.234,40", "2.000,00", None, None),
    ]
    for cells in rows_of_it:
        sheet.append(cells)
    for merged in ("A1:E1", "A3:A4", "B3:C3", "D3:D4", "E3:E4"):
        sheet.merge_cells(merged)
    book.save(folder / "filialen.xlsx")
    store = import_place(str(folder / "filialen.xlsx"))
    assert kinds(store, "filialen") == {
        "Filiale": "VARCHAR",
        "Umsatz Q1": "DOUBLE",
        "Umsatz Q2": "DOUBLE",
        "Seit": "DATE",
        "Code": "VARCHAR",
    }
    assert rows(store, "FROM filialen")[1] == ("Süd", 999.9, None, datetime.date(2010, 3, 15), "012")
    assert any("rows 3 to 4 are taken for the names of columns" in note for note in store.notes)
    assert any("the row with Filiale 'Summe' seems to add up the others" in note for note in store.notes)


@pytest.mark.slow
def test_a_bad_file_among_others_is_left_out_and_told(folder: Path) -> None:
    (folder / "sales_1.csv").write_text("a\n1\n")
    (folder / "sales_2.csv").write_bytes(b"\0\1")
    (folder / "sales_3.csv").write_text("a\n3\n")
    (folder / "x.parquet").write_bytes(b"no parquet")
    (folder / "y.json").write_text("{no json")
    for place, table in ((folder, "sales"), (folder / "sales*", "sales")):
        store = import_place(str(place))
        assert rows(store, f"SELECT a FROM {table} ORDER BY a") == [(1,), (3,)]
        assert any("Left out" in note and "sales_2.csv is no text" in note for note in store.notes)
    assert sum("Left out" in note for note in import_place(str(folder)).notes) == 3


def test_a_new_file_is_opened_five_times_at_once(folder: Path) -> None:
    (folder / "a.csv").write_text("x\n" + "1\n" * 5_000)
    with ThreadPoolExecutor(5) as pool:
        stores = list(pool.map(import_place, [str(folder / "a.csv")] * 5))
    assert [rows(store, "SELECT count(*) FROM a") for store in stores] == [[(5_000,)]] * 5
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("*.new*"))


def test_a_link_that_leads_out_of_a_folder_is_not_followed_and_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("password\nhunter2\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "more.csv").write_text("password\nhunter3\n")
    (folder / "a.csv").write_text("x\n1\n")
    (folder / "inner.csv").symlink_to(folder / "a.csv")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    (folder / "below").symlink_to(tmp_path / "outside")
    for place in (folder, folder / "*.csv", folder / "**/*.csv"):
        store = import_place(str(place))
        tables = [str(name) for (name,) in rows(store, "SELECT table_name FROM information_schema.tables")]
        assert not any("password" in kinds(store, name) for name in tables)
        assert sum("leads out of" in note for note in store.notes) >= 2
    with pytest.raises(SetupError, match="leads out of"):
        import_place(str(folder / "link*.csv"))
    assert rows(import_place(str(folder / "link.csv")), "SELECT password FROM link") == [("hunter2",)]


def test_files_that_do_not_fit_together_are_a_table_each_and_the_others_are_asked(folder: Path) -> None:
    duckdb.sql(f"COPY (SELECT 1 AS i) TO '{folder / 'part_1.parquet'}'")
    duckdb.sql(f"COPY (SELECT DATE '2024-01-01' AS i) TO '{folder / 'part_2.parquet'}'")
    (folder / "sales_1.csv").write_text("shop,units\na,1\n")
    (folder / "sales_2.csv").write_text("units;shop\n2;b\n")
    (folder / "sales_3.csv").write_text("town,size\nrome,3\n")
    store = import_place(str(folder))
    assert rows(store, "SELECT shop, units FROM sales ORDER BY 2") == [("a", 1), ("b", 2)]
    assert rows(store, "SELECT town FROM sales_3") == [("rome",)]
    assert rows(store, "SELECT * FROM part_1") == [(1,)]
    assert rows(store, "SELECT * FROM part_2") == [(datetime.date(2024, 1, 1),)]
    assert any("the files do not fit together" in note for note in store.notes)
    assert any("have not the same columns" in note for note in store.notes)


def test_a_late_value_of_another_type_is_not_rounded(folder: Path) -> None:
    path = folder / "sales.csv"
    path.write_text("units,code\n" + "1,5\n" * 200_000 + "1.5,007\n" + "1,5\n" * 100_000)
    store = import_place(str(path))
    assert kinds(store, "sales") == {"units": "DOUBLE", "code": "VARCHAR"}
    assert rows(store, "SELECT max(units), max(code), min(code) FROM sales") == [(1.5, "5", "007")]


def test_a_cell_far_away_and_an_error_in_a_sheet_are_told(folder: Path) -> None:
    far, book = openpyxl.Workbook(), openpyxl.Workbook()
    assert far.active is not None and book.active is not None
    far.active["A1"], far.active["XFD1048576"] = "here", "there"
    far.save(folder / "far.xlsx")
    for cells in (("name", "v"), ("a", "#DIV/0!"), ("b", 1.234), ("c", "2,5")):
        book.active.append(cells)
    book.save(folder / "book.xlsx")
    with pytest.raises(SetupError, match=r"spans 17,179,869,184 cells, more than 20,000,000: delete"):
        import_place(str(folder / "far.xlsx"))
    store = import_place(str(folder))
    assert rows(store, "SELECT v FROM book ORDER BY name") == [(None,), (1.234,), (2.5,)]
    assert any("1 cell with '#DIV/0!', an error of the spreadsheet" in note for note in store.notes)
    assert any("Left out" in note and "far.xlsx" in note for note in store.notes)


def test_the_person_is_told_the_unit_of_a_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "offers.csv").write_text('supplier,price\nAcme,"$1,250.00"\nBolt,$999.50\n')
    Path("model.toml").write_text(MODEL)
    assert (
        run_command_line(
            ["ask", "Which supplier?", "--db", "data/offers.csv", "--model", "model.toml", "--llm", "none"]
        )
        == 0
    )
    out, how = capsys.readouterr()
    assert "Decision: Bolt" in out and "offers.price is a number: in $" in how


def test_a_reader_that_needs_more_memory_ends_with_the_cause_and_the_other_files_are_read(folder: Path) -> None:
    """40 KB of lists in lists in objects: each level of each is a column of DuckDB's, of 32 KiB at least."""
    lists = ",".join(f'"{key}":{"[" * 13}1{"]" * 13}' for key in range(150))
    (folder / "deep.jsonl").write_text("{" + ",".join(f'"{group}":{{{lists}}}' for group in range(8)) + "}\n")
    (folder / "sales.csv").write_text("a\n1\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with pytest.raises(SetupError, match=r"deep.jsonl.*it takes more memory than a reader of files may have"):
        import_place(str(folder / "deep.jsonl"))
    store = import_place(str(folder))
    assert rows(store, "SELECT a FROM sales") == [(1,)]
    assert any("Left out" in note and "deep.jsonl" in note and "more memory" in note for note in store.notes)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(before, 2**20)


@pytest.mark.parametrize(
    ("returncode", "complaint", "reason"),
    [
        (1, "Traceback ...\nMemoryError\n", TOO_LARGE),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'\n", TOO_LARGE),
        (-11, "", TOO_LARGE),
        (-9, "", "its reader was ended by SIGKILL: try again, or split it"),
        (127, "cannot allocate memory for thread-local data: ABORT\n", TOO_LARGE),
        (1, "Traceback ...\nKeyError: 'rows'\n", "KeyError: 'rows'"),
        (1, "\n", TOO_LARGE),
    ],
)
def test_what_ended_a_reader_is_told_by_its_cause(returncode: int, complaint: str, reason: str) -> None:
    assert "1,024 MB" in TOO_LARGE
    assert reason_of_end(returncode, complaint) == reason


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts writable memory")
def test_memory_that_python_takes_ends_at_the_limit_of_a_reader() -> None:
    code = """import mmap
from decisor.databases.files.columns import limit_reader_memory as limit_memory
limit_memory()
mmap.mmap(-1, 900 << 20, mmap.MAP_PRIVATE).close()
mmap.mmap(-1, 1_100 << 20, mmap.MAP_PRIVATE)"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert b"line 5" in ended.stderr and b"Cannot allocate memory" in ended.stderr


async def test_the_unit_of_a_column_stands_in_the_schema_that_the_llm_reads(folder: Path) -> None:
    (folder / "offers.csv").write_text('supplier,price,share\nAcme,"EUR 1,250.00",7.5 %\nBolt,"EUR 999.50",8 %\n')
    tool = await SqlTool.open(import_place(str(folder / "offers.csv")).url)
    try:
        lines = tool.describe().splitlines()
    finally:
        await tool.close()
    assert "in EUR" in next(line for line in lines if "price" in line)
    assert "%" in next(line for line in lines if "share" in line)
