"""Every command that takes a connection by name keeps to what its config file lets be read."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.session.config import resolve_config
from decisor.session.open_sources import open_source
from decisor.session.sources import build_sources

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
format = 3
decide = "whom to write to"
choice.pick.rows = "SELECT {name} AS name FROM {table}"

[measure.spend]
goal = "max"
sql = "SELECT count(*) FROM {table} WHERE {name} = (SELECT name FROM pick)"
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
    run_command_line(["definitions", "check", "definitions.toml", "--db", "shop"])
    text = capsys.readouterr().out
    assert "secrets may not be read" in text
    assert "which no row has" in text and text.count("which no row has") == 2
    assert "metric.people" not in text


def test_a_draft_tells_of_no_table_that_a_connection_denies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command_line(["definitions", "draft", "--db", "shop", "--llm", "none"])
    text = capsys.readouterr().out
    assert "customers" in text
    assert "secrets" not in text
    assert "private.example" not in text


@pytest.mark.slow
def test_a_decision_model_ranks_only_what_a_connection_lets_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "denied.toml").write_text(MODEL.format(name="token", table="secrets"))
    (folder / "masked.toml").write_text(MODEL.format(name="email", table="customers"))
    assert run_command_line(["model", "rank", "denied.toml", "--db", "shop", "--trials", "0"]) != 0
    assert run_command_line(["model", "rank", "masked.toml", "--db", "shop", "--trials", "0"]) == 0
    output = capsys.readouterr()
    assert "CANARY" not in output.out + output.err
    assert "private.example" not in output.out + output.err
    assert output.out.count("masked_") == 1


def test_doctor_shows_only_what_a_connection_lets_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "statements.jsonl").write_text(
        '{"statement": "SELECT token FROM secrets"}\n{"statement": "SELECT city FROM customers"}\n'
    )
    assert run_command_line(["doctor", "--db", "shop", "--llm", "none"]) == 0
    text = capsys.readouterr().out
    assert "table customers" in text and "secrets" not in text and "private.example" not in text
    run_command_line(["doctor", "--db", "shop", "--statements", "statements.jsonl"])
    assert "1 of 2 allowed" in capsys.readouterr().out


def test_an_index_holds_only_what_a_connection_lets_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["index", "shop", "--out", "places"]) == 0
    assert run_command_line(["index", "shop", "--table", "secrets", "--out", "tokens"]) != 0
    stored = b"".join(path.read_bytes() for path in folder.joinpath("places").rglob("*") if path.is_file())
    assert b"Ghent" in stored and b"CANARY" not in stored and b"private.example" not in stored and b"Oslo" not in stored
    assert "decisor.toml" in capsys.readouterr().err


def test_a_graph_is_loaded_from_one_connection_into_another(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("kglite")
    (folder / "decisor.toml").write_text(CONFIG + '\n[connections]\nroads = "kglite:///roads.kgl"\n')
    assert run_command_line(["graph", "load", "--from", "shop", "--out", "roads", "--json"]) == 0
    assert '"customers": 1' in capsys.readouterr().out and (folder / "roads.kgl").exists()


SEARCH = """
from dataclasses import dataclass
from decisor.types import Record

@dataclass(frozen=True)
class Ports:
    "Ports by their stone."
    stone: str = ""
    most: int = 1

    async def find(self, query, limit=10):
        return tuple(Record(f"r{n}", text=f"{self.stone} from port {n}") for n in range(self.most))
"""


async def test_a_retriever_of_ones_own_is_a_connection_with_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home" / "decisor", tmp_path / "here"
    home.mkdir(parents=True)
    here.mkdir()
    (home / "own_ports_search.py").write_text(SEARCH)
    (here / "own_ports_search.py").write_text("raise SystemExit('somebody else wrote this')")
    config = '[connections.ports]\nurl = "own_ports_search:Ports"\nsettings = { stone = "marble", most = "2" }\n'
    (home / "decisor.toml").write_text(config)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(here)
    tool = await open_source(build_sources(docs=resolve_config().connection("ports")).places[0])
    seen = await tool.call("marble")
    assert [record.text for record in seen.records] == ["marble from port 0", "marble from port 1"]
    assert "Ports by their stone" in tool.describe()
    await tool.close()
    (home / "decisor.toml").unlink()
    (here / "decisor.toml").write_text(config)
    assert "ports" not in resolve_config().connections, "a folder's file names no code until it is trusted"


def test_settings_are_for_a_retriever_alone(folder: Path) -> None:
    (folder / "decisor.toml").write_text('[connections.shop]\nurl = "shop.db"\nsettings = { a = "b" }\n')
    with pytest.raises(SetupError, match="settings are for a retriever of your own"):
        resolve_config()
