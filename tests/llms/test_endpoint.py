"""One endpoint: where it goes, what it never holds, and what it never shows."""

from __future__ import annotations

import asyncio
import gzip
import resource
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat

import pytest

from decisor.errors import LLMError, SetupError
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries
from servers.fault_plays import bombs, echoes_key, redirects, said
from servers.fault_server import ASK, KEY, faulty


async def test_a_gzip_bomb_is_not_unpacked() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with faulty(bombs) as server:
        llm = server.llm()
        with pytest.raises(LLMError, match="reading stopped"):
            await llm.complete(ASK)
        await llm.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KB; the server makes 20 MB of it


def plain_bytes() -> Iterator[bytes]:
    """Never ends."""
    yield b'{"choices": [{"message": {"content": "'
    yield from repeat(b"x" * 65_536)


def packed_nothing() -> Iterator[bytes]:
    """gzip that never ends and unpacks to almost nothing: stored blocks of no bytes. A cap on what is unpacked alone
    would let all of it in."""
    yield gzip.compress(b"")[:10]
    yield from repeat(b"\x00\x00\x00\xff\xff" * 13_000)


@pytest.mark.parametrize("framing", ["chunked", "until the end", "a length that is true"])
@pytest.mark.parametrize("parts", [plain_bytes, packed_nothing])
async def test_reading_stops_at_the_limit_of_bytes_on_the_wire(
    parts: Callable[[], Iterator[bytes]], framing: str
) -> None:
    """The server would send 400 MB; the limit is 1 MB. What lies in the sockets' buffers beyond it nobody can help."""
    sent, whole, limit = [0], 400 * 2**20, 2**20
    head = ["HTTP/1.1 200 OK", "Content-Type: application/json"]
    head += ["Content-Encoding: gzip"] if parts is packed_nothing else []
    if framing == "chunked":
        head.append("Transfer-Encoding: chunked")
    elif framing != "until the end":
        head.append(f"Content-Length: {whole}")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
        with suppress(OSError):
            for part in parts():
                writer.write(b"%x\r\n%b\r\n" % (len(part), part) if framing == "chunked" else part)
                sent[0] += len(part)
                await writer.drain()
                if sent[0] >= whole:
                    break
        writer.close()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        llm = OpenAICompatible("m", f"http://127.0.0.1:{port}/v1", max_bytes=limit, retries=Retries(attempts=1))
        with pytest.raises(LLMError, match="reading stopped"):
            await llm.complete(ASK)
        await llm.close()
    assert sent[0] < limit + 16 * 2**20, "the connection was closed there, and the server stopped sending"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # KB


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_host_is_not_followed(code: int) -> None:
    async with faulty() as canary, faulty(redirects(f"{canary.origin}/v1/chat/completions", code)) as server:
        llm = server.llm()
        with pytest.raises(LLMError, match="redirect") as caught:
            await llm.complete(ASK)
        await llm.close()
    assert caught.value.permanent
    assert canary.asked == 0


async def test_an_echoed_key_is_in_no_error_and_no_traceback() -> None:
    async with faulty(echoes_key) as server:
        llm = server.llm()
        with pytest.raises(LLMError) as caught:
            await llm.complete(ASK)
        await llm.close()
    assert "Incorrect API key" in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert KEY not in f"{llm!r} {llm.endpoint!r} {vars(llm.endpoint)}"


async def test_a_key_echoed_in_a_reply_is_hidden_there_too() -> None:
    async with faulty(said(f"Your key is {KEY}.")) as server:
        llm = server.llm()
        assert (await llm.complete(ASK)).text == "Your key is [hidden]."
        await llm.close()


async def test_a_server_that_is_not_there_is_named() -> None:
    llm = OpenAICompatible("m", "http://127.0.0.1:9/v1", retries=Retries(attempts=2, first_seconds=0.01))
    with pytest.raises(LLMError, match=r"127\.0\.0\.1:9 cannot be reached") as caught:
        await llm.complete(ASK)
    await llm.close()
    assert caught.value.kind == "connection"


async def test_a_server_that_was_never_there_is_told_after_three_attempts() -> None:
    llm = OpenAICompatible("m", "http://127.0.0.1:9/v1", retries=Retries(attempts=6, first_seconds=0.01))
    with pytest.raises(LLMError, match=r"Gave up after 3 attempts\. Is it started"):
        await llm.complete(ASK)
    await llm.close()


async def test_a_server_that_was_there_may_take_all_attempts_to_come_back() -> None:
    async with faulty() as server:
        llm = server.llm(retries=Retries(attempts=6, first_seconds=0.01))
        await llm.complete(ASK)
    with pytest.raises(LLMError, match="Gave up after 6 attempts"):
        await llm.complete(ASK)
    await llm.close()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/v1",
        "localhost",
        f"https://user:{KEY}@example.com/v1",
        "",
        "http://h:99999/v1",
        "http://[::1/v1",
        "http://h:x/v1",
        "http://h:0",
        "http://a b/v1",
    ],
)
def test_an_address_that_is_none_is_the_persons_mistake(url: str) -> None:
    with pytest.raises(SetupError) as caught:
        OpenAICompatible("m", url)
    assert KEY not in str(caught.value)


def test_a_key_with_a_line_break_is_the_persons_mistake() -> None:
    with pytest.raises(SetupError, match="copied whole"):
        OpenAICompatible("m", "http://localhost/v1", "abc\r\ndef: x")
