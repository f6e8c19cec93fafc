"""Connections that never become a request keep nobody out: plain sockets against a server with few files."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from decisor.server.connections import HEAD_SECONDS
from server.serving import sites

ROOT = Path(__file__).parent.parent.parent
HALF = b"GET /api/choices HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
FILES = "1024"
KINDS = {"serve": ("serve", "--no-browser"), "mcp": ("mcp", "--http")}


@contextmanager
def process(folder: Path, kind: str = "serve") -> Iterator[tuple[str, int]]:
    """Where it listens; it may have as many files as a shell usually allows."""
    words = [sys.executable, "-m", "decisor", *KINDS[kind], "--port", "0", "--db", f"sqlite:///{sites(folder)}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)}
    with subprocess.Popen(
        ["sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
    ) as one:
        assert one.stdout is not None
        match = None
        while match is None and (line := one.stdout.readline()):
            match = re.search(r"http://([\d.]+):(\d+)", line)
        assert match is not None
        try:
            yield match[1], int(match[2])
        finally:
            one.kill()


def half_sent(stack: ExitStack, address: tuple[str, int], count: int, text: bytes = HALF) -> list[socket.socket]:
    sockets = []
    for _ in range(count):
        one = stack.enter_context(socket.create_connection(address, timeout=20))
        one.sendall(text)
        sockets.append(one)
    return sockets


def is_closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        while one.recv(65_536):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_twelve_hundred_half_sent_heads_keep_nobody_out(tmp_path: Path, kind: str) -> None:
    with process(tmp_path, kind) as address, ExitStack() as stack:
        half_sent(stack, address, 1_200)
        began = time.monotonic()
        reply = httpx.get(f"http://{address[0]}:{address[1]}/api/choices", timeout=5, trust_env=False)
        assert reply.status_code == (200 if kind == "serve" else 404), reply.text
        assert time.monotonic() - began < 5


@pytest.mark.slow
def test_a_head_that_comes_byte_by_byte_is_ended_at_its_deadline(tmp_path: Path) -> None:
    with process(tmp_path) as address, ExitStack() as stack:
        (silent,) = half_sent(stack, address, 1, b"")
        (half,) = half_sent(stack, address, 1)
        (again,) = half_sent(
            stack, address, 1, f"GET /api/choices HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n\r\n".encode()
        )
        again.recv(65_536)
        again.sendall(HALF)  # on a connection that was answered before
        began = time.monotonic()
        while time.monotonic() - began < HEAD_SECONDS + 5 and not (is_closed(half) and is_closed(again)):
            for one in (half, again):
                one.setblocking(True)
                with suppress(OSError):
                    one.sendall(b"x")
            time.sleep(0.3)
        assert is_closed(half) and is_closed(again) and is_closed(silent)
        assert time.monotonic() - began > HEAD_SECONDS - 2


@pytest.mark.slow
def test_a_request_that_is_answered_is_not_closed_for_others(tmp_path: Path) -> None:
    with process(tmp_path) as address, ExitStack() as stack:
        body = b'{"question": "Which?"}'
        head = (
            f"POST /api/ask HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        (busy,) = half_sent(stack, address, 1, head)
        time.sleep(0.3)
        half_sent(stack, address, 800)
        busy.sendall(body)
        assert busy.recv(65_536).startswith(b"HTTP/1.1 ")
