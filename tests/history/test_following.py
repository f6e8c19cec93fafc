"""Going on: a question after a decision, and a run that did not come to its end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import decisor as library
from decisor.cli.ask import reuse_request
from decisor.cli.history import find_old_runs
from decisor.history.place import FolderPlace
from decisor.history.store import History, PastRun
from decisor.llms.scripted import ScriptedLLM
from decisor.session.config import resolve_config
from decisor.session.open_sources import sources_of_request
from decisor.session.request import AskRequest
from decisor.session.result import build_earlier, build_following_question
from decisor.techniques.replay.rerun import select_reusable_calls, select_reusable_steps
from decisor.trace.events import ActionResult, ActionStart, LLMCall, Trace, UnreadableReply
from decisor.types import Observation, Question
from local_llm import ANSWER, PLAN, QUERY, Decisor, LocalLLM

ASK = ("ask", "Which site is cheapest?", "--db", "sites.db")
FOLLOW = "And without elm?"


@pytest.mark.slow
def test_a_follow_up_sees_the_decision_and_cites_its_records_with_their_ids(
    decisor: Decisor, local_llm: LocalLLM, sites: Path, tmp_path: Path
) -> None:
    (tmp_path / "rules.txt").write_text("Rent decides.")
    decisor(*ASK, "--llm", local_llm.name, "--rules", "rules.txt")
    local_llm.prompts.clear()
    local_llm.replies = [
        "Plan: [Step 1: look at the others]\nThought: a\nAction: sql\nAction input: SELECT name, rent FROM site "
        "WHERE name <> 'elm'",
        "Final answer: oak\nBecause: it costs 700 [o1.r2], as it still does [o2.r1]",
    ]
    told = json.loads(decisor("ask", "--continue", FOLLOW, "--json").stdout)
    first = local_llm.prompts[0]
    for part in (
        "# Rules\nRent decides.",
        "Question: Which site is cheapest?",
        "Decision: elm",
        QUERY,
        "[o1.r1] | elm | 400",
        f"# Question\n{FOLLOW}",
    ):
        assert part in first
    assert (told["answer"], told["evidence"]["ids"], told["evidence"]["objections"]) == ("oak", ["o1.r2", "o2.r1"], [])
    assert [record["fields"]["name"] for record in told["evidence"]["records"]] == ["oak", "oak"]
    assert (History().read(2).before, len(local_llm.prompts)) == (1, 2)
    story = decisor("history", "show", "2").stdout
    assert "[o1.r2]" in story and "Run 2, after run 1" in story
    assert "(after 1)" in decisor("history").stdout


def test_a_follow_up_of_a_follow_up_knows_both_and_ids_stay_unique(sites: Path) -> None:
    replies = [
        PLAN,
        ANSWER,
        PLAN,
        "Final answer: oak\nBecause: it costs 700 [o2.r2]",
        PLAN,
        "Final answer: elm\nBecause: it costs 400 [o3.r1], oak 700 [o2.r2]",
    ]
    result = library.ask("Which site?", db=str(sites), llm=ScriptedLLM(replies[:2]))
    second = result.ask(FOLLOW, llm=ScriptedLLM(replies[2:4]))
    llm = ScriptedLLM(replies[4:])
    third = second.ask("And by rent alone?", llm=llm)
    assert third.evidence.ids == ("o3.r1", "o2.r2")
    assert [record.id for record in third.records] == ["o3.r1", "o2.r2"]
    assert "1. Which site?: elm" in str(llm.seen[0]) and f"Question: {FOLLOW}" in str(llm.seen[0])
    assert third.question.earlier is not None and third.question.earlier.last == 2


def test_a_follow_up_may_rest_on_the_earlier_records_alone(sites: Path) -> None:
    result = library.ask("Which site?", db=str(sites), llm=ScriptedLLM([PLAN, ANSWER]))
    llm = ScriptedLLM(["Plan: [Step 1: none]\nFinal answer: oak\nBecause: it costs 700 [o1.r2]"])
    second = result.ask("Which is the second?", llm=llm)
    assert (second.answer, second.evidence.ids, second.usage.actions) == ("oak", ("o1.r2",), 0)


async def test_data_that_are_open_are_not_opened_anew_for_a_follow_up(sites: Path) -> None:
    async with library.open(db=str(sites)) as data:
        result = await data.ask("Which site?", llm=ScriptedLLM([PLAN, ANSWER]))
        opened = data.tools[0]
        sites.rename(sites.with_name("moved.db"))
        second = await result.ask_async(FOLLOW, llm=ScriptedLLM([PLAN, ANSWER.replace("o1.", "o2.")]))
        assert second.answer == "elm" and data.tools[0] is opened
    with pytest.raises(library.SetupError, match=r"sites\.db"):
        await result.ask_async(FOLLOW, llm=ScriptedLLM([]))


def test_only_the_first_rows_and_the_cited_ones_go_with_a_follow_up(sites: Path) -> None:
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) SELECT i FROM n"
    plan = PLAN.replace(QUERY, query)
    result = library.ask(
        "Which?", db=str(sites), llm=ScriptedLLM([plan, "Final answer: 44\nBecause: it is 44 [o1.r44]"])
    )
    earlier = build_earlier(result)
    assert [record.id for record in earlier.records] == [*(f"o1.r{at}" for at in range(1, 21)), "o1.r44"]
    assert (earlier.steps[0].observation.total, earlier.steps[0].observation.truncated) == (60, True)
    assert build_following_question(result, Question("And?", rules="mine")).rules == "mine"


@pytest.mark.slow
def test_what_is_not_kept_is_named_again(decisor: Decisor, local_llm: LocalLLM, sites: Path, tmp_path: Path) -> None:
    library.ask("Which site?", db=str(sites), llm=ScriptedLLM([PLAN, ANSWER]), history=True)
    assert "is not saved. Give it again" in decisor("ask", "--continue", FOLLOW, code=2).stderr
    local_llm.replies = [PLAN, ANSWER.replace("o1.", "o2.")]
    decisor("ask", "--continue-from", "1", FOLLOW, "--llm", local_llm.name)
    assert "no run 9" in decisor("ask", "--continue-from", "9", FOLLOW, code=2).stderr


@pytest.mark.slow
def test_a_model_with_a_tag_is_kept_and_its_tag_is_no_password(
    decisor: Decisor, local_llm: LocalLLM, sites: Path
) -> None:
    """Ollama's models are called so."""
    decisor(*ASK, "--llm", f"qwen3:8b@{local_llm.url.replace('127.0.0.1', 'localhost').removeprefix('http://')}")
    local_llm.replies = [PLAN, ANSWER.replace("o1.", "o2.")]
    assert "Decision: elm" in decisor("ask", "--continue", FOLLOW).stdout
    assert decisor("history", "verify", "1").returncode == 0


@pytest.mark.slow
def test_a_run_of_another_folder_says_where_to_go(local_llm: LocalLLM, sites: Path, tmp_path: Path) -> None:
    def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "decisor", *words]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)

    assert run(tmp_path, *ASK, "--llm", local_llm.name).returncode == 0
    (tmp_path / "elsewhere").mkdir()
    done = run(tmp_path / "elsewhere", "ask", "--continue", FOLLOW)
    assert done.returncode == 2 and f"was asked in {tmp_path}" in done.stderr


def interrupt(words: Sequence[str], folder: Path, local_llm: LocalLLM, prompts: int) -> str:
    """What the command says that is interrupted when the LLM was asked so often."""
    command = [sys.executable, "-m", "decisor", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while len(local_llm.prompts) < prompts:
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    return errors


@pytest.mark.slow
def test_an_interrupted_run_says_what_it_had_and_goes_on_without_buying_it_again(
    decisor: Decisor, local_llm: LocalLLM, sites: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = local_llm.reply
    waits = [0.0, 30.0]

    def slow(body: dict[str, object]) -> str:
        text = reply(body)
        end = time.monotonic() + (waits.pop(0) if waits else 0)
        while time.monotonic() < end and not released:
            time.sleep(0.05)
        return text

    released: list[bool] = []
    monkeypatch.setattr(local_llm, "reply", slow)
    from servers.openai_server import serve_threaded

    with serve_threaded(slow) as url:
        errors = interrupt([*ASK, "--llm", f"test-model@{url}"], tmp_path, local_llm, 2)
        released.append(True)
        assert "saved as run 1" in errors and "decisor history resume 1" in errors
        run = History().read(1)
        assert (run.state, run.usage.calls) == ("interrupted", 2)  # the second was sent, and may be billed
        story = decisor("history", "show", "1").stdout
        assert QUERY in story and "Resume it: decisor history resume 1" in story
        local_llm.prompts.clear()
        done = decisor("history", "resume", "--json")
    told = json.loads(done.stdout)
    assert (told["answer"], told["number"], told["usage"]["calls"]) == ("elm", 2, 1)
    assert len(local_llm.prompts) == 1 and "[o1.r1]" in local_llm.prompts[0]
    assert "run 1 is resumed with 1 LLM call and 1 observation" in done.stderr
    assert "is finished" in decisor("history", "resume", "2", code=2).stderr


@pytest.mark.slow
def test_a_run_that_reached_its_limit_goes_on_with_more(decisor: Decisor, local_llm: LocalLLM, sites: Path) -> None:
    more = [PLAN.replace("ORDER", f"LIMIT {turn} --") for turn in (7, 8)]
    local_llm.replies = [PLAN, *more, "Final answer: oak\nBecause: a guess [o1.r2]"]
    decisor(*ASK, "--llm", local_llm.name, "--calls", "4", code=3)
    assert History().read(1).state == "budget"
    local_llm.prompts.clear()
    told = json.loads(decisor("history", "resume", "1", "--calls", "9", "--json").stdout)
    assert (told["answer"], told["usage"]["calls"], len(local_llm.prompts)) == ("elm", 1, 1)


def test_replies_that_could_not_be_read_are_bought_again_where_they_ended_a_run() -> None:
    unreadable = UnreadableReply("syntax", "No action.")
    calls = [LLMCall("m", (), (text,)) for text in ("a", "b", "c", "d")]
    trace = Trace()
    for event in (calls[0], unreadable, calls[1], calls[2], unreadable, calls[3], unreadable):
        trace.add(event)
    assert [call.texts[0] for call in select_reusable_calls(trace.entries)] == ["a", "b"]


def test_an_action_that_failed_where_a_run_ended_is_done_again() -> None:
    trace = Trace()
    for text, error in (("a", True), ("b", True)):
        trace.add(LLMCall("m", (), (text,)))
        trace.add(ActionResult(trace.add(ActionStart("sql", text)), Observation(note="no server", error=error)))
    assert [step.action.input for step in select_reusable_steps(trace.entries)] == ["a"]


def test_going_on_keeps_what_tools_may_get_and_an_allowance_is_for_the_tools_it_was_given_for(sites: Path) -> None:
    for policy in ("refuse", "allow"):
        tools = library.ToolSpecs(row_values=policy)
        library.ask("Which site?", db=str(sites), tools=tools, llm=ScriptedLLM([PLAN, ANSWER]), history=True)
    past = [History().read(number) for number in (1, 2)]
    again = [
        reuse_request(run, own).row_values
        for run in past
        for own in (AskRequest(llm="m"), AskRequest(tools=("mcp:other",)), AskRequest(llm="m", row_values="ask"))
    ]
    assert again == ["refuse", "refuse", "ask", "allow", "ask", "ask"]
    request = reuse_request(past[0], AskRequest(llm="m"))
    assert sources_of_request(request, resolve_config()).tools.row_values == "refuse"


def past_of(request: AskRequest) -> PastRun:
    return PastRun(Question("Which?"), request.model_dump(mode="json"), number=7)


def test_what_was_said_of_the_old_tools_is_not_said_of_new_ones() -> None:
    old = AskRequest(tools=("old.json",), methods=("post",), base_url="https://old", auth=("OLD_KEY",))
    past = past_of(old.model_copy(update={"folder": str(Path.cwd()), "audit": "queries.log"}))
    new = reuse_request(past, AskRequest(tools=("new.json",)))
    assert (new.tools, new.methods, new.base_url, new.auth) == (("new.json",), (), "", ())
    assert new.audit == "queries.log"
    same = reuse_request(past, AskRequest(auth=("NEW_KEY",)))
    assert (same.tools, same.methods, same.auth) == (("old.json",), ("post",), ("NEW_KEY",))


@pytest.mark.parametrize("own", [{"model": "sites.toml"}, {"audit": "queries.log"}, {"definitions": ("words.toml",)}])
def test_a_relative_file_of_another_folder_is_named_again(own: dict[str, object]) -> None:
    past = past_of(AskRequest.model_validate({"db": ("sqlite:////data/sites.db",), "folder": "/elsewhere", **own}))
    with pytest.raises(library.SetupError, match=f"asked in /elsewhere.*give --{next(iter(own))} again"):
        reuse_request(past, AskRequest())
    named = AskRequest.model_validate(dict.fromkeys(own, "/here/file"))
    assert reuse_request(past, named).db == ("sqlite:////data/sites.db",)


def test_a_run_whose_tools_had_keys_is_verified_without_its_tools(sites: Path) -> None:
    request = AskRequest(db=("sites.db",), tools=("old.json",), methods=("post",), auth=("OLD_KEY",))
    history = History()
    run = PastRun(Question("Which?"), request.model_copy(update={"folder": str(Path.cwd())}).model_dump(mode="json"))
    FolderPlace().trace_of(history.begin(run)).write_text("")
    [old] = find_old_runs("last")
    assert old.sources is not None and [source.form for source in old.sources.places] == ["sql"]
    assert not old.sources.tools.specs


def test_a_question_that_follows_takes_lm_for_llm(sites: Path) -> None:
    result = library.ask("Which site?", db=str(sites), llm=ScriptedLLM([PLAN, ANSWER]))
    other = ScriptedLLM([PLAN, ANSWER.replace("o1.", "o2.")])
    assert result.ask(FOLLOW, lm=other).answer == "elm"  # type: ignore[call-arg]
    assert len(other.seen) == 2
