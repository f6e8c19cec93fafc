"""Runs in a folder: kept, listed, searched, marked, dropped; also by several processes at once, or dead ones."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from decisor.errors import LLMError, SetupError
from decisor.history.place import FolderPlace
from decisor.history.recorder import Keeping, RunRecorder, record_run
from decisor.history.store import History, PastRun, RunMark
from decisor.trace.events import ActionStart, Conclusion, Event, LLMCall, Note, RunStart, RunUsage, Trace
from decisor.types import Decision, Question, Usage

NOTE = Note("x" * 2_000)


def keep(history: History, text: str, answer: str = "elm", owner: str = "") -> int:
    keeping = Keeping(history, owner)
    with record_run(keeping) as listeners:
        trace = Trace(listeners=[*listeners])
        for event in (
            RunStart(Question(text), "plan_rag", "m"),
            NOTE,
            Conclusion(Decision(answer)),
            RunUsage(Usage(calls=2)),
        ):
            trace.add(event)
    assert not keeping.fault
    return keeping.number


def fail_within(keeping: Keeping, error: BaseException, *events: Event) -> None:
    with record_run(keeping) as listeners:
        trace = Trace(listeners=[*listeners])
        for event in (RunStart(Question("Which?")), *events):
            trace.add(event)
        raise error


def test_a_run_comes_back_as_it_was_and_its_trace_with_it(tmp_path: Path) -> None:
    history = History(tmp_path / "new" / "decisor")
    number = keep(history, "Which site?")
    run = history.read(number)
    assert (run.answer, run.state, run.technique, run.usage.calls) == ("elm", "answered", "plan_rag", 2)
    assert [type(entry.event) for entry in history.entries(number)] == [RunStart, Note, Conclusion, RunUsage]
    assert history.read().number == number


def test_only_their_owner_can_open_the_folder_and_its_files(tmp_path: Path) -> None:
    history = History(tmp_path / "decisor")
    keep(history, "Which site?")
    places = [tmp_path / "decisor", *(tmp_path / "decisor").rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in places if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in places if path.is_file()} == {0o600}


def test_the_newest_comes_first_and_a_search_wants_every_word(tmp_path: Path) -> None:
    history = History(tmp_path)
    for text, answer in (("Which site? 100 %", "elm"), ("Which SUPPLIER?", "Röhm"), ("Which_site", "oak")):
        keep(history, text, answer)
    assert [run.number for run in history.list()] == [3, 2, 1]
    assert [run.number for run in history.list(most=1, before=3)] == [2]
    assert [run.answer for run in history.search("röhm supplier")] == ["Röhm"]
    assert [run.number for run in history.search("%")] == [1]
    assert [run.number for run in history.search("which_")] == [3]
    assert not history.search("site supplier")


def test_nobody_sees_deletes_or_marks_the_runs_of_another(tmp_path: Path) -> None:
    history = History(tmp_path)
    number = keep(history, "Mine?", owner="ann")
    assert [run.number for run in history.list("ann")] == [number]
    assert not history.list("bob") and not history.list()
    assert history.delete([number], "bob") == 0 and history.delete(None, "") == 0
    for act in (
        lambda: history.read(number, "bob"),
        lambda: history.entries(number, "bob"),
        lambda: history.mark(number, RunMark("right"), "bob"),
    ):
        with pytest.raises(SetupError, match=f"no run {number}"):
            act()


def test_a_number_is_never_given_twice(tmp_path: Path) -> None:
    history = History(tmp_path)
    first = keep(history, "Which site?")
    assert history.delete([first, 77]) == 1
    assert not FolderPlace(tmp_path).trace_of(first).exists()
    assert keep(history, "Which site?") == first + 1


def test_beyond_the_cap_the_oldest_are_dropped_and_marked_ones_last(tmp_path: Path) -> None:
    history = History(tmp_path, cap=9_500)
    keep(history, "one")
    history.mark(1, RunMark("right", "it was"))
    for text in ("two", "three", "four"):
        keep(history, text)
    assert [run.number for run in history.list()] == [4, 3, 1]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["1.jsonl", "3.jsonl", "4.jsonl"]
    assert [run.number for run in History(tmp_path, cap=1).list()] == [4, 3, 1]
    keep(History(tmp_path, cap=1), "five")
    assert [run.number for run in history.list()] == [5]


def test_a_mark_is_searched_and_can_be_taken_back(tmp_path: Path) -> None:
    history = History(tmp_path)
    number = keep(history, "Which site?")
    assert history.mark(number, RunMark("wrong", "The roof leaked", "oak")).mark == RunMark(
        "wrong", "The roof leaked", "oak"
    )
    assert history.read(number).state == "answered"
    assert [run.number for run in history.search("roof")] == [number]
    assert history.mark(number, None).mark is None
    assert not history.search("roof")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LLMError("no reply, key sk-abcdefghijklmnopqrstuvwx")])
def test_a_run_that_an_error_ends_is_kept_with_why(error: BaseException, tmp_path: Path) -> None:
    history, keeping = History(tmp_path), Keeping(History(tmp_path))
    with pytest.raises(type(error)):
        fail_within(keeping, error, LLMCall("m", (), ("Thought: a",)))
    run = history.read(keeping.number)
    assert run.state == ("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
    assert run.why and "sk-abc" not in run.why
    assert len(history.entries(run.number)) == 2


def test_a_run_that_fails_before_its_first_reply_is_shown_with_its_reason(tmp_path: Path) -> None:
    keeping = Keeping(History(tmp_path))
    with pytest.raises(LLMError, match="nobody listens"):
        fail_within(keeping, LLMError("At this address nobody listens."))
    [run] = keeping.history.list()
    assert (run.number, run.state, run.why) == (keeping.number, "failed", "At this address nobody listens.")


def test_a_password_in_a_question_is_in_no_file_of_a_run_that_is_under_way(tmp_path: Path) -> None:
    with record_run(Keeping(History(tmp_path))) as listeners:
        Trace(listeners=[*listeners]).add(RunStart(Question("Which of postgresql://me:hunter22@host/shop?")))
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert len(files) >= 2 and not [path for path in files if b"hunter22" in path.read_bytes()]
        assert History(tmp_path).read().state == "running"


def test_a_history_that_cannot_be_used_does_not_end_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "history.db").write_text("this is no database at all, but it is long enough to be read")
    for folder in ("file", "broken"):
        keeping = Keeping(History(tmp_path / folder))
        with record_run(keeping) as listeners:
            trace = Trace(listeners=[*listeners])
            trace.add(RunStart(Question("Which?")))
            trace.add(Conclusion(Decision("elm")))
        assert "this run is not kept" in keeping.fault
        with pytest.raises(SetupError, match="Cannot use the history"):
            keeping.history.list()


def test_a_history_of_a_later_version_is_refused(tmp_path: Path) -> None:
    history = History(tmp_path)
    with history.place.transaction() as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(SetupError, match="format 9"):
        history.list()


DYING = """
import os, sys
from pathlib import Path
from decisor.history.recorder import Keeping, RunRecorder as Recording
from decisor.history.store import History
from decisor.trace.events import LLMCall, RunStart, Trace
from decisor.types import Question
recording = Recording(Keeping(History(Path(sys.argv[1]))))
trace = Trace(listeners=[recording.write])
trace.add(RunStart(Question("Which?"), "plan_rag", "m"))
trace.add(LLMCall("m", (), ("Thought: a",)))
print(recording.run.number, flush=True)
sys.stdin.read()
"""


def test_a_run_whose_process_was_killed_is_interrupted_and_its_trace_is_there(tmp_path: Path) -> None:
    history = History(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", DYING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        assert history.read(number).state == "running"
        assert len(history.entries(number)) == 2
        process.kill()
    assert history.read(number).state == "interrupted"
    assert len(history.entries(number)) == 2


KEEPING = """
import sys
from pathlib import Path
from decisor.history.recorder import Keeping, record_run as recorded
from decisor.history.store import History
from decisor.trace.events import Conclusion, RunStart, Trace
from decisor.types import Decision, Question
for turn in range(20):
    keeping = Keeping(History(Path(sys.argv[1])), owner=sys.argv[2])
    with recorded(keeping) as listeners:
        trace = Trace(listeners=[*listeners])
        trace.add(RunStart(Question(f"Question {turn}?")))
        trace.add(Conclusion(Decision(sys.argv[2])))
    assert not keeping.fault, keeping.fault
"""


def test_several_processes_keep_runs_at_once_and_none_is_lost(tmp_path: Path) -> None:
    owners = ["ann", "bob", "cem"]
    processes = [subprocess.Popen([sys.executable, "-c", KEEPING, str(tmp_path), owner]) for owner in owners]
    assert [process.wait(100) for process in processes] == [0, 0, 0]
    runs = {owner: History(tmp_path).list(owner, most=100) for owner in owners}
    assert [len(of_owner) for of_owner in runs.values()] == [20, 20, 20]
    assert all(run.answer == owner for owner, of_owner in runs.items() for run in of_owner)


def test_an_action_that_began_is_kept(tmp_path: Path) -> None:
    recording = RunRecorder(Keeping(History(tmp_path)))
    trace = Trace(listeners=[recording.write])
    trace.add(RunStart(Question("Which?")))
    trace.add(ActionStart("sql", "SELECT 1"))
    recording.end("interrupted", "It was interrupted.")
    assert replace(History(tmp_path).read(), bytes=0, began=0.0) == PastRun(
        Question("Which?"), number=1, state="interrupted", why="It was interrupted."
    )


@pytest.mark.parametrize("at", ["beginning", "middle"])
def test_a_disk_that_is_full_ends_no_run(tmp_path: Path, at: str) -> None:
    history = History(tmp_path)
    if at == "beginning":
        history.list()
        FolderPlace(tmp_path).trace_of(1).symlink_to("/dev/full")
    keeping = Keeping(history)
    recording = RunRecorder(keeping)
    trace = Trace(listeners=[recording.write])
    trace.add(RunStart(Question("Which site?"), "plan_rag", "m"))
    if at == "middle":
        assert recording.trace is not None
        with Path("/dev/full").open("w") as full:
            os.dup2(full.fileno(), recording.trace.file.fileno())
    for event in (NOTE, Conclusion(Decision("elm"))):
        trace.add(event)
    recording.end()
    assert "No space left on device" in keeping.fault
    if at == "middle":
        assert keeping.fault.startswith("the trace of run 1 is not whole") and history.read(1).answer == "elm"


def test_a_trace_that_another_process_drops_meanwhile_has_no_bytes(tmp_path: Path) -> None:
    history = History(tmp_path, cap=1)
    keep(history, "one")
    (tmp_path / "runs" / "9.jsonl").symlink_to("gone")  # as where it is dropped between its name and its size
    assert keep(history, "two") == 2 and FolderPlace(tmp_path).sizes()[9] == 0


def test_a_trace_that_cannot_be_dropped_is_told(tmp_path: Path) -> None:
    history = History(tmp_path)
    number = keep(history, "one")
    FolderPlace(tmp_path).trace_of(number).unlink()
    (FolderPlace(tmp_path).trace_of(number) / "x").mkdir(parents=True)
    with pytest.raises(SetupError, match="Cannot use the history"):
        history.delete([number])


def test_a_mark_of_an_old_run_drops_neither_it_nor_the_latest(tmp_path: Path) -> None:
    history = History(tmp_path)
    for text in ("one", "two", "three"):
        keep(history, text)
    History(tmp_path, cap=1).mark(1, RunMark("right"))
    assert [run.number for run in history.list()] == [3, 1]
