"""tinyproxy itself, where it is installed (``tests/servers/databases.sh start`` installs it): one for each test.

with tinyproxy(tmp_path, "user:word") as proxy: ... http://user:word@{proxy.place} ...
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.sql_databases import lacking

SECONDS = 20.0


@dataclass(frozen=True)
class TinyProxy:
    """``place``: host and port."""

    place: str
    log: Path

    def requests(self) -> list[str]:
        """The first line of each request that came."""
        lines = self.log.read_text().splitlines()
        return [line.partition("): ")[2] for line in lines if "): " in line and " HTTP/" in line]


@contextmanager
def tinyproxy(folder: Path, user: str = "") -> Iterator[TinyProxy]:
    """``user``: the name and password that it asks for."""
    program = shutil.which("tinyproxy")
    if program is None:
        lacking("tinyproxy", FileNotFoundError("tinyproxy"))
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    log, settings = folder / "tinyproxy.log", folder / "tinyproxy.conf"
    lines = [f"Port {port}", "Listen 127.0.0.1", "Allow 127.0.0.1", f'LogFile "{log}"', "LogLevel Connect"]
    settings.write_text("\n".join([*lines, *([f"BasicAuth {user.replace(':', ' ')}"] if user else [])]) + "\n")
    with subprocess.Popen([str(program), "-d", "-c", str(settings)], stdout=subprocess.DEVNULL) as process:
        try:
            await_port(port, process)
            yield TinyProxy(f"127.0.0.1:{port}", log)
        finally:
            process.terminate()


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < ends:
        with closing(socket.socket()) as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"tinyproxy does not answer on port {port}.")
