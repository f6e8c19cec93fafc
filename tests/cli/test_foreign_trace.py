"""A trace or a run store of someone else: nothing in it decides where a key or a row goes, or what is read or run."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import CaseTask, open_store
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.techniques.replay.rerun import Edit, rerun_with_edit
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import RunStart, TraceEntry, events_of
from decisor.trace.file import read_trace
from decisor.types import Question
from servers.listening import listening
from servers.openai_server import serve_threaded

KEY = "sk-of-the-person"
ROWS = "select name, rent from site order by rent"
ACT = f"Thought: look\nAction: sql\nAction input: {ROWS}"
TELL = "Thought: done\nFinal answer: elm\nBecause: 400.5 [o1.r1]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DECISOR_LLM", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DECISOR_LLM_KEY", KEY)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("sites.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, rent REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("ash", 900.5), ("oak", 700.5), ("elm", 400.5)])
    return tmp_path


def record(technique: str, replies: Callable[[], Iterator[str]], *options: str) -> None:
    given = replies()
    with serve_threaded(lambda body: next(given)) as url:
        words = ["ask", "Which site?", "--db", "sites.db", "-t", technique, *options, "--llm", f"m@{url}"]
        assert run_command_line([*words, "--trace", "run.jsonl", "--json"]) == 0


def chains() -> Iterator[str]:
    """Of best_of_n with two chains, and what a judge says between."""
    while True:
        yield from (ACT, TELL, ACT, TELL, "Better: A", "Better: A")


def changed(technique: str | None = None, **settings: Any) -> None:
    """The trace with another technique and its settings, or with more settings."""
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    for line in lines:
        if line.get("event") == "RunStart":
            line["data"]["technique"] = technique or line["data"]["technique"]
            line["data"]["settings"] = {**({} if technique else line["data"]["settings"]), **settings}
    Path("run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def edit(*options: str) -> int:
    given = chains()
    words = ["trace", "run.jsonl", "--edit", "1", "--action", f"{ROWS} desc", "--db", "sites.db", *options]
    with serve_threaded(lambda body: next(given)) as url:
        return run_command_line([*words, "--llm", f"m@{url}"])


@pytest.mark.parametrize("spec", ["m@{url}", "m@{url} price=1,2"])
def test_an_llm_that_a_trace_names_gets_neither_the_key_nor_a_row(
    spec: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("best_of_n", chains, "-o", "n=2")
    capsys.readouterr()
    with listening("Better: A") as (url, came):
        changed(judge_llm=f"\x1b[2J\u202e{spec.format(url=url)}")
        code = edit()
        assert not came
    assert code == 2
    said = capsys.readouterr().err
    named = f"[2J{spec.format(url=url)}"
    assert said == (
        f"decisor: The trace names an LLM for the judge, {named}. LLMs come from the command line only: "
        "give -o judge_llm=MODEL@URL to use one.\n"
    )


def test_the_llm_of_a_part_that_the_command_names_takes_the_place_of_the_traces(folder: Path) -> None:
    record("best_of_n", chains, "-o", "n=2")
    with listening("Better: A") as (evil, came), listening("Better: A") as (own, judged):
        changed(judge_llm=f"m@{evil}")
        assert edit("-o", f"judge_llm=m@{own}", "--out", "new.jsonl") == 0
        assert not came
        assert judged and KEY in judged[0], "the person named this one, and the key is for what the person names"
        (start,) = events_of(read_trace(Path("new.jsonl")), RunStart)
        assert start.settings == {"n": "2", "judge_llm": f"m@{own}"}


@pytest.mark.slow
@pytest.mark.parametrize("part", ["planner", "generator", "critic", "writer", "aggregator"])
def test_no_expert_of_a_graph_is_asked_where_a_trace_says(
    part: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("best_of_n", chains, "-o", "n=2")
    with listening() as (url, came):
        changed("reasoning_dag", **{f"{part}_llm": f"m@{url}"})
        for label in ("reasoning_dag", f"reasoning_dag {part}_llm=m@{url}"):
            changed(label)
            assert edit() == 2
        assert not came
    assert f"names an LLM for the {part}, m@http" in capsys.readouterr().err


def test_no_path_of_a_trace_is_opened(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("best_of_n", chains, "-o", "n=2")
    changed("furepa scorer=/etc")
    capsys.readouterr()
    assert edit() == 2
    said = capsys.readouterr().err
    assert said.startswith("decisor: The trace sets scorer to /etc. That comes from the command line only: give -o sc")


@pytest.mark.slow
def test_no_module_that_a_trace_names_is_imported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("best_of_n", chains, "-o", "n=2")
    Path("evil_technique.py").write_text("open('ran', 'w')\nclass Evil: pass\n")
    kept = Path("run.jsonl").read_text()
    for name in ("evil_technique:Evil", "evil_technique", "../evil_technique:Evil", "\x1b[2Jevil_technique:Evil"):
        Path("run.jsonl").write_text(kept)
        changed(name)
        assert edit() == 2
        Path("run.jsonl").write_text(kept)
        with Path("run.jsonl").open("a") as file:
            choice = {"id": 999, "span": 0, "at": 0, "event": "TechniqueChoice", "data": {"technique": name, "why": ""}}
            file.write(json.dumps(choice) + "\n")
        assert edit() == 2
        assert "\x1b" not in (said := capsys.readouterr().err)
        assert said.count("which is none of decisor's") == 2
    assert not Path("ran").exists() and "evil_technique" not in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"n": 2}, {"seed": None}, {"n": [3]}, {"n": "x"}, {"kind": "x"}])
def test_settings_of_other_kinds_are_refused_in_a_line(settings: dict[str, Any], folder: Path) -> None:
    record("best_of_n", chains, "-o", "n=2")
    changed(**settings)
    assert edit() == 2


def test_from_python_too_a_trace_names_neither_llms_nor_paths(folder: Path) -> None:
    record("best_of_n", chains, "-o", "n=2")
    for technique, settings in (
        ("best_of_n", {"judge_llm": "m@http://evil/v1"}),
        ("furepa", {"scorer": "/etc"}),
        ("os:system", {}),
    ):
        changed(technique, **settings)
        with pytest.raises(SetupError, match="command line only"):
            asyncio.run(
                rerun_with_edit(read_trace(Path("run.jsonl")), Edit("1"), Run(ScriptedLLM([]), Toolbox([]), Budget()))
            )


def test_what_a_run_store_names_is_not_asked_opened_or_imported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("evil_technique.py").write_text("open('ran', 'w')\nclass Evil: pass\n")
    with listening() as (url, came):
        store = open_store("run.db")
        store.begin({"models": f"m@{url}", "benches": f"popqa data={url}", "techniques": "evil_technique:Evil"})
        names = (f"radagent judge_llm=m@{url}", "evil_technique:Evil", f"furepa scorer={folder}")
        store.plan([CaseTask((f"popqa data={url}", "c1", name, f"m@{url}", 0)) for name in names])
        for name in names:
            start = RunStart(Question("Which site?"), name, f"m@{url}", {"judge_llm": f"m@{url}"})
            claim = store.claim()
            assert claim is not None
            outcome = Outcome(claim.key[0], "c1", claim.key[2], f"m@{url}", 0, "right")
            assert store.finish(outcome, [TraceEntry(1, 0, 0.0, start)], claim.fence)
        store.close()
        for words in (
            ["report", "run.db"],
            ["report", "run.db", "--html", "page.html"],
            ["report", "run.db", "--against", "run.db", "--json"],
        ):
            assert run_command_line(words) == 0
        assert run_command_line(["eval", "--store", "run.db", "-b", "dqa data=nowhere", "-t", "exact"]) == 2
        assert run_command_line(["eval", "--store", "run.db"]) == 2, (
            "benchmarks are named by the command, never by the store"
        )
        assert not came
    assert not Path("ran").exists() and "evil_technique" not in sys.modules
