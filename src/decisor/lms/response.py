"""One HTTP/1.1 response as its bytes come in (RFC 9112), for a client that asks for whole replies.

Strict where a mistake could let one reply pass for another: a length that is no number, two lengths that differ, or a
coding that was not asked for is no response.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: .*)?")
NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?")
MAX_HEAD = 2**16
MAX_LINE = 2**12


class Broken(Exception):
    """This is no response, or not a whole one."""


class Unreadable(Exception):
    """It is whole, but its coding cannot be undone."""


class TooLarge(Exception):
    """The body is larger than allowed."""


@dataclass(slots=True)
class Response:
    """``headers`` by names in lower case; ``body`` as it was sent, at most ``max_bytes``. ``tunnel``: it answers
    CONNECT. ``whole``: nothing is missing. ``keeps``: the connection may carry another request after it."""

    max_bytes: int
    tunnel: bool = False
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    whole: bool = False
    keeps: bool = False
    form: Literal["head", "length", "chunked", "trailers", "rest"] = "head"
    left: int = 0
    ahead: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        """Raises Broken or TooLarge."""
        if self.whole:
            self.keeps = False  # more than was asked for
            return
        match self.form:
            case "head":
                self._head(data)
            case "length":
                self._take(data[: self.left])
                self.left -= len(data)
                self.whole, self.keeps = self.left <= 0, self.keeps and self.left >= 0
            case "rest":
                self._take(data)
            case _:
                self.ahead += data
                self._chunks()

    def end(self) -> None:
        """The connection is closed. Raises Broken where that cuts the response off."""
        if self.form == "rest":
            self.whole = True
        elif not self.whole:
            raise Broken("the connection ended before the reply did" if self.status else "no reply came")

    def _take(self, data: bytes | bytearray) -> None:
        if len(self.body) + len(data) > self.max_bytes:
            raise TooLarge
        self.body += data

    def _head(self, data: bytes) -> None:
        self.ahead += data
        while self.form == "head" and not self.whole:
            at = self.ahead.find(b"\r\n\r\n")
            if (at if at >= 0 else len(self.ahead)) > MAX_HEAD:
                raise Broken("endless headers")
            if at < 0:
                if not self.ahead.startswith(b"HTTP/"[: len(self.ahead)]):
                    raise Broken("no HTTP")
                return
            lines = bytes(self.ahead[:at]).split(b"\r\n")
            del self.ahead[: at + 4]
            found = STATUS.fullmatch(lines[0])
            if found is None:
                raise Broken("no HTTP/1.1")
            self.status = int(found[2])
            if self.status == 101:
                raise Broken("another protocol")
            if self.status >= 200:  # else there is another to come
                self.headers = headers_of(lines[1:])
                self._begin(found[1] == b"1")

    def _begin(self, newer: bool) -> None:
        """What the body will look like."""
        said = self.headers.get("connection", "").lower()
        self.keeps = "close" not in said and (newer or "keep-alive" in said)
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        data, self.ahead = self.ahead, bytearray()
        if self.status in (204, 304) or (self.tunnel and self.status < 300):
            self.whole, self.keeps = True, self.keeps and not data
        elif coding is not None:
            if coding.lower() != "chunked":
                raise Broken("a transfer coding that was not asked for")
            self.form, self.keeps = "chunked", self.keeps and length is None
            self.feed(bytes(data))
        elif length is not None:
            if not (length.isascii() and length.isdigit()):
                raise Broken("a length that is none")
            self.form, self.left = "length", int(length[:18])
            if self.left > self.max_bytes:
                raise TooLarge
            self.feed(bytes(data))
        else:
            self.form, self.keeps = "rest", False
            self.feed(bytes(data))

    def _chunks(self) -> None:
        ahead = self.ahead
        while self.form == "chunked":
            at = ahead.find(b"\r\n", 0, MAX_LINE)
            if at < 0:
                if len(ahead) >= MAX_LINE:
                    raise Broken("a chunk without a size")
                return
            size = SIZE.fullmatch(ahead, 0, at)
            if size is None:
                raise Broken("a chunk without a size")
            count = int(size[1], 16)
            if len(self.body) + count > self.max_bytes:
                raise TooLarge
            if count and len(ahead) < at + 2 + count + 2:
                return
            if count and ahead[at + 2 + count : at + 4 + count] != b"\r\n":
                raise Broken("a chunk that is longer than it says")
            self.body += ahead[at + 2 : at + 2 + count]
            del ahead[: at + 4 + count if count else at]  # of the last the line's end is kept
            self.form = "chunked" if count else "trailers"
        at = ahead.find(b"\r\n\r\n")
        if at < 0 and len(ahead) > MAX_HEAD:
            raise Broken("endless trailers")
        if at >= 0:
            self.whole, self.keeps = True, self.keeps and len(ahead) == at + 4


def headers_of(lines: list[bytes]) -> dict[str, str]:
    """By names in lower case; what comes more than once is joined by commas. Raises Broken.

    >>> headers_of([b"Content-Length: 5", b"X: a", b"x:b"])
    {'content-length': '5', 'x': 'a, b'}
    """
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not NAME.fullmatch(name):
            raise Broken("a header that is none")
        key, text = name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def unpacked(body: bytes | bytearray, headers: Mapping[str, str], max_bytes: int) -> bytes:
    """The body without its content coding. Raises Unreadable, or TooLarge before more than that are held."""
    coding = headers.get("content-encoding", "").lower()
    if coding in ("", "identity"):
        return bytes(body)
    if coding not in ("gzip", "deflate"):
        raise Unreadable("its reply in an encoding that was not asked for")
    unpack = zlib.decompressobj(wbits=47)
    try:
        found = unpack.decompress(body, max_bytes + 1)
    except zlib.error:
        raise Unreadable("a reply that does not unpack") from None
    if len(found) > max_bytes:
        raise TooLarge
    if not unpack.eof:
        raise Unreadable("half of a packed reply")
    return found
