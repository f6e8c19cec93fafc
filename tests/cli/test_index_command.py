"""``decisor index`` and ``decisor ask --docs`` as a person types them."""

import json
from pathlib import Path

import pytest

from decisor.cli import run
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
    assert run(["index", str(folder), "--out", out]) == 0
    told = capsys.readouterr().out
    assert "2 passages" in told
    assert "bad.txt: it is no text" in told
    assert run(["index", str(folder), "--out", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 2
    assert run(["index", str(folder), "--out", out, "--json", "--fresh"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["index", "/no/such", "--out", "x"], "nothing at /no/such"),
        (["index", "README.md", "--out", "x", "--language", "klingon"], "no language"),
        (["ask", "q", "--docs", "/no/such", "--lm", "m@http://127.0.0.1:1/v1"], "nothing at /no/such"),
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
    assert run(words) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


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
        assert run(["index", str(folder), "--out", str(docs)]) == 0
        capsys.readouterr()
    with serve_threaded(reply) as url:
        code = run(["ask", "Where is the harbour cheaper?", "--docs", str(docs), "-t", "iter_rag", "--lm", f"m@{url}",
                    "--json"])  # fmt: skip
    told = json.loads(capsys.readouterr().out)
    assert (code, told["answer"]) == (0, "Lübeck")
    assert told["evidence"]["records"][0]["source"] == "lubeck.md#1"
    assert [figure["text"] for figure in told["evidence"]["figures"]] == ["9"]
