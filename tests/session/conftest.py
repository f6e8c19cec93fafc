"""Two sites in a real SQLite file, and an LLM that looks at the rents."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from decisor.llms.scripted import ScriptedLLM
from decisor.types import Message

PLAN = "Plan: [Step 1: compare the rents]\nThought: Start there.\nAction: {tool}\nAction input: {query}"
QUERY = "SELECT name, rent FROM site ORDER BY rent"
ANSWER = "Final answer: elm\nBecause: it costs 400 [o1.r1], oak 700 [o1.r2]"


@pytest.fixture(autouse=True)
def no_llm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DECISOR_LLM", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DECISOR_OLLAMA_PORT", "0")
    monkeypatch.setenv("DECISOR_LLAMACPP_PORT", "0")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    return database(tmp_path / "sites.db", [("oak", 700.0), ("elm", 400.0)])


def database(path: Path, rows: Sequence[tuple[str, float]]) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE site (name TEXT, rent REAL)")
        connection.executemany("INSERT INTO site VALUES (?, ?)", rows)
    return path


def planner(tool: str = "sql", query: str = QUERY, answer: str = ANSWER) -> ScriptedLLM:
    """Queries once, then answers; for any number of runs at once."""

    def reply(messages: Sequence[Message]) -> str:
        return answer if "o1.r1" in messages[-1].content else PLAN.format(tool=tool, query=query)

    return ScriptedLLM(reply)


Planner = Callable[..., ScriptedLLM]
