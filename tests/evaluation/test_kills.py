"""Runs that are killed, stopped or run out of disk, and what the same command makes of them afterwards."""

import ast
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from decisor.lab.evaluation.store import open_store
from evaluation.small import model, run_here, run_in_child
from servers.openai_server import serve_threaded

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL


class Counting:
    """The model, its calls counted; each takes ``seconds``."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.calls = 0
        self.seconds = seconds
        self.lock = threading.Lock()

    def __call__(self, request: dict[str, Any]) -> str:
        with self.lock:
            self.calls += 1
        time.sleep(self.seconds)
        return model(request)


def child(*arguments: Any, **more: Any) -> int:
    """A copy of this process, with all its imports, that does nothing but the run; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the server's thread, which the copy has no use for
        process = os.fork()
    if not process:
        try:
            run_in_child(*arguments, **more)
            os._exit(0)
        finally:
            os._exit(9)
    return process


def ended(process: int) -> int:
    """The exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def booked(path: Path | str) -> int:
    """Bought replies in a store that nobody works on."""
    store = open_store(path)
    calls = store.spent().calls
    store.close()
    return calls


@pytest.mark.slow
def test_killed_before_any_commit_a_run_goes_on_to_the_same_table_and_buys_only_what_was_in_flight_again(
    tmp_path: Path,
) -> None:
    whole = Counting()
    with serve_threaded(whole) as url:
        table, once, again = run_here(url, tmp_path / "whole.db", many=2), whole.calls, []
        assert once == 8
        for position in range(1, 200):
            whole.calls, path = 0, tmp_path / f"{position}.db"
            if ended(child(url, path, position, more={"many": 2})) != KILLED:
                break
            assert run_here(url, path, many=2) == table
            assert booked(path) == once
            again.append(whole.calls - once)
    assert position > 14, "each claim, reply and outcome is a position, but for those that are kept together"
    assert min(again) >= 0 and max(again) <= 2 and sum(again) > 0


def test_three_processes_finish_each_case_of_one_store_once_though_two_are_killed(tmp_path: Path) -> None:
    whole = Counting()
    with serve_threaded(whole) as url:
        table = run_here(url, tmp_path / "whole.db", many=20)
        slow = Counting(0.002)
    with serve_threaded(slow) as url:
        path = tmp_path / "run.db"
        first = [child(url, path, kill_at, more={"many": 20}) for kill_at in (8, 12, 0)]
        assert [ended(process) for process in first] == [KILLED, KILLED, 0]
        assert run_here(url, path, many=20) == table
        assert slow.calls <= whole.calls + 3 * 2
    db = sqlite3.connect(path)
    kept = db.execute("SELECT count(*), count(outcome), count(DISTINCT case_id || technique) FROM cases")
    assert kept.fetchone() == (40, 40, 40)
    assert db.execute("SELECT count(*) FROM traces").fetchone() == (40,)
    assert db.execute("SELECT count(*) FROM cases WHERE fence > 1").fetchone()[0] <= 4
    db.close()
    assert not list(tmp_path.glob("run.db-owner-*"))


def test_on_a_full_disk_a_run_stops_with_what_to_do_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    whole = Counting()
    with serve_threaded(whole) as url:
        table = run_here(url, tmp_path / "whole.db", many=24)
        path, calls = tmp_path / "run.db", whole.calls
        assert ended(child(url, path, largest=110_000, more={"many": 24})) == 7
        assert "is the disk full? Make room and run the same command again" in path.with_suffix(".error").read_text()
        assert run_here(url, path, many=24) == table
        assert booked(path) == calls and whole.calls <= 2 * calls + 2


def test_no_clock_is_asked_who_owns_a_case_or_what_came_first() -> None:
    folder = ROOT / "src" / "decisor" / "lab" / "evaluation"
    for name in ("store", "store_file"):
        text = (folder / f"{name}.py").read_text()
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        assert not names & {"time", "datetime", "monotonic"}
        assert "import datetime" not in text and "from time " not in text and "CURRENT_" not in text


ONE: dict[str, Any] = {"many": 12, "techniques": ["iter_rag"]}


def command(url: str, store: Path, *more: str, **options: Any) -> subprocess.Popen[str]:
    words = ["eval", "-b", "small many=12", "-t", "iter_rag", "--llm", f"m@{url}", "--store", str(store), *more]
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", "DECISOR_PRICE": "1,2"}
    options = {"stdout": subprocess.PIPE, **options}
    words = [sys.executable, "-m", "evaluation.small", *words]
    return subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGINT], 130),
        ([signal.SIGTERM], 143),
        ([signal.SIGINT, signal.SIGINT], 130),
    ],
)
@pytest.mark.slow
def test_a_signal_ends_a_run_so_that_the_same_command_goes_on_to_the_same_table(
    signals: list[signal.Signals], code: int, tmp_path: Path
) -> None:
    """Once: calls under way are waited for, none is bought twice. Twice: at once, though calls hang."""
    llm = Counting()
    with serve_threaded(llm) as url:
        table, calls = run_here(url, tmp_path / "whole.db", **ONE), llm.calls
        llm.calls, llm.seconds = 0, 0.05 if len(signals) == 1 else 2.0
        run = command(url, tmp_path / "run.db", "--cases-at-once", "3", "--grace", "60")
        while llm.calls < 3 and run.poll() is None:
            time.sleep(0.01)
        assert run.stderr is not None
        run.send_signal(signals[0])
        assert "stopping" in run.stderr.readline()
        for one in signals[1:]:
            run.send_signal(one)
        _, told = run.communicate(timeout=60)
        assert run.returncode == code and "the same command goes on" in told
        llm.seconds = 0.0
        assert run_here(url, tmp_path / "run.db", **ONE) == table
    assert llm.calls == calls if len(signals) == 1 else llm.calls <= calls + 3


def test_output_that_cannot_be_written_is_one_line_and_the_store_is_whole(tmp_path: Path) -> None:
    with serve_threaded(model) as url, Path("/dev/full").open("w") as full:
        run = command(url, tmp_path / "run.db", stdout=full)
        _, told = run.communicate(timeout=60)
        assert run.returncode == 1
        assert "No space left" in told.splitlines()[-1] and "Traceback" not in told
    store = open_store(tmp_path / "run.db")
    assert len(store.outcomes()) == 12
    store.close()
