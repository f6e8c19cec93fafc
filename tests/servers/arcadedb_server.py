"""A real Bolt server for tests: ArcadeDB's, from the wheel arcadedb-embedded (its jars and its own Java)."""

from __future__ import annotations

import contextlib
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

START_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def arcadedb_server(folder: Path, database: str = "test", *more: str) -> Iterator[str]:
    """The URL of a fresh database, ``bolt://root:PASSWORD@127.0.0.1:PORT/DATABASE``; ``more`` are made beside it.

    The server's log is in the folder.
    """
    password, bolt_port = secrets.token_urlsafe(16), free_port()
    with (folder / "server.log").open("wb") as log:
        script = Path(__file__).with_name("arcadedb_process.py")
        command = [sys.executable, str(script), str(folder), str(free_port()), str(bolt_port), database, *more]
        server = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert server.stdin is not None and server.stdout is not None
        try:
            server.stdin.write(f"{password}\n")
            server.stdin.flush()
            _wait(server, bolt_port, folder / "server.log")
            yield f"bolt://root:{password}@127.0.0.1:{bolt_port}/{database}"
        finally:
            server.stdin.close()
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            server.stdout.close()


def _wait(server: subprocess.Popen[str], port: int, log: Path) -> None:
    assert server.stdout is not None
    for line in server.stdout:
        if line.strip() == "ready":
            break
    else:
        raise RuntimeError(f"ArcadeDB did not start:\n{log.read_text()[-2000:]}")
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"ArcadeDB's Bolt port did not open:\n{log.read_text()[-2000:]}")
