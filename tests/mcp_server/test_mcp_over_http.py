"""Who may call ``decisor mcp --http``, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import httpx
import pytest

from mcp_server.clients import COMMAND, address, client, environment, text
from server.serving import sites
from servers.processes import children, end

BODY = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.mark.slow
async def test_a_foreign_name_a_foreign_page_and_a_missing_token_are_refused(tmp_path: Path) -> None:
    async with (
        address(tmp_path, "--db", f"sqlite:///{sites(tmp_path)}", "--token") as (url, token, _),
        httpx.AsyncClient(headers=ACCEPT, trust_env=False, timeout=60) as web,
    ):
        own = {"Authorization": f"Bearer {token}"}
        for status, headers in (
            (421, {**own, "Host": "evil.example"}),
            (403, {**own, "Origin": "https://evil.example"}),
            (401, {}),
            (401, {"Authorization": "Bearer wrong"}),
            (415, {**own, "Content-Type": "text/plain"}),
        ):
            reply = await web.post(url, json=BODY, headers=headers)
            assert reply.status_code == status, (headers, reply.text)
        assert (await web.post(url, json=BODY, headers={**own, "Host": "localhost"})).status_code == 421


@pytest.mark.slow
async def test_beyond_this_machine_there_is_a_token_and_with_it_the_tools(tmp_path: Path) -> None:
    async with client(tmp_path, "http", "--db", f"sqlite:///{sites(tmp_path)}", "--token") as one:
        assert "elm" in text(await one.call_tool("query", {"query": "SELECT name FROM site"}))
    start = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        "--http",
        "--port",
        "0",
        "--host",
        "0.0.0.0",
        "--demo",
        env=environment(tmp_path),
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    assert start.stderr is not None
    await start.stderr.readline()
    assert (await start.stderr.readline()).startswith(b"Token: ")
    start.terminate()
    await asyncio.wait_for(start.wait(), 60)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [(), ("--http", "--port", "0")])
async def test_a_sign_ends_it_and_its_workers(tmp_path: Path, sign: signal.Signals, words: tuple[str, ...]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        "--demo",
        *words,
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    if words:
        await process.stderr.readline()
    else:
        call = (
            '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
            '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
            '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
            '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"query","arguments":{"query":'
            '"SELECT 1"}}}\n'
        )
        process.stdin.write(call.encode())
        await process.stdout.readline()
        assert b"q1.r1" in await process.stdout.readline()
        assert children(process.pid)
    workers = children(process.pid)
    process.send_signal(sign)
    await asyncio.wait_for(process.wait(), 60)
    assert end(workers)


async def test_the_skill_is_printed(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND, "--skill", env=environment(tmp_path), cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert output.startswith(b"---\nname: decisor\n") and b"explain_run" in output
