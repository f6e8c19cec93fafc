"""The command as a process of its own, with a local LLM that looks at the rents of two sites in a real SQLite file.

``conftest`` brings these fixtures.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from servers.openai_server import serve_threaded

QUERY = "SELECT name, rent FROM site ORDER BY rent"
PLAN = f"Plan: [Step 1: compare the rents]\nThought: Start there.\nAction: sql\nAction input: {QUERY}"
ANSWER = "Final answer: elm\nBecause: it costs 400 [o1.r1], oak 700 [o1.r2]"


@dataclass
class LocalLLM:
    """``prompts``: the last message of each call. ``replies``: what it says next; then plan and answer in turn."""

    url: str = ""
    prompts: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)

    def reply(self, body: dict[str, Any]) -> str:
        self.prompts.append("\n".join(message["content"] for message in body["messages"]))
        if self.replies:
            return self.replies.pop(0)
        return ANSWER if "o1.r1" in self.prompts[-1].partition("# So far")[2] else PLAN

    @property
    def name(self) -> str:
        return f"test-model@{self.url}"


Decisor: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def decisor(tmp_path: Path) -> Decisor:
    """Runs the command in the test's folder."""

    def run(*words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "decisor", *words], cwd=tmp_path, capture_output=True, text=True, timeout=100
        )
        assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    return run


@pytest.fixture
def local_llm() -> Iterator[LocalLLM]:
    llm = LocalLLM()
    with serve_threaded(llm.reply) as llm.url:
        yield llm


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    path = tmp_path / "sites.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE site (name TEXT, rent REAL)")
        database.executemany("INSERT INTO site VALUES (?, ?)", [("oak", 700.0), ("elm", 400.0)])
    return path
