"""decisor model draft over HTTP: the file that it writes ranks and verifies without an LLM."""

from pathlib import Path

import duckdb
import pytest

from decision_shops import SITES, database
from decisor.cli import run_command_line
from servers.openai_server import serve_threaded
from techniques.test_model_first import QUESTION, TWELVE, Writer, reply_over_http


def draft(folder: Path, url: str, writer: Writer) -> int:
    with serve_threaded(reply_over_http(writer)) as llm:
        return run_command_line(
            [
                "model",
                "draft",
                QUESTION,
                "--db",
                url,
                "--out",
                str(folder / "close.toml"),
                "--llm",
                f"m@{llm}",
                "-o",
                "trials=0",
                "--trace",
                str(folder / "run.jsonl"),
            ]
        )


@pytest.mark.slow
def test_the_file_ranks_again_and_the_decision_verifies_without_an_llm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, file = database(tmp_path, SITES), tmp_path / "close.toml"
    assert draft(tmp_path, url, Writer()) == 0
    assert "Mainz + Linz" in capsys.readouterr().out
    # A draft is a run of the history, and is approved by its number.
    assert run_command_line(["history", "approve", "last", "--by", "Ada"]) == 0
    assert "approved by Ada" in capsys.readouterr().err
    assert run_command_line(["model", "rank", str(file), "--db", url, "--trials", "0"]) == 0
    assert "Mainz + Linz" in capsys.readouterr().out
    assert run_command_line(["history", "verify", str(tmp_path / "run.jsonl"), "--db", url]) == 0
    assert "rule capacity: kept" in capsys.readouterr().out
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        db.execute("UPDATE site SET capacity = 10 WHERE name = 'Ulm'")
    assert run_command_line(["history", "verify", str(tmp_path / "run.jsonl"), "--db", url]) == 1
    out = capsys.readouterr().out
    assert "does not hold" in out and "rule capacity: broken" in out


@pytest.mark.slow
def test_two_models_that_differ_are_both_written_and_no_decision_is_given(tmp_path: Path) -> None:
    url = database(tmp_path, SITES)
    other = TWELVE.replace("12", "11")
    assert draft(tmp_path, url, Writer(seconds=(TWELVE, other))) == 4
    assert not (tmp_path / "close.toml").exists()
    assert "[[example]]" in (tmp_path / "close.first.toml").read_text()
    assert "12 * " in (tmp_path / "close.second.toml").read_text()
