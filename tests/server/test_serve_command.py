"""``decisor serve`` as a process: what it prints, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from server.serving import planner, sites
from servers.openai_server import serve_threaded
from servers.processes import children, end

ROOT = Path(__file__).parent.parent.parent
LONGEST = 60.0
"""Seconds, on a busy machine; the reply that is waited for takes twice as long."""


@contextmanager
def process(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it prints."""
    command = [sys.executable, "-m", "decisor", "serve", "--port", "0", "--no-browser", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder) as one:
        assert one.stdout is not None
        match = re.search(r"http://\S+", one.stdout.readline())
        assert match is not None
        try:
            yield one, match[0]
        finally:
            one.kill()


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_sign_ends_runs_streams_and_workers_at_once(tmp_path: Path, sign: signal.Signals) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def reply(body: object) -> str:
        if "o1.r1" in str(body):
            asked.set()
            go_on.wait(2 * LONGEST)
        return planner()({"messages": body})

    folder = tmp_path / "folder"
    folder.mkdir()
    words = ("--db", f"sqlite:///{sites(tmp_path)}", "--llm")
    with serve_threaded(reply) as url, process(folder, *words, f"m@{url}") as (one, address):
        with httpx.Client(base_url=address, timeout=LONGEST, trust_env=False) as client:
            body = {"question": "Which?", "technique": "plan_rag", "settings": {"calling": "text"}}
            run = client.post("/api/ask", json=body).json()
            with client.stream("GET", f"/api/runs/{run['id']}/events") as stream:
                lines = stream.iter_lines()
                next(lines)
                assert asked.wait(LONGEST)
                workers = children(one.pid)
                assert workers
                began = time.monotonic()
                one.send_signal(sign)
                assert "stopped" in "".join(lines)
        assert one.wait(LONGEST) == 0
        assert time.monotonic() - began < LONGEST
        go_on.set()
        assert end(workers)
        assert not list(folder.iterdir())


def test_an_address_beyond_this_machine_gets_a_token(tmp_path: Path) -> None:
    with process(tmp_path, "--db", f"sqlite:///{sites(tmp_path)}", "--host", "0.0.0.0") as (_, address):
        token = address.partition("#")[2]
        assert len(token) > 40
        port = re.findall(r":(\d+)/", address)[0]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LONGEST, trust_env=False) as client:
            assert client.get("/api/runs").status_code == 401
            assert client.get("/api/runs", headers={"authorization": f"Bearer {token}"}).status_code == 200


def decisor(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "decisor", "serve", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.slow
def test_a_new_user_gets_a_token_that_is_nowhere_else() -> None:
    text = decisor("--new-user", "ann").stdout
    assert re.search(r'\[ann\]\ntoken = "sha256:[0-9a-f]{64}"', text)
    assert decisor("--new-user", "a b").returncode == 2


@pytest.mark.slow
def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text("")
    for words, complaint in (
        (("--users", str(tmp_path / "users.toml")), "names no user"),
        (("--evaluation", "nothing.db"), "There is no run store"),
        (("--host", "203.0.113.9", "--port", "0"), "Cannot listen"),
    ):
        done = decisor(*words)
        assert (done.returncode, complaint in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) == 1
