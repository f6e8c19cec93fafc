"""Every command that takes a connection by name keeps to what its config file lets be read."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from decisor.cli import run

CONFIG = """
[connections.shop]
url = "sqlite:///shop.db"
deny_tables = ["secrets"]
mask = { "customers.email" = "token" }
rows = { "customers" = "city = 'Ghent'" }
"""
DEFINITIONS = """
[metric.tokens]
sql = "COUNT(*)"
from = "secrets"
[metric.people]
sql = "COUNT(*)"
from = "customers"
[value."customers.email"]
"ann@private.example" = ["Ann"]
[value."customers.city"]
Oslo = ["the north"]
"""
MODEL = """
decide = "whom to write to"
choice = "SELECT {name} AS name FROM {table}"

[measure.spend]
goal = "max"
sql = "SELECT count(*) FROM {table} WHERE {name} = (SELECT name FROM choice)"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.executescript(
            "CREATE TABLE secrets(id INTEGER PRIMARY KEY, token TEXT); INSERT INTO secrets VALUES (1, 'CANARY');"
            "CREATE TABLE customers(id INTEGER PRIMARY KEY, email TEXT, city TEXT, spend REAL);"
            "INSERT INTO customers VALUES (1, 'ann@private.example', 'Ghent', 1), (2, 'bo@private.example', 'Oslo', 2);"
        )
    (tmp_path / "decisor.toml").write_text(CONFIG)
    (tmp_path / "definitions.toml").write_text(DEFINITIONS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_definitions_are_checked_within_what_a_connection_lets_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["definitions", "check", "definitions.toml", "--db", "shop"])
    text = capsys.readouterr().out
    assert "secrets may not be read" in text
    assert "which no row has" in text and text.count("which no row has") == 2
    assert "metric.people" not in text


def test_a_draft_tells_of_no_table_that_a_connection_denies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["definitions", "draft", "--db", "shop", "--lm", "none"])
    text = capsys.readouterr().out
    assert "customers" in text
    assert "secrets" not in text
    assert "private.example" not in text


def test_a_decision_model_ranks_only_what_a_connection_lets_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "denied.toml").write_text(MODEL.format(name="token", table="secrets"))
    (folder / "masked.toml").write_text(MODEL.format(name="email", table="customers"))
    assert run(["model", "rank", "denied.toml", "--db", "shop", "--trials", "0"]) != 0
    assert run(["model", "rank", "masked.toml", "--db", "shop", "--trials", "0"]) == 0
    output = capsys.readouterr()
    assert "CANARY" not in output.out + output.err
    assert "private.example" not in output.out + output.err
    assert output.out.count("masked_") == 1
