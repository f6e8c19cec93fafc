"""``decisor mcp`` as a process of its own, and the SDK's client of it, over either transport."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

ROOT = Path(__file__).parent.parent.parent
Transport = Literal["stdio", "http"]
COMMAND = ("-m", "decisor", "mcp")


def environment(folder: Path) -> dict[str, str]:
    own = {name: str(folder / name.lower()) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "GLIBC_TUNABLES": tunables, **own}


@asynccontextmanager
async def address(folder: Path, *words: str) -> AsyncIterator[tuple[str, str, asyncio.subprocess.Process]]:
    """Of one that serves HTTP: where, its token, and the process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        "--http",
        "--port",
        "0",
        *words,
        env=environment(folder),
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        match = re.search(rb"http://\S+", await process.stderr.readline())
        assert match is not None
        token = (await process.stderr.readline()).decode().split()[-1] if "--token" in words else ""
        yield match[0].decode(), token, process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 60)


@asynccontextmanager
async def client(folder: Path, transport: Transport, *words: str, **options: Any) -> AsyncIterator[Client]:
    """Connected until the block ends."""
    if transport == "stdio":
        start = StdioServerParameters(
            command=sys.executable, args=[*COMMAND, *words], env=environment(folder), cwd=folder
        )
        async with Client(start, **options) as one:
            yield one
        return
    async with (
        address(folder, *words) as (url, token, _),
        httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {}, trust_env=False, timeout=60
        ) as web,
        Client(streamable_http_client(url, http_client=web), **options) as one,
    ):
        yield one


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
