"""The record of a decision is computed again: what holds, what changed, as who asked sees the data."""

import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import decisor
from decision_record.record_shops import change, computed, from_rows
from decisor.cli import run_command_line
from decisor.decision_record.build import seal_record
from decisor.decision_record.page import write_record
from decisor.llms.scripted import ScriptedLLM
from decisor.system.storage import data_folder
from decisor.trace.events import RowPolicy
from definition_shops import shop
from session.test_readings import QUESTION, TEXT, analyst

Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_a_computed_decision_holds_by_its_record_alone_until_the_data_change(tmp_path: Path, capsys: Capture) -> None:
    url, result = computed(tmp_path)
    (tmp_path / "close.toml").unlink()
    result.save_record(tmp_path / "r.json")
    words = ["history", "verify", str(tmp_path / "r.json"), "--db", url]
    assert run_command_line(words) == 0
    out = capsys.readouterr().out
    assert "Mainz + Linz: holds. It still has the smallest cost: 228,614 EUR." in out
    assert "rule capacity: kept" in out and "2 cited records read again, 0 changes." in out
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        db.execute(
            "UPDATE site SET rent = rent + 1 WHERE name = 'Basel'; UPDATE site SET rent = 9 WHERE name = 'Mainz'"
        )
    assert run_command_line(words) == 1
    out = capsys.readouterr().out
    assert "does not hold. Linz + Ulm wins with cost" in out and "Mainz + Linz: 228,614 EUR -> " in out


def test_a_decision_from_rows_holds_until_a_cited_row_or_another_row_changes(tmp_path: Path, capsys: Capture) -> None:
    path, result = from_rows(tmp_path)
    result.save_record(tmp_path / "r.json")
    words = ["history", "verify", str(tmp_path / "r.json"), "--db", f"sqlite:///{path}"]
    assert run_command_line(words) == 0
    assert "Every record that it cites is as it was." in capsys.readouterr().out
    change(path, "UPDATE site SET rent = 300 WHERE name = 'fir'")
    assert run_command_line(words) == 4
    out = capsys.readouterr().out
    assert "0 changes" in out and "Beside those that it cites, other rows: sql: SELECT name, rent" in out
    change(path, "UPDATE site SET rent = 710 WHERE name = 'oak'")
    assert run_command_line([*words, "--json"]) == 4
    assert '"id": "o1.r2", "before": "rent 700", "after": "rent 710"' in capsys.readouterr().out


def test_a_record_that_was_changed_does_not_hold_though_the_data_do(tmp_path: Path, capsys: Capture) -> None:
    path, result = from_rows(tmp_path)
    file = tmp_path / "r.json"
    result.save_record(file)
    file.write_text(file.read_text().replace('"it costs 400 [o1.r1]', '"it costs 300 [o1.r1]'))
    assert run_command_line(["history", "verify", str(file), "--db", f"sqlite:///{path}"]) == 1
    out = capsys.readouterr().out
    assert "does not hold. The record is not as it was made. Of the data: Every record" in out
    assert "decision was changed after the record was made" in out


def test_it_is_read_with_the_rows_and_masks_of_who_asked(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript("""CREATE TABLE orders (id INTEGER, email TEXT, region TEXT, total REAL);
            INSERT INTO orders VALUES (1, 'ann@shop.example', 'EU', 30), (2, 'bo@shop.example', 'EU', 20),
            (3, 'bo@shop.example', 'US', 99);""")
    query = "SELECT email, SUM(total) AS spent FROM orders GROUP BY 1 ORDER BY 2 DESC"
    llm = ScriptedLLM(
        [f"Thought: look\nAction: sql\nAction input: {query}", "Final answer: the one with 30\nBecause: 30 [o1.r1]"]
    )
    result = decisor.ask(
        "Who?",
        db=f"sqlite:///{path}",
        rows={"orders": "region = 'EU'"},
        mask="orders.email",
        llm=llm,
        technique="iter_rag",
        settings=TEXT,
        trace=tmp_path / "t.jsonl",
    )
    result.save_record(tmp_path / "r.json")
    words = [["history", "verify", str(tmp_path / name), "--db", f"sqlite:///{path}"] for name in ("r.json", "t.jsonl")]
    for command in words:
        assert run_command_line(command) == 0 and "@shop.example" not in capsys.readouterr().out
    key = data_folder() / "tokens.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and key.read_text() not in (tmp_path / "t.jsonl").read_text()
    change(path, "UPDATE orders SET email = 'eve@shop.example' WHERE id = 1")
    for command in words:  # the one cell that changed is masked
        assert run_command_line(command) == 4
        out = capsys.readouterr().out
        assert "email masked_" in out and "@shop.example" not in out and "were not compared" not in out
    change(path, "UPDATE orders SET email = 'ann@shop.example' WHERE id = 1")
    for another in ("", "0" * 64):  # a machine without the key, and one with its own
        key.write_text(another) if another else key.unlink()
        for command in words:
            assert run_command_line(command) == 4
            assert "Masked values (email) were not compared" in capsys.readouterr().out
    change(path, "UPDATE orders SET total = 31 WHERE id = 1")
    assert run_command_line(["history", "verify", str(tmp_path / "r.json"), "--db", f"sqlite:///{path}"]) == 4
    out = capsys.readouterr().out
    assert "@shop.example" not in out and "-> " in out


@pytest.mark.slow
def test_rows_that_were_combined_and_figures_that_were_calculated_are_brought_again(tmp_path: Path) -> None:
    for name, statement in (
        ("a", "CREATE TABLE site AS SELECT 'Ghent' AS city, 4 AS tons"),
        ("b", "CREATE TABLE rent AS SELECT 'Ghent' AS town, 12.1 AS euros"),
    ):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as db, db:
            db.execute(statement)
    llm = ScriptedLLM(
        [
            "Thought: the tons\nAction: sites\nAction input: SELECT city, tons FROM site",
            "Thought: the rents\nAction: rents\nAction input: SELECT town, euros FROM rent",
            "Thought: t\nAction: combine\nAction input: SELECT city, euros * tons AS cost FROM o1 "
            "JOIN o2 ON city = town",
            "Final answer: Ghent\nBecause: it costs 48.4 [o3.r1]",
        ]
    )
    places = [f"sites=sqlite:///{tmp_path}/a.db", f"rents=sqlite:///{tmp_path}/b.db"]
    result = decisor.ask("Which?", db=places, llm=llm, technique="iter_rag", settings=TEXT)
    record = result.record()
    assert [(one.name, len(one.rows)) for one in record.content.evidence.queries] == [("o1", 0), ("o2", 0), ("o3", 1)]
    write_record(record, tmp_path / "r.json")
    words = ["history", "verify", str(tmp_path / "r.json"), *(word for place in places for word in ("--db", place))]
    assert run_command_line(words) == 0
    change(tmp_path / "a.db", "UPDATE site SET tons = 5")
    assert run_command_line(words) == 4


def test_a_folder_of_records_and_traces_is_verified_file_by_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "kept").mkdir()
    path, result = from_rows(tmp_path, trace=tmp_path / "kept" / "t.jsonl")
    result.save_record(tmp_path / "kept" / "r.json")
    (tmp_path / "kept" / "other.json").write_text("{}")
    assert run_command_line(["history", "verify", str(tmp_path / "kept"), "--db", f"sqlite:///{path}"]) == 0
    assert capsys.readouterr().out.count(": elm: holds.") == 2


def test_a_record_that_is_none_and_data_that_are_not_named_are_said_in_a_line(tmp_path: Path, capsys: Capture) -> None:
    _, result = from_rows(tmp_path)
    file = tmp_path / "r.json"
    result.save_record(file)
    assert run_command_line(["history", "verify", str(file)]) == 2
    assert "rests on sql: name the same data again with --db" in capsys.readouterr().err
    file.write_text(file.read_text().replace('"stopped": "answered"', '"stopped": "guessed"'))
    assert run_command_line(["history", "verify", str(file), "--db", f"sqlite:///{tmp_path}/sites.db"]) == 2
    assert "does not meet the schema: content.decision.stopped" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition", ["load_extension('x') = 1", "id IN (SELECT id FROM secret)", "name = 'a\\' OR 1", "", "name <> ?"]
)
def test_no_condition_of_a_strangers_record_does_more_than_compare(
    tmp_path: Path, capsys: Capture, condition: str
) -> None:
    path, result = from_rows(tmp_path)
    content = result.record().content
    source = replace(content.data.sources[0], rows=(RowPolicy("site", condition),))
    write_record(seal_record(replace(content, data=replace(content.data, sources=(source,)))), tmp_path / "r.json")
    words = ["history", "verify", str(tmp_path / "r.json"), "--db", f"sqlite:///{path}"]
    assert run_command_line(words) == 2
    assert "cannot be taken from this file: name the rows with --rows" in capsys.readouterr().err
    assert run_command_line([*words, "--rows", "site=rent < 800"]) == 4


def test_what_another_reading_rests_on_is_no_evidence(tmp_path: Path) -> None:
    url = shop(tmp_path)
    record = decisor.ask(QUESTION, db=url, llm=analyst(), settings=TEXT).record()
    assert [one.name for one in record.content.evidence.queries] == ["o1"]
    write_record(record, tmp_path / "r.json")
    assert run_command_line(["history", "verify", str(tmp_path / "r.json"), "--db", url]) == 0
