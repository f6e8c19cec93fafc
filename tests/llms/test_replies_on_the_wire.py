"""The bytes of a reply, however they are cut, and bytes that are none: sent by a real server to the public client."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import Iterable

import pytest

from decisor.errors import LLMError
from decisor.system.tasks import map_concurrently
from servers.fault_server import ASK
from servers.wire_server import BODY, GOOD, LENGTH, OK, OTHER_BODY, Wire, wire, wire_server

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n%b\r\n%x;x=y\r\n%b\r\n0\r\n\r\n" % (
    BODY[:5],
    len(BODY) - 5,
    BODY[5:],
)
WHOLE = {
    "length": GOOD,
    "chunked": CHUNKED,
    "trailed": CHUNKED[:-2] + b"X-Sum: 1\r\n\r\n",
    "hinted": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + GOOD,
}
OPEN = OK + b"\r\n" + BODY


async def reply_to(*script: Wire, attempts: int = 1, max_bytes: int = 2**20) -> str:
    """The text, or how it failed."""
    async with wire_server(*script) as server:
        llm = server.llm(attempts=attempts, max_bytes=max_bytes)
        try:
            return (await llm.complete(ASK)).text
        except LLMError as error:
            return f"{error.kind} {error}"
        finally:
            await llm.close()


async def replies_to(wires: Iterable[Wire]) -> list[str]:
    return list(await map_concurrently(reply_to, wires, at_once=40))


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
async def test_every_cut_gives_the_same_reply(name: str) -> None:
    data = WHOLE[name]
    cuts = [wire(data[:at], data[at:]) for at in range(1, len(data))]
    assert set(await replies_to([*cuts, wire(*(bytes([byte]) for byte in data))])) == {"Lyon"}


async def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    assert await reply_to(wire(OPEN[:-2], OPEN[-2:], end="close")) == "Lyon"


@pytest.mark.parametrize("name", [*WHOLE, "open"])
async def test_a_reply_that_is_cut_off_is_never_taken_for_one_and_is_asked_for_again(name: str) -> None:
    data = WHOLE.get(name, OPEN)
    last = data.rindex(b"}") if name == "open" else len(data)
    results = await replies_to(wire(data[:at], end="close") for at in range(last))
    assert {result.split()[0] for result in results} <= {"connection", "protocol"}
    assert await reply_to(wire(data[: last // 2], end="reset"), attempts=2) == "Lyon"


@pytest.mark.parametrize(
    ("head", "is_kept"),
    [
        (OK, True),
        (b"HTTP/1.1 200\r\nConnection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
    ],
)
async def test_which_connection_is_used_again(head: bytes, is_kept: bool) -> None:
    async with wire_server(wire(head + LENGTH + b"\r\n" + BODY)) as server:
        llm = server.llm()
        assert [(await llm.complete(ASK)).text for _ in range(2)] == ["Lyon"] * 2
        await llm.close()
    assert (len(set(server.ports)) == 1) is is_kept


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("late", [True, False])
async def test_a_reply_that_nobody_asked_for_is_not_the_reply_to_the_next_question(name: str, late: bool) -> None:
    unasked = OK + LENGTH + b"\r\n" + OTHER_BODY
    script = wire(WHOLE[name], late=unasked) if late else wire(WHOLE[name] + unasked, end="close")
    async with wire_server(script) as server:
        llm = server.llm(attempts=2)
        assert (await llm.complete(ASK)).text == "Lyon"
        if late:
            await asyncio.wait_for(server.sent_late.wait(), 60)
        assert (await llm.complete(ASK)).text == "Lyon"
        await llm.close()
    assert len(set(server.ports)) == 2


def encoded(encoding: bytes, data: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (status, encoding, len(data), data)


def bare_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


ODD = {
    "lines that end in a line feed alone": GOOD.replace(b"\r\n", b"\n"),
    "a header folded over two lines": OK + b"X-A: a\r\n b\r\n" + LENGTH + b"\r\n" + BODY,
    "an older version": GOOD.replace(b"1.1", b"1.0"),
    "no reason": GOOD.replace(b" OK", b""),
    "a reason in Latin-1": GOOD.replace(b"OK", b"\xe9\xff"),
    "a header in Latin-1": OK + b"X-A: \xe9\xff\r\n" + LENGTH + b"\r\n" + BODY,
    "a long header": OK + b"X-A: " + b"y" * 20_000 + b"\r\n" + LENGTH + b"\r\n" + BODY,
    "a cookie that is none": OK + b"Set-Cookie: a\xffb=c;;=\r\n" + LENGTH + b"\r\n" + BODY,
    "gzip": encoded(b"gzip", gzip.compress(BODY)),
    "gzip by its older name": encoded(b"X-GZip", gzip.compress(BODY)),
    "deflate": encoded(b"deflate", zlib.compress(BODY)),
    "deflate without a head": encoded(b"deflate", bare_deflate(BODY)),
    "identity": encoded(b"identity", BODY),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_reply_is_a_reply(name: str) -> None:
    assert await reply_to(wire(ODD[name])) == "Lyon"


BROKEN = {
    "a page": b"<html>",
    "another version": b"HTTP/2 200 OK\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "a status below all": b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
    "a status above all": b"HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "a line that is no header": OK + b"no header\r\n" + LENGTH + b"\r\n" + BODY,
    "a zero byte in a header": OK + b"X-A: a\0b\r\n" + LENGTH + b"\r\n" + BODY,
    "a negative length": OK + b"Content-Length: -1\r\n\r\n",
    "a length that no number holds": OK + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + BODY,
    "two lengths that are equal": OK + LENGTH + LENGTH + b"\r\n" + BODY,
    "two lengths in one line": OK + LENGTH.replace(b"\r\n", b", %d\r\n" % len(BODY)) + b"\r\n" + BODY,
    "two lengths that differ": OK + b"Content-Length: 3\r\n" + LENGTH + b"\r\n" + BODY,
    "a length and chunks": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1),
    "a chunk without a size": OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
    "a chunk longer than it says": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
    "a size of a chunk without end": OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 5000,
    "trailers without end": OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000,
    "headers without end": OK + b"X: y\r\n" * 20_000,
    "br": encoded(b"br", b"\x0b\x02\x80"),
    "zstd": encoded(b"zstd", b"(\xb5/\xfd"),
    "an encoding that nobody knows": encoded(b"rot13", BODY),
    "gzip twice": encoded(b"gzip, gzip", gzip.compress(gzip.compress(BODY))),
    "half of gzip": encoded(b"gzip", gzip.compress(BODY)[:-9]),
    "gzip that is none": encoded(b"gzip", BODY),
    "deflate that is none": encoded(b"deflate", b"\xff\xff"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_no_reply_is_asked_for_again_and_is_never_a_status_of_the_endpoint(name: str) -> None:
    async with wire_server(wire(BROKEN[name]), wire(BROKEN[name])) as server:
        once, twice = server.llm(attempts=1), server.llm(attempts=2)
        with pytest.raises(LLMError) as caught:
            await once.complete(ASK)
        assert (await twice.complete(ASK)).text == "Lyon"
        await once.close()
        await twice.close()
    assert caught.value.kind in ("connection", "protocol") and not caught.value.permanent
    assert " 400" not in str(caught.value)
    assert len(server.ports) == 3


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (encoded(b"br", b"\x0b\x02\x80", b"401 Unauthorized"), "auth"),
        (encoded(b"gzip", b"no gzip", b"401 Unauthorized"), "auth"),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 999\r\n\r\n{", "auth"),
        (b"HTTP/1.1 402 Payment Required\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 2**21, "quota"),
        (b"HTTP/1.1 503 Unavailable\r\nContent-Length: 999\r\n\r\n{", "server"),
    ],
)
async def test_a_refusal_is_one_by_its_status_whatever_becomes_of_its_words(refusal: bytes, kind: str) -> None:
    assert (await reply_to(wire(refusal, end="close"))).startswith(f"{kind} ")


@pytest.mark.slow
async def test_the_words_of_a_refusal_are_not_waited_for_long() -> None:
    assert (await reply_to(wire(b"HTTP/1.1 401 No\r\nContent-Length: 999\r\n\r\n{"))).startswith("auth ")


@pytest.mark.parametrize("data", [GOOD, CHUNKED, OPEN, encoded(b"gzip", gzip.compress(BODY * 9))])
async def test_reading_stops_at_the_limit(data: bytes) -> None:
    assert (await reply_to(wire(data, end="close"), max_bytes=40)).startswith("size ")


async def test_no_bytes_do_anything_else() -> None:
    """What a server may send by chance: spoiled replies. Each gives the text that it holds, or an LLMError."""
    random_ = random.Random(7)

    def spoiled() -> Wire:
        data = bytearray(random_.choice([*WHOLE.values(), OPEN, *ODD.values()])[:400])
        for _ in range(random_.randint(1, 6)):
            at = random_.randrange(len(data))
            match random_.randrange(3):
                case 0:
                    data[at] = random_.randrange(256)
                case 1:
                    del data[at : at + random_.randrange(9)]
                case _:
                    data[at:at] = random_.choice([b"\r\n", b"\n", b"\0", b"0", b"9" * 20, b"HTTP/1.1 ", b"\xff"])
            data = data or bytearray(b"\n")
        at = random_.randrange(len(data))
        return wire(bytes(data[:at]), bytes(data[at:]), end="close")

    for result in await replies_to(spoiled() for _ in range(300)):
        assert (
            result.partition(" ")[0]
            in ("connection", "protocol", "request", "server", "size", "auth", "rate", "context", "redirect", "quota")
            or len(result) < 60
        )
