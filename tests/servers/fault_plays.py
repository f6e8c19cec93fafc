"""How each fault is committed: functions from a request to what is sent, or not sent, back."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import zlib
from email.utils import formatdate
from functools import cache
from typing import Any

from aiohttp import web

from servers.fault_server import Play
from servers.openai_server import completion

HTML = b"<!doctype html><html><title>Welcome</title></html>"
GZIP = {"Content-Encoding": "gzip", "Content-Type": "application/json"}


def status(number: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Play:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": message, **error}}, status=number, headers=headers)

    return answer


def body(data: Any, code: int = 200, kind: str = "application/json", headers: dict[str, str] | None = None) -> Play:
    async def answer(request: web.Request) -> web.StreamResponse:
        if isinstance(data, bytes):
            return web.Response(body=data, status=code, content_type=kind, headers=headers)
        return web.json_response(data, status=code)

    return answer


def said(content: Any, finish: str | None = "stop", usage: Any = None, **message: Any) -> Play:
    """A well-formed completion with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return body({"choices": [choice], **({"usage": usage} if usage else {})})


def wait_until(seconds: float, ahead: float) -> Play:
    """429 with Retry-After as a date, from a server whose clock runs ``ahead``."""

    async def answer(request: web.Request) -> web.StreamResponse:
        now = time.time() + ahead
        return web.Response(
            status=429,
            headers={"Date": formatdate(now, usegmt=True), "Retry-After": formatdate(now + seconds, usegmt=True)},
        )

    return answer


def breaks_off(start: bytes, headers: dict[str, str], abort: bool = False) -> Play:
    """The head and some of the body, then the connection ends: closed, or reset."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(start)
        await asyncio.sleep(0.01)
        if request.transport is not None:  # else the client was faster
            request.transport.abort() if abort else request.transport.close()
        return response

    return answer


def raw(data: bytes) -> Play:
    """These bytes instead of a reply of HTTP, then the end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(data)
        await asyncio.sleep(0.02)
        if request.transport is not None:
            request.transport.close()
        return web.Response()

    return answer


def streams(*events: str) -> Play:
    """Server-sent events that nobody asked for."""
    return body("".join(f"data: {event}\n\n" for event in events).encode(), kind="text/event-stream")


def redirects(to: str, code: int = 307) -> Play:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=code, headers={"Location": to})

    return answer


async def redirects_to_itself(request: web.Request) -> web.StreamResponse:
    return web.Response(status=308, headers={"Location": str(request.url)})


async def drips(request: web.Request) -> web.StreamResponse:
    """A blank each 50 ms: no read ever waits long."""
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(200):
        await response.write(b" ")
        await asyncio.sleep(0.05)
    return response


async def drips_headers(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(200):
        request.transport.write(f"X-{number}: x\r\n".encode())
        await asyncio.sleep(0.05)
    return web.Response()


async def hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(10)
    return web.Response()


async def stalls(request: web.Request) -> web.StreamResponse:
    """The head and half of the reply, then silence."""
    whole = json.dumps(completion(await request.json(), "Lyon", "m")).encode()
    response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    await asyncio.sleep(10)
    return response


async def resets(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@cache
def bomb() -> bytes:
    """20 MB of blanks in 20 KB."""
    return gzip.compress(b" " * 20_000_000)


async def bombs(request: web.Request) -> web.StreamResponse:
    """400 MB of blanks in 400 KB, in many gzip members."""
    return web.Response(body=bomb() * 20, headers=GZIP)


async def one_bomb(request: web.Request) -> web.StreamResponse:
    return web.Response(body=bomb(), headers=GZIP)


def squeezed(encoding: str, spoil: bool = False, bare: bool = False) -> Play:
    """A good reply, compressed though that was not asked for; ``spoil``: and damaged; ``bare``: without zlib's head."""

    async def answer(request: web.Request) -> web.StreamResponse:
        whole = json.dumps(completion(await request.json(), "Lyon", "m")).encode()
        data = gzip.compress(whole) if encoding == "gzip" else zlib.compress(whole)
        data = data[:20] + b"\x00\xff" * 10 if spoil else data[2:-4] if bare else data
        return web.Response(body=data, headers={**GZIP, "Content-Encoding": encoding})

    return answer


async def good_late(request: web.Request) -> web.StreamResponse:
    """A good reply in small pieces, within any deadline."""
    whole = json.dumps(completion(await request.json(), "Lyon", "m")).encode()
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    for at in range(0, len(whole), 100):
        await response.write(whole[at : at + 100])
        await asyncio.sleep(0.005)
    return response


async def echoes_key(request: web.Request) -> web.StreamResponse:
    """As some providers do: the key is in the error."""
    message = f"Incorrect API key provided: {request.headers['Authorization']}"
    return web.json_response({"error": {"message": message, "code": "invalid_api_key"}}, status=401)
