"""An old decision is computed again on changed data, without an LLM."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import decisor
from decision_shops import CLOSE, SITES, database
from decisor.cli import run_command_line
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import CaseTask, open_store
from decisor.llms.scripted import ScriptedLLM
from decisor.trace.file import read_trace
from local_llm import Decisor

QUERY = (
    "Plan: [Step 1: read rents]\nThought: look\nAction: sql\nAction input: select name, rent from site order by name"
)
ANSWER = "Final answer: elm\nBecause: its rent is 400.5 [o1.r2]"


def computed(folder: Path) -> tuple[str, Path]:
    """The URL of the data, and the trace of a decision by a model."""
    url, model, trace = database(folder, SITES), folder / "close.toml", folder / "run.jsonl"
    model.write_text(CLOSE)
    result = decisor.ask("Which two?", db=url, model=model, technique="exact", trace=trace, settings={"trials": 0})
    assert result.answer
    return url, trace


@pytest.mark.slow
def test_a_computed_decision_holds_until_its_rows_change_and_then_it_says_what_wins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, trace = computed(tmp_path)
    words = ["history", "verify", str(trace), "--db", url, "--model", str(tmp_path / "close.toml")]
    assert run_command_line(words) == 0
    assert "holds" in capsys.readouterr().out
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        db.execute("UPDATE site SET rent = 90000, capacity = 9000 WHERE name IN ('Metz', 'Ulm')")
        db.execute("UPDATE site SET capacity = 9000")
    assert run_command_line(words) == 1
    out = capsys.readouterr().out
    assert "does not hold" in out and "wins with cost" in out and "->" in out


def test_a_decision_that_only_cites_rows_cannot_be_said_once_they_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, trace = tmp_path / "sites.db", tmp_path / "run.jsonl"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE site (name TEXT, rent REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("ash", 900.5), ("elm", 400.5)])
    decisor.ask("Which is cheapest?", db=f"sqlite:///{path}", llm=ScriptedLLM([QUERY, ANSWER]), trace=trace)
    assert run_command_line(["history", "verify", str(tmp_path), "--db", f"sqlite:///{path}"]) == 0
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE site SET rent = 950 WHERE name = 'elm'")
    assert run_command_line(["history", "verify", str(trace), "--db", f"sqlite:///{path}", "--json"]) == 4
    assert '"before": "rent 400.5", "after": "rent 950"' in capsys.readouterr().out


@pytest.mark.slow
def test_a_correction_of_a_model_file_is_withdrawn_once_no_document_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "The rent of Basel falls to 1000 EUR."
    correction = f"""[[correction]]\ntable = "site"\nkey = {{ name = "Basel" }}\ncolumn = "rent"\nwas = 41000.0
is = 1000.0\nadopted = true\nsource = {{ document = "note.txt", passage = "{said}" }}\n"""
    url, model, trace = database(tmp_path, SITES), tmp_path / "close.toml", tmp_path / "run.jsonl"
    model.write_text(f"{CLOSE}\n{correction}")
    decisor.ask("Which two?", db=url, model=model, technique="exact", trace=trace, settings={"trials": 0})
    note = tmp_path / "letters" / "note.txt"
    note.parent.mkdir()
    for text, documents, expected in (
        (said, False, "188,614 EUR. What its corrections quote was not read again: name the documents with --docs."),
        (f"May.\n{said}", True, "holds. It still has the smallest cost: 188,614 EUR.\n"),
        ("The rent of Basel stays.", True, "228,614 EUR. No document says any more what the correction of site.rent"),
    ):
        note.write_text(text)
        words = ["history", "verify", str(trace), "--db", url, *(["--docs", str(note.parent)] if documents else [])]
        assert run_command_line(words) == 0
        assert expected in capsys.readouterr().out


@pytest.mark.slow
def test_without_the_data_it_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, trace = computed(tmp_path)
    assert run_command_line(["history", "verify", str(trace)]) == 2
    assert "whatif" in capsys.readouterr().err
    assert run_command_line(["history", "verify", str(tmp_path / "nothing"), "--db", url]) == 2


@pytest.mark.slow
def test_the_decision_model_of_a_trace_need_not_be_named_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, trace = computed(tmp_path)
    (tmp_path / "close.toml").unlink()
    assert run_command_line(["history", "verify", str(trace), "--db", url]) == 0
    assert "rule capacity: kept" in capsys.readouterr().out


def test_rows_beside_the_cited_ones_count_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace = tmp_path / "sites.db", tmp_path / "run.jsonl"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE site (name TEXT, rent REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("ash", 900.5), ("elm", 400.5)])
    decisor.ask("Which is cheapest?", db=f"sqlite:///{path}", llm=ScriptedLLM([QUERY, ANSWER]), trace=trace)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO site VALUES ('fir', 100)")
    assert run_command_line(["history", "verify", str(trace), "--db", f"sqlite:///{path}"]) == 4
    assert "0 changes" in (out := capsys.readouterr().out) and "other rows: sql: select name, rent from site" in out


@pytest.mark.slow
def test_a_run_of_the_history_is_verified_by_its_number_on_the_data_that_it_named(
    decisor: Decisor, sites: Path
) -> None:
    (sites.parent / "site.toml").write_text(RENTS)
    decisor("ask", "Which site is cheapest?", "--db", "sites.db", "--model", "site.toml", "--technique", "exact")
    assert "run 1: elm: holds." in decisor("history", "verify", "last").stdout
    with closing(sqlite3.connect(sites)) as db, db:
        db.execute("UPDATE site SET rent = 99999 WHERE name = 'elm'")
    assert "does not hold" in decisor("history", "verify", "1", code=1).stdout
    assert "There is no run 7" in decisor("history", "verify", "7", code=2).stderr


@pytest.mark.slow
def test_the_answered_cases_of_a_run_store_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, trace = computed(tmp_path)
    entries = read_trace(trace)
    with closing(open_store(tmp_path / "run.db")) as store:
        store.begin({"seed": 1})
        tasks = [CaseTask(("shops", name, "exact", "none", 0), "same") for name in ("one", "two")]
        store.plan(tasks)
        for name, answer in (("one", "Lyon + Metz"), ("two", "")):
            assert store.claim() is not None
            store.finish(Outcome("shops", name, "exact", "none", 0, "right", answer=answer), entries)
    words = ["history", "verify", str(tmp_path / "run.db"), "--db", url, "--model", str(tmp_path / "close.toml")]
    assert run_command_line(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("shops one exact none 0: ") and "shops two" not in out


RENTS = """format = 3
decide = "the site"
choice.pick.rows = "SELECT name FROM site"
[measure.rent]
goal = "min"
sql = "SELECT rent FROM site JOIN pick USING (name)"
"""


def test_a_run_that_is_named_twice_stands_twice_in_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, trace = computed(tmp_path)
    assert (
        run_command_line(
            [
                "history",
                "verify",
                str(trace),
                str(trace),
                "--db",
                url,
                "--model",
                str(tmp_path / "close.toml"),
                "--json",
            ]
        )
        == 0
    )
    assert list(json.loads(capsys.readouterr().out)) == [str(trace), f"{trace}_2"]
