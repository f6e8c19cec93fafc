"""Ctrl-C, as a terminal sends it: to the command and all that it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from decisor.documents.reader import ParserProcess
from local_llm import ANSWER, PLAN, QUERY, LocalLLM
from servers.openai_server import serve_threaded


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "decisor", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_a_query_under_way_lives_through_the_grace_of_an_evaluation(
    sites: Path, tmp_path: Path, local_llm: LocalLLM
) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000000) SELECT max(i) FROM n"
    (tmp_path / "mine.jsonl").write_text('{"question": "Which site?", "answer": "elm"}')
    local_llm.replies = [PLAN.replace(QUERY, endless), ANSWER]
    words = (
        "eval",
        "--questions",
        "mine.jsonl",
        "--db",
        "sites.db",
        "--llm",
        local_llm.name,
        "--grace",
        "60",
        "--json",
    )
    with start(tmp_path, *words) as process:
        while not local_llm.prompts:
            time.sleep(0.01)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=100)
    assert process.returncode == 130, errors
    assert '"state":"right"' in output.replace(" ", "")


def test_an_interrupt_while_a_file_is_read_leaves_no_thread_that_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    script = (
        "import threading, sys\nfrom pathlib import Path\nimport decisor.documents.reader as room\n"
        "class Interrupted(room.Timer):\n"
        "    def start(self):\n        super().start()\n        raise KeyboardInterrupt\n"
        "room.Timer = Interrupted\nroom.ParserProcess().read('.txt', Path(sys.argv[1]))\n"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.txt")], capture_output=True, timeout=50, check=False
    )
    assert b"KeyboardInterrupt" in done.stderr
    assert time.monotonic() - began < ParserProcess().seconds - 15


@pytest.mark.slow
def test_an_interrupted_ask_ends_with_130_and_without_a_traceback(sites: Path, tmp_path: Path) -> None:
    prompts: list[int] = []

    def slow(body: dict[str, object]) -> str:
        prompts.append(1)
        time.sleep(1.0)
        return PLAN

    words = ("ask", "Which?", "--db", "sites.db")
    with serve_threaded(slow) as url, start(tmp_path, *words, "--llm", f"m@{url}") as process:
        while not prompts:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
