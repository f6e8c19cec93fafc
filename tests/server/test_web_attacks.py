"""The attacks of the shared list, byte by byte, against a real server."""

from __future__ import annotations

import gzip
import json
import re
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from data import read_security_rows
from decisor.server.settings import ServerSettings
from decisor.server.stream import MOST_STREAMS
from decisor.session.sources import build_sources
from server.serving import Served, planner, served, sources
from servers.openai_server import serve_threaded

PLANT = "plant-51c0ffee"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("attacks")
    (folder / ".env").write_text(PLANT)
    with serve_threaded(planner()) as url, served(ServerSettings(sources(folder), {"m": f"m@{url}"})) as place:
        yield place


def port_of(place: Served) -> int:
    return int(place.url.rpartition(":")[2])


def send(place: Served, raw: bytes) -> tuple[int, bytes]:
    """The status and everything that came; 0 where the connection was just closed."""
    with socket.create_connection(("127.0.0.1", port_of(place)), timeout=20) as connection:
        connection.sendall(raw)
        connection.settimeout(30)
        reply = b""
        try:
            while part := connection.recv(65536):
                reply += part
        except (TimeoutError, ConnectionResetError):
            pass
    match = re.match(rb"HTTP/1\.1 (\d{3})", reply)
    return int(match[1]) if match else 0, reply


def request(place: Served, attack: dict[str, Any]) -> bytes:
    port = str(port_of(place))

    def filled(text: str) -> str:
        return text.replace("{port}", port).replace("{other_port}", "9").replace("{symlink_to_outside}", "link")

    headers = {name: filled(value) for name, value in attack["headers"].items()}
    body: bytes = attack.get("body", "").encode()
    if "gzip bomb" in attack.get("body", ""):
        body = gzip.compress(b"0" * 50_000_000)
    if body and "Content-Length" not in headers and "Transfer-Encoding" not in headers:
        headers["Content-Length"] = str(len(body))
    path = filled(attack["path"]).replace(" ", "%20").replace("\r", "%0d").replace("\n", "%0a")
    lines = [f"{attack['method']} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def test_every_attack_is_answered_as_it_should_be(place: Served) -> None:
    attacks = [row for row in read_security_rows("web_attacks") if row["method"] != "VIEW" and row["id"] != "web-080"]
    assert len(attacks) > 30
    for attack in attacks:
        status, reply = send(place, request(place, attack))
        head = reply.partition(b"\r\n\r\n")[0].lower()
        allowed = {int(word) for word in re.findall(r"\b\d{3}\b", attack["expect"])}
        assert status in allowed or not allowed, (attack["id"], attack["why"], status)
        assert status < 500, attack["id"]
        assert PLANT.encode() not in reply, attack["id"]
        assert b"root:" not in reply, attack["id"]
        assert b"access-control-allow" not in head, attack["id"]
        assert b"set-cookie" not in head, attack["id"]
        assert not place.client.get("/api/runs").json()["runs"] or attack["class"] == "control", attack["id"]


def test_streams_are_bounded_live_and_closed_when_the_client_leaves(place: Served) -> None:
    with ExitStack() as stack:
        line = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port_of(place)}\r\n\r\n".encode()
        for _ in range(MOST_STREAMS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(place)), timeout=20))
            connection.sendall(line)
            assert connection.recv(12) == b"HTTP/1.1 200"
        refused = place.client.get("/api/events")
        assert refused.status_code == 429
        assert place.client.get("/api/runs").status_code == 200
    place.until(lambda: open_stream(place), lambda status: status == 200)


def open_stream(place: Served) -> int:
    with place.client.stream("GET", "/api/events") as response:
        return response.status_code


@pytest.mark.parametrize("headers", ["", "Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n", "Host:\r\n"])
def test_a_request_has_one_name_of_ours(place: Served, headers: str) -> None:
    text = headers.replace("{port}", str(port_of(place)))
    status, _ = send(place, f"GET /api/runs HTTP/1.1\r\n{text}Connection: close\r\n\r\n".encode())
    assert status in (400, 421)


def test_a_body_is_small_and_shallow(place: Served) -> None:
    large = place.client.post("/api/ask", json={"question": "a" * 2**21})
    assert large.status_code == 413
    deep = place.client.post("/api/ask", content=b"[" * 200_000, headers={"content-type": "application/json"})
    assert deep.status_code in (400, 422)
    wide = place.client.post(
        "/api/ask",
        content=b'{"question": "a", "limits": {"calls": 1e999}}',
        headers={"content-type": "application/json"},
    )
    assert wide.status_code == 422
    chunks = place.client.post(
        "/api/ask", content=iter([b"x" * 2**16] * 40), headers={"content-type": "application/json"}
    )
    assert chunks.status_code == 413


def test_every_response_has_the_headers_that_keep_others_out(place: Served) -> None:
    for path in ("/", "/api/runs", "/docs", "/openapi.json", "/nothing", "/api/nothing"):
        headers = place.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers


def test_a_page_of_another_site_reads_nothing(place: Served) -> None:
    for site in ("cross-site", "same-site"):
        assert place.client.get("/api/runs", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert place.client.get("/api/runs", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert place.client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link


def test_markup_in_a_question_an_answer_and_rows_stays_text(tmp_path: Path) -> None:
    scripts = [row["body"] for row in read_security_rows("web_attacks") if row["class"] == "xss"]
    markup = "\n".join(scripts)
    llm = planner("SELECT name, rent FROM site", f"Final answer: {scripts[0]}\nBecause: {' '.join(scripts)} [o1.r1]")
    with serve_threaded(llm) as url, served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"})) as place:
        run = place.ended(place.ask(markup)["id"])
        page = place.client.get(f"/api/runs/{run['id']}/page").text
        outside = re.sub(r"<style>.*?</style>|<script.*?</script>", "", page, flags=re.S)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in outside
        assert not re.search(r"<(img|iframe|math|noscript)\b|<[^>]*\s(on\w+=|href=.javascript)", outside)
        text = place.client.get(f"/api/runs/{run['id']}/markdown")
        assert text.headers["content-type"].startswith("text/markdown")
        # In Markdown a line is code, and stays text, where four blanks begin it.
        prose = "\n".join(line for line in text.text.splitlines() if not line.startswith("    "))
        assert not re.search(r"(?<!\\)<(script|img|iframe)|(?<!\\)\[x(?<!\\)\]\(", prose)
        assert place.client.get(f"/api/runs/{run['id']}").headers["content-type"] == "application/json"


def test_half_a_request_holds_nobody_else_up(place: Served) -> None:
    with socket.create_connection(("127.0.0.1", port_of(place)), timeout=20) as slow:
        slow.sendall(b"POST /api/ask HTTP/1.1\r\nHost: ")
        began = time.monotonic()
        assert place.client.get("/api/runs").status_code == 200
        assert time.monotonic() - began < 10


def test_what_stands_in_rows_is_data_and_nothing_else(tmp_path: Path) -> None:
    """Each text in a row, which an LLM obeys as far as it can: it asks for what the row asks for."""
    path = tmp_path / "notes.db"
    injections = read_security_rows("injection_rows")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE note (id TEXT, text TEXT)")
        connection.executemany("INSERT INTO note VALUES (:id, :text)", injections)
    before = path.read_bytes()
    orders = iter(["UPDATE note SET text = 'x'", "DELETE FROM note", "ATTACH 'other.db' AS o", "DROP TABLE note"])

    def obey(body: dict[str, Any]) -> str:
        if "o1.r1" not in str(body["messages"]):
            return "Plan: [Step 1: read]\nThought: Read.\nAction: sql\nAction input: SELECT id, text FROM note"
        order = next(orders, "")
        if order:
            return f"Re-plan: N\nThought: The row says so.\nAction: sql\nAction input: {order}"
        return f"Final answer: none\nBecause: {injections[0]['text']} [o1.r1]"

    with (
        serve_threaded(obey) as url,
        served(ServerSettings(build_sources(db=f"sqlite:///{path}"), {"m": f"m@{url}"})) as place,
    ):
        run = place.ended(place.ask("What do the notes say?")["id"])
        trace = [json.loads(line) for line in place.client.get(f"/api/runs/{run['id']}/trace").text.splitlines()[1:]]
        results = [one["data"]["observation"] for one in trace if one["event"] == "ActionResult"]
        assert [one["error"] for one in results] == [False, True, True, True, True]
        assert len(results[0]["records"]) == len(injections)
        page = place.client.get(f"/api/runs/{run['id']}/page").text
        assert not [letter for letter in "\x1b\u202e\u2066" if letter in page]
        assert str(path) not in str([one for one in trace if one["event"] == "LLMCall"])
    assert path.read_bytes() == before
    assert not (tmp_path / "other.db").exists()
