"""Which tables may be read is said once, and holds for all of a run."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.errors import SetupError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE site (name TEXT)")
        database.execute("CREATE TABLE staff (pay TEXT)")
        database.execute("INSERT INTO site VALUES ('elm')")
        database.execute("INSERT INTO staff VALUES ('pay-4711')")
    return path


def planner() -> decisor.ScriptedLLM:
    """It asks for the staff's pay, and then gives up."""
    query = "Plan: [Step 1: read]\nThought: Start.\nAction: sql\nAction input: SELECT pay FROM staff"
    return decisor.ScriptedLLM([query, *["Re-plan: N\nFinal answer: elm\nBecause: no more is known"] * 40])


@pytest.mark.parametrize("words", [{"deny_tables": "staff"}, {"tables": ["site"]}, {"deny_tables": ["sql.staff"]}])
def test_a_table_that_may_not_be_read_is_neither_read_nor_seen(shop: Path, words: dict[str, str]) -> None:
    llm = planner()
    result = decisor.ask("Which site?", db=str(shop), llm=llm, **words)  # type: ignore[arg-type]
    prompts = "".join(str(entry.event) for entry in result.trace)
    assert "pay-4711" not in prompts and "table staff (1 row)" not in prompts and "table site (1 row)" in prompts
    assert "Refused: the table staff may not be read." in prompts


def test_without_that_it_is_read(shop: Path) -> None:
    result = decisor.ask("Which site?", db=str(shop), llm=planner())
    assert "pay-4711" in "".join(str(entry.event) for entry in result.trace)


def test_a_name_of_another_database_is_of_that_one_alone(shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(shop.read_bytes())
    llm = planner()
    result = decisor.ask("Which site?", db=[str(shop), str(other)], llm=llm, deny_tables="other.staff")
    described = "".join(str(entry.event) for entry in result.trace)
    assert described.count("table staff (1 row)") and "pay-4711" in described


@pytest.mark.parametrize(
    ("name", "hint"),
    [("stuff", "Did you mean staff?"), ("other.staf", "Did you mean staff?"), ("payroll", "would deny nothing.")],
)
def test_a_name_that_would_deny_nothing_is_refused_with_near_ones(
    shop: Path, tmp_path: Path, name: str, hint: str
) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(shop.read_bytes())
    llm = planner()
    with pytest.raises(SetupError, match=f"There is no table {name} to deny") as refusal:
        decisor.ask("Which site?", db=[str(shop), str(other)], llm=llm, deny_tables=name)
    assert hint in str(refusal.value) and not llm.seen


def test_a_label_that_is_not_there_is_refused_too(tmp_path: Path) -> None:
    from decisor.lab.dqa.generator import make_example

    with pytest.raises(SetupError, match="There is no table Contry to deny"):
        decisor.ask("Which?", graph=make_example("trade").graph_url, llm=planner(), deny_tables="Contry")


def test_a_table_that_is_not_there_is_one_line(shop: Path) -> None:
    with pytest.raises(SetupError, match="There is no table stuff to read"):
        decisor.ask("Which site?", db=str(shop), llm=planner(), tables="stuff")


def test_the_command_has_both_options(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_command_line(
            ["ask", "Which?", "--db", str(shop), "--tables", "stuff", "--llm", "m@http://127.0.0.1:1", "--json"]
        )
        == 2
    )
    assert json.loads(capsys.readouterr().out)["error"] == "There is no table stuff to read."
