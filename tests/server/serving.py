"""A real server in a thread, and a client of it; two sites, and an LLM that looks at their rents."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from decisor.history.store import History
from decisor.lab.evaluation_pages import router
from decisor.server.app import bind_socket, make_web_server
from decisor.server.settings import ServerSettings
from decisor.session.sources import Sources, build_sources

PLAN = "Plan: [Step 1: compare the rents]\nThought: Start there.\nAction: sql\nAction input: {query}"
QUERY = "SELECT name, rent FROM site ORDER BY rent"
ANSWER = "Final answer: elm\nBecause: it costs 400 [o1.r1], oak 700 [o1.r2]"
SOON = 30.0


def sites(folder: Path) -> Path:
    path = folder / "sites.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE site (name TEXT, rent REAL)")
        connection.executemany("INSERT INTO site VALUES (?, ?)", [("oak", 700.0), ("elm", 400.0)])
    return path


def planner(query: str = QUERY, answer: str = ANSWER) -> Callable[[dict[str, Any]], str]:
    """For ``serve_threaded``: queries once, then answers."""

    def reply(body: dict[str, Any]) -> str:
        text = str(body["messages"])
        return answer if "o1.r1" in text or "refused" in text else PLAN.format(query=query)

    return reply


@dataclass(frozen=True)
class Served:
    """``url``: where it answers."""

    url: str
    client: httpx.Client

    def ask(self, question: str = "Which site should we open?", **more: object) -> dict[str, Any]:
        body = {"question": question, "technique": "plan_rag", "settings": {"calling": "text"}, **more}
        response = self.client.post("/api/ask", json=body)
        assert response.status_code == 201, response.text
        run: dict[str, Any] = response.json()
        return run

    def run(self, id: str) -> dict[str, Any]:
        run: dict[str, Any] = self.client.get(f"/api/runs/{id}").json()
        return run

    def ended(self, id: str) -> dict[str, Any]:
        run: dict[str, Any] = self.until(lambda: self.run(id), lambda run: run["state"] not in ("waiting", "running"))
        return run

    def until(self, look: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
        end = time.monotonic() + SOON
        while not good(value := look()):
            assert time.monotonic() < end, value
            time.sleep(0.02)
        return value

    def events(self, path: str, headers: dict[str, str] | None = None, most: int = 10_000) -> list[tuple[str, Any]]:
        """Of a stream until it ends, or ``most`` of them: names with data."""
        events: list[tuple[str, Any]] = []
        name = ""
        with self.client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, response.read()
            for line in response.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    events.append((name, json.loads(line.removeprefix("data: "))))
                    if len(events) >= most:
                        break
        return events


@contextmanager
def served(serving: ServerSettings, history: History | None = None, port: int = 0) -> Iterator[Served]:
    """On a free port, until the block ends; its history is gone then, where none is named."""
    if history is None:
        with TemporaryDirectory() as folder, served(serving, History(Path(folder) / "history"), port) as place:
            yield place
        return
    listening = bind_socket(serving.host, port)
    port = listening.getsockname()[1]
    ready = threading.Event()
    server = make_web_server(replace(serving, port=port, history=history), ready.set, [router])
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(SOON)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SOON, trust_env=False) as client:
            yield Served(f"http://127.0.0.1:{port}", client)
    finally:
        server.should_exit = True
        thread.join(SOON)
        assert not thread.is_alive()


def sources(folder: Path, **more: Any) -> Sources:
    return build_sources(db=f"sqlite:///{sites(folder)}", **more)


def names(events: Sequence[tuple[str, Any]]) -> list[str]:
    return [name for name, _ in events]
