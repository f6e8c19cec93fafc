"""``decisor index`` and ``decisor ask --docs`` as a person types them."""

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from decisor.cli import run_command_line
from decisor.documents.index import build_index
from decisor.documents.passage import Passage
from servers.openai_server import serve_threaded


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "genua.md").write_text("# Genua\n\nThe harbour fee in Genua is 12 florins a day.")
    (tmp_path / "in" / "lubeck.md").write_text("# Lübeck\n\nThe harbour fee in Lübeck is 9 florins a day.")
    return tmp_path / "in"


def test_an_index_is_made_told_and_updated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(folder.parent / "fees.index")
    (folder / "bad.txt").write_bytes(b"a\x00")
    assert run_command_line(["index", str(folder), "--out", out]) == 0
    told = capsys.readouterr().out
    assert "2 passages" in told
    assert "bad.txt: it is no text" in told
    assert run_command_line(["index", str(folder), "--out", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 2
    assert run_command_line(["index", str(folder), "--out", out, "--json", "--fresh"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["index", "/no/such", "--out", "x"], "nothing at /no/such"),
        (["index", "README.md", "--out", "x", "--language", "klingon"], "no language"),
        (["index", "https://example.org/a.html", "--out", "x"], "Pages are not fetched"),
        (["index", "empty.db", "--out", "x", "--table", "towns"], "the database has no tables"),
        (["ask", "q", "--docs", "/no/such", "--llm", "m@http://127.0.0.1:1/v1"], "nothing at /no/such"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "empty.db").touch()
    assert run_command_line(words) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "more", "complaint"),
    [
        ("a.txt", b"", [], "it is empty"),
        ("a.html", b"<p></p>", [], "it holds no text"),
        ("a.csv", b"", [], "it is empty"),
        ("a.csv", b"id,text\n", [], "no rows below the names"),
        ("a.csv", b"name,text\nx,y\n", ["--text", "body"], "it has no column body; it has name, text"),
        ("a.csv", b"name,text\nx,y\n", ["--id", "key"], "it has no column key; it has name, text"),
        ("a.jsonl", b'{"name": "x"}\n', ["--text", "body"], "it has no body; it has name"),
        ("a.odt", b"x", [], "readable: .txt"),
        ("a.pdf", b"%PDF-1.7 broken", [], "it is damaged"),
    ],
)
def test_where_nothing_can_be_indexed_it_says_why_and_an_index_stays_as_it_was(
    name: str, content: bytes, more: list[str], complaint: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "bad").mkdir()
    (folder.parent / "bad" / name).write_bytes(content)
    out = folder.parent / "fees.index"
    words = ["index", str(folder.parent / "bad"), "--out", str(out), *more]
    assert run_command_line(words) == 1
    told = capsys.readouterr().out
    assert complaint in told
    assert told.endswith("no index was made.\n")
    assert not (out / "CURRENT").exists()
    assert run_command_line(["index", str(folder), "--out", str(out)]) == 0
    assert run_command_line(words) == 1
    assert capsys.readouterr().out.endswith("fees.index is unchanged.\n")
    assert run_command_line(["index", str(folder), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 2


def test_a_database_without_rows_is_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(tmp_path / "empty.db")) as database:
        database.execute("CREATE TABLE town (name TEXT)")
    assert run_command_line(["index", str(tmp_path / "empty.db"), "--out", str(tmp_path / "x")]) == 1
    assert capsys.readouterr().out.startswith("The database has no rows.")


def test_a_csv_without_names_of_columns_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "towns.csv").write_text("1,Genua,A port\n2,Pisa,A tower\n")
    assert run_command_line(["index", str(tmp_path / "towns.csv"), "--out", str(tmp_path / "x")]) == 0
    assert "towns.csv row 1: taken for names of columns (1, Genua, A port)" in capsys.readouterr().out


def test_an_index_that_cannot_be_updated_is_built_anew_and_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder.parent / "fees.index"
    words = ["index", str(folder), "--out", str(out)]
    assert run_command_line(words) == 0
    assert run_command_line([*words, "--language", "german", "--words", "50"]) == 0
    told = capsys.readouterr().out
    assert "Rebuilt, since it had other settings (language english, now german; words of a passage 100, now 50)" in told
    about = out / "2" / "about.json"
    for content in (about.read_text().replace('"format": 2', '"format": 1'), "{"):
        about.write_text(content)
        assert run_command_line([*words, "--json"]) == 0
        changes = json.loads(capsys.readouterr().out)
        assert (changes["added"], changes["anew"]) == (2, "it was damaged, or made by another version")
        about = out / (out / "CURRENT").read_text().strip() / "about.json"
    (out / "CURRENT").write_text("x")
    assert run_command_line(words) == 2
    assert f"damaged: remove {out}" in capsys.readouterr().err


def test_vectors_are_not_dropped_by_an_option_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Ones:
        name = "ones"

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.ones((len(texts), 1), np.float32)

    out = folder.parent / "fees.index"
    build_index([Passage("a", "one")], out, embedder=Ones())
    assert run_command_line(["index", str(folder), "--out", str(out)]) == 2
    assert "holds vectors by ones: add --embed ones@URL, or --fresh" in capsys.readouterr().err
    assert run_command_line(["index", str(folder), "--out", str(out), "--fresh"]) == 0


def test_names_and_ids_that_are_no_unicode_are_indexed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / os.fsdecode(b"fee\xff.txt")).write_text("A fee.")
    (folder / "rows.jsonl").write_text(r'{"id": "\ud800", "text": "half of a pair"}')
    assert run_command_line(["index", str(folder), "--out", str(folder.parent / "x"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 4


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "folder"])
def test_a_question_is_answered_from_documents(folder: Path, indexed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def reply(request: dict[str, object]) -> str:
        text = json.dumps(request["messages"], ensure_ascii=False)
        if "12 florins" not in text:
            return "Thought: look it up\nAction: passages\nAction input: harbour fee Genua Lübeck"
        cited = text.partition("The harbour fee in Lübeck")[0].rpartition("[o1.")[2].partition("]")[0]
        return f"Final answer: Lübeck\nBecause: its fee is 9 florins [o1.{cited}]"

    docs = folder
    if indexed:
        docs = folder.parent / "fees.index"
        assert run_command_line(["index", str(folder), "--out", str(docs)]) == 0
        capsys.readouterr()
    with serve_threaded(reply) as url:
        code = run_command_line(
            [
                "ask",
                "Where is the harbour cheaper?",
                "--docs",
                str(docs),
                "-t",
                "iter_rag",
                "--llm",
                f"m@{url}",
                "--json",
            ]
        )
    told = json.loads(capsys.readouterr().out)
    assert (code, told["answer"]) == (0, "Lübeck")
    assert told["evidence"]["records"][0]["source"] == "lubeck.md#1"
    assert [figure["text"] for figure in told["evidence"]["figures"]] == ["9"]
