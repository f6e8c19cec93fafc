"""The body of a reply: bounded as it is sent and as it is unpacked."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from contextlib import suppress

import aiohttp

REFUSAL_BYTES = 2**20
REFUSAL_SECONDS = 2.0
LAST_SECONDS = 0.2
"""For the end of a stream, after its last event."""


class TooLarge(Exception):
    """The body is larger than allowed."""


class Unreadable(Exception):
    """The body's encoding cannot be undone."""


async def read_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """As it was sent. Raises TooLarge, before more than that are held."""
    if (response.content_length or 0) > most:
        raise TooLarge
    parts, size = [], 0
    while part := await response.content.readany():
        parts.append(part)
        size += len(part)
        if size > most:
            raise TooLarge
    return b"".join(parts)


async def pass_on(response: aiohttp.ClientResponse, take: Callable[[bytes], bool], most: int) -> None:
    """Each piece as it comes, until ``take`` says that this was the end. Raises TooLarge, and what ``take`` raises."""
    size = 0
    while part := await response.content.readany():
        size += len(part)
        if size > most:
            raise TooLarge
        if take(part):
            break
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(LAST_SECONDS):  # read to its end, a connection can be used again
            while await response.content.readany():
                pass


async def words_of_refusal(response: aiohttp.ClientResponse, encoding: str) -> bytes:
    """The body of a reply that is not 2xx; nothing where it cannot be read: the status counts, whatever came after."""
    try:
        async with asyncio.timeout(REFUSAL_SECONDS):
            return unpack(await read_body(response, REFUSAL_BYTES), encoding, REFUSAL_BYTES)
    except (TooLarge, Unreadable, TimeoutError, aiohttp.ClientError, OSError):
        return b""


def unpack(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """The body without its content encoding. Raises Unreadable, or TooLarge before more than that are made of it.

    >>> unpack(zlib.compress(b"hello"), "deflate", 5), unpack(b"hello", "Identity", 5)
    (b'hello', b'hello')
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity") or not body:
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Unreadable("a reply in an encoding that was not asked for")
    bare = encoding == "deflate" and body[0] & 0x0F != 8  # some send deflate without the head of zlib
    stream = zlib.decompressobj(wbits=-15 if bare else 47)
    try:
        data = stream.decompress(body, max_bytes + 1)
    except zlib.error:
        raise Unreadable("a reply that does not unpack") from None
    if len(data) > max_bytes:
        raise TooLarge
    if not stream.eof:
        raise Unreadable("half of a packed reply")
    return data
