"""The front door: asking once, from code that is not asynchronous, and from code that is."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import decisor
from decisor.cli import run_command_line as command
from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Limits
from decisor.sandbox.engine import DEFAULT_SECONDS
from decisor.trace.events import Conclusion, TraceEntry
from decisor.trace.file import read_trace
from decisor.types import Question
from servers.openai_server import serve_threaded
from session.conftest import ANSWER, QUERY, database, planner

SVG = "http://www.w3.org/2000/svg"
SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n"


def test_a_question_is_asked_in_one_line_of_python(sites: Path) -> None:
    result = decisor.ask("Which site is cheapest?", db=f"sqlite:///{sites}", llm=planner())
    assert (result.answer, result.technique, result.llm) == ("elm", "plan_rag", "scripted")
    assert result.evidence.ids == ("o1.r1", "o1.r2")
    assert [record.fields["rent"] for record in result.records] == [400.0, 700.0]
    assert (result.usage.calls, result.usage.actions) == (2, 1)
    assert result.ranking is not None and [option.name for option in result.ranking.options] == ["elm", "oak"]
    assert result.decision.stopped == "answered"


def test_it_works_where_an_event_loop_runs_already(sites: Path) -> None:
    async def notebook() -> str:
        result = decisor.ask("Which site?", db=str(sites), llm=planner())
        again = result.ask("Which one again?")
        return result.answer + again.answer

    assert asyncio.run(notebook()) == "elmelm"


def test_no_thread_and_no_worker_is_left_behind(sites: Path) -> None:
    before = set(threading.enumerate())
    decisor.ask("Which site?", db=str(sites), llm=planner())
    until = time.monotonic() + 30
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.01)  # threads that wait for a child that ended are about to end
    assert set(threading.enumerate()) <= before


def test_printing_a_result_says_what_the_command_prints(sites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def replies(body: dict[str, Any]) -> str:
        return planner().replies([decisor.types.Message("user", body["messages"][-1]["content"])])  # type: ignore[operator,return-value]

    with serve_threaded(replies) as url:
        result = decisor.ask("Which site?", db=str(sites), llm=f"toy@{url}")
        assert command(["ask", "Which site?", "--db", str(sites), "--llm", f"toy@{url}", "--no-history"]) == 0
    out, how = capsys.readouterr()
    lines = [line.rstrip() for line in (how + out).splitlines()]
    timeless = [line for line in lines if " ms" not in line and " in 0." not in line]
    assert [line for line in str(result).splitlines() if " ms" not in line and " in 0." not in line] == timeless
    assert "Decision: elm" in lines and "  1. compare the rents" in lines


def test_a_result_is_saved_as_a_trace_and_as_a_page_and_is_one_json_object(sites: Path, tmp_path: Path) -> None:
    result = decisor.ask("Which <b>site</b>?", db=str(sites), llm=planner(), rules="Rent counts.")
    result.save("run.jsonl")
    assert [entry.id for entry in read_trace(tmp_path / "run.jsonl")] == [entry.id for entry in result.trace]
    result.html("run.html")
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!doctype html>") and "http" not in page.replace("http-equiv", "").replace(SVG, "")
    assert "Which &lt;b&gt;site&lt;/b&gt;?" in page and "<b>site" not in page
    assert QUERY in page and "it costs 400" in page
    values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert values["answer"] == "elm" and values["question"]["rules"] == "Rent counts."
    with pytest.raises(SetupError, match="Cannot write"):
        result.save("/nowhere/run.jsonl")


def test_a_result_asks_its_data_again_with_the_same_technique(sites: Path) -> None:
    llm = planner()
    result = decisor.ask("Which site?", db=f"rents={sites}", llm=planner("rents"), technique="iter_rag")
    again = asyncio.run(result.ask_async("And now?", llm=planner("rents")))
    assert (again.technique, again.question.text, again.answer) == ("iter_rag", "And now?", "elm")
    assert not llm.seen


def test_what_happens_is_heard_and_written_as_it_happens(sites: Path, tmp_path: Path) -> None:
    entries: list[TraceEntry] = []
    result = decisor.ask("Which site?", db=sites, llm=planner(), on_event=entries.append, trace=tmp_path / "run.jsonl")
    assert entries == list(result.trace)
    assert len(read_trace(tmp_path / "run.jsonl")) == len(entries)
    assert "run.jsonl" in str(result)


def test_a_limit_ends_a_run_with_a_decision_that_says_so(sites: Path) -> None:
    never = ScriptedLLM(lambda messages: f"Plan: [Step 1: look]\nThought: x\nAction: sql\nAction input: {QUERY}")
    result = decisor.ask("Which site?", db=sites, llm=never, limits=Limits(calls=3))
    assert result.decision.stopped == "budget" and any("limit of 3 calls" in one for one in result.decision.reasons)


def test_rules_and_goal_stand_beside_the_question_or_in_it(sites: Path) -> None:
    llm = planner()
    decisor.ask(Question("Which site?", rules="Rent counts.", goal="The lowest rent."), db=sites, llm=llm)
    other = planner()
    decisor.ask("Which site?", rules="Rent counts.", goal="The lowest rent.", db=sites, llm=other)
    assert llm.seen == other.seen and "Rent counts." in llm.seen[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "No data source given"),
        ({"db": "nothing.db"}, "nothing.db"),
        ({"db": "sites.db", "technique": "plan_rga"}, "There is no technique 'plan_rga'"),
        ({"db": "sites.db", "technique": "no_module_x:Technique"}, "no module no_module_x"),
        ({"db": "sites.db", "settings": {"steps": 3}}, "plan_rag has no steps"),
        ({"db": "sites.db", "settings": {"critic_llm": planner()}}, "plan_rag has no critic_llm"),
        ({"db": "sites.db", "trace": "/nowhere/run.jsonl"}, "Cannot write the trace"),
        ({"db": "sites.db", "llm": "none"}, "There is no LLM to plan this, and no decision model"),
        ({"db": "sites.db", "llm": "none", "technique": "plan_rag"}, "plan_rag asks an LLM, and there is none"),
        ({"db": "sites.db", "llm": "none", "technique": "exact"}, "exact computes from a decision model"),
        ({"db": "sites.db", "tools": [3]}, "3 is no tool"),
    ],
)
def test_what_cannot_be_used_is_one_line(sites: Path, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint.replace("(", r"\(")) as complaints:
        decisor.ask("Which?", **{"llm": planner(), **options})
    assert "\n" not in str(complaints.value)


def test_a_heuristic_without_an_llm_is_not_told_that_it_asks_one(sites: Path) -> None:
    with pytest.raises(SetupError) as complaint:
        decisor.ask("Which site?", db=sites, technique="heuristic", llm="none")
    assert "asks an LLM" not in str(complaint.value)


@pytest.mark.slow
def test_an_interrupt_cancels_the_ask_and_leaves_nothing_running(sites: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import decisor, os, signal, threading, time\n"
        "at = []\n"
        "before = signal.getsignal(signal.SIGINT)\n"
        f"reply = 'Plan: [Step 1: x]\\nThought: x\\nAction: sql\\nAction input: {SLOW}'\n"
        "llm = decisor.ScriptedLLM(lambda messages: reply)\n"
        "def hear(entry):\n"
        "    if type(entry.event).__name__ == 'ActionStart':\n"
        "        at.append(time.monotonic())\n"
        "        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        f"    decisor.ask('Which?', db={str(sites)!r}, llm=llm, on_event=hear)\n"
        "except KeyboardInterrupt:\n"
        "    left = [thread.name for thread in threading.enumerate() if thread.name == 'decisor']\n"
        "    print(left, signal.getsignal(signal.SIGINT) is before)\n"
        f"assert time.monotonic() - at[0] < {DEFAULT_SECONDS}, 'the query itself runs for its limit'\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0 and ended.stdout == "[] True\n", ended.stdout + ended.stderr
    assert not ended.stderr


def test_a_technique_of_somebody_else_is_named_by_its_import_path(sites: Path, tmp_path: Path) -> None:
    (tmp_path / "mine_of_session_test.py").write_text(
        "from dataclasses import dataclass\n"
        "from decisor import Decision, Question, Run\n"
        "from decisor.types import Action\n\n\n"
        "@dataclass(frozen=True)\n"
        "class First:\n"
        '    column: str = "name"\n\n'
        "    async def __call__(self, question: Question, run: Run) -> Decision:\n"
        "        rows = await run.act(Action('sql', 'SELECT * FROM site'))\n"
        "        return Decision(str(rows.records[0].fields[self.column]))\n"
    )
    result = decisor.ask("Which?", db=sites, technique="mine_of_session_test:First", llm=planner())
    assert (result.answer, result.technique) == ("oak", "mine_of_session_test:First")
    assert isinstance(result.trace[-2].event, Conclusion), "the trace has it, though the technique does not say it"
    result = decisor.ask(
        "Which?", db=sites, technique="mine_of_session_test:First", llm=planner(), settings={"column": "rent"}
    )
    assert result.answer == "700.0"


def test_an_expert_and_a_judge_have_llms_of_their_own_given_as_objects(sites: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The site elm is the cheapest.")
    answers = iter(f"Thought: x\nFinal answer: {name}" for name in ("elm", "oak", "ash", "elm"))
    judge = ScriptedLLM(lambda messages: "Better: B", name="judge")
    result = decisor.ask(
        "Which site?",
        docs=tmp_path / "notes.txt",
        technique="best_of_n",
        llm=ScriptedLLM(lambda messages: next(answers)),
        settings={"n": 2, "judge_llm": judge},
    )
    assert len(judge.seen) == 2, "asked in both orders"
    assert result.usage.calls == 4 and result.settings == {"n": "2", "judge_llm": "judge"}


def test_the_same_data_are_named_by_url_path_and_name(tmp_path: Path) -> None:
    path = database(tmp_path / "a=b.db", [("oak", 1.0), ("elm", 0.5)])
    for place in ("a=b.db", path, f"sqlite:///{path}"):
        assert decisor.ask("Which?", db=place, llm=planner()).answer == "elm", place
    assert ANSWER


def test_a_result_is_one_short_line_at_a_prompt_and_its_sentences_keep_their_citations(sites: Path) -> None:
    result = decisor.ask("Which site?", db=sites, llm=planner())
    assert repr(result) == "Result(answer='elm', technique='plan_rag', evidence 2 records, 2 LLM calls)"
    assert result.decision.reasons == ("it costs 400 [o1.r1], oak 700 [o1.r2]",)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tecnique": "exact"}, "There is no option tecnique. Did you mean technique?"),
        ({"limits": 3}, "limits should be limits, such as decisor.Limits"),
        ({"rules": 5}, "rules should be a valid string, not 5"),
        ({"llm": object()}, "llm takes .* name and complete"),
        ({"settings": "max_steps=3"}, "settings should be a valid dictionary"),
        ({"db": 5}, "5 is no place"),
        ({"docs": [5]}, "5 is no place"),
        ({"tools": 5}, "5 is no tool"),
        ({"tools": "costs.py"}, "name a function in it, as costs:function"),
    ],
)
def test_an_option_that_cannot_be_used_is_said_in_a_line(sites: Path, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint):
        decisor.ask("Which site?", **{"db": sites, "llm": planner(), **options})


def test_an_empty_question_is_refused(sites: Path) -> None:
    with pytest.raises(SetupError, match="The question is empty"):
        decisor.ask(" ", db=sites, llm=planner())


def test_what_is_written_of_a_run_is_its_owners_alone_and_a_file_that_is_there_keeps_its_mode(sites: Path) -> None:
    result = decisor.ask("Which site?", db=sites, llm=planner(), trace="heard.jsonl")
    result.save("saved.jsonl")
    result.html("run.html")
    shared = Path("shared.html")
    shared.touch(mode=0o644)
    shared.chmod(0o644)
    result.html(shared)
    modes = [Path(name).stat().st_mode & 0o777 for name in ("heard.jsonl", "saved.jsonl", "run.html", "shared.html")]
    assert modes == [0o600, 0o600, 0o600, 0o644]
