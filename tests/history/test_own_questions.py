"""Marked runs as questions of one's own, and their evaluation."""

import json
from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.history.recorder import read_questions
from decisor.lab.benchmark import Case, open_bench
from decisor.lab.own_questions import OwnBench
from decisor.types import Decision
from local_llm import Decisor, LocalLLM


@pytest.mark.slow
def test_marked_runs_become_questions_that_eval_scores(
    decisor: Decisor, local_llm: LocalLLM, sites: Path, tmp_path: Path
) -> None:
    assert "No run is marked" in decisor("history", "export", code=2).stderr
    (tmp_path / "rules.txt").write_text("Rent decides.")
    for text in ("Which site is cheapest?", "Which has the best roof?", "Which is never asked of again?"):
        decisor("ask", text, "--db", "sites.db", "--llm", local_llm.name, "--rules", "rules.txt")
    decisor("history", "mark", "1", "right", "We moved in")
    decisor("history", "mark", "2", "wrong", "SECRET-GOLD leaked", "--answer", "oak")
    (tmp_path / "mine.jsonl").write_text(decisor("history", "export").stdout)
    lines = [json.loads(line) for line in (tmp_path / "mine.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "question": "Which site is cheapest?",
        "id": "run-1",
        "rules": "Rent decides.",
        "answer": "elm",
        "note": "We moved in",
    }
    assert (lines[1]["answer"], lines[1]["wrong"], len(lines)) == ("oak", "elm", 2)

    local_llm.prompts.clear()
    words = [
        "eval",
        "--questions",
        "mine.jsonl",
        "--db",
        "sites.db",
        "-t",
        "plan_rag",
        "--llm",
        local_llm.name,
        "--json",
    ]
    outcomes = [json.loads(line) for line in decisor(*words).stdout.splitlines()]
    assert {one["case"]: one["state"] for one in outcomes} == {"run-1": "right", "run-2": "wrong"}
    assert len(local_llm.prompts) == 4 and "Rent decides." in local_llm.prompts[0]
    assert not any("SECRET-GOLD" in prompt or "moved in" in prompt for prompt in local_llm.prompts)
    assert "own" in decisor("report", "run.db").stdout


async def test_an_answer_that_was_wrong_is_wrong_again_and_another_is_unscored(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(
        '{"question": "Which site?", "wrong": "elm"}\n{"question": "Which site?", "answer": "The Elm"}\n'
    )
    own = OwnBench(tmp_path / "mine.jsonl")
    only_wrong, known = own.cases()

    async def right(case: Case, answer: str) -> bool | None:
        return (await own.score(case, Decision(answer), [])).right

    assert [await right(only_wrong, answer) for answer in ("elm", "oak", "")] == [False, None, None]
    assert [await right(known, answer) for answer in ("elm.", "oak", "")] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no questions"),
        ("{}", "needs question"),
        ('{"question": "Which?"}', "has no answer, and nothing else is expected"),
        ('{"question": "Which?", "cite": ["site"]}', "cite is not known here"),
        ('{"question": 3, "answer": "a"}', "question is to be a text, not 3"),
        ("x", "line 1"),
        ("[]", "line 1"),
        ('{"question": "a", "answer": "b", "id": "1"}\n{"question": "a", "answer": "b", "id": "1"}', "there twice"),
    ],
)
def test_a_file_that_holds_no_questions_is_refused_with_its_line(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(SetupError, match=complaint):
        read_questions(path)


async def test_questions_need_data_and_data_need_questions(tmp_path: Path, decisor: Decisor) -> None:
    (tmp_path / "mine.jsonl").write_text('{"question": "Which?", "answer": "a"}')
    own = open_bench("own", questions=str(tmp_path / "mine.jsonl"))
    with pytest.raises(SetupError, match="Which data"):
        async with own.environment(own.cases()[0]):
            pass
    assert "goes with --questions" in decisor("eval", "--db", "x.db", code=2).stderr
