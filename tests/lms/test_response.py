"""HTTP/1.1 responses, however their bytes are cut; and what is none."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisor.lms.response import Broken, Response, TooLarge, Unreadable, unpacked

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"
TRAILED = CHUNKED[:-2] + b"X-Sum: 1\r\n\r\n"
HINTED = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + LENGTH
WHOLE = {"length": LENGTH, "chunked": CHUNKED, "trailed": TRAILED, "hinted": HINTED}
OPEN = b"HTTP/1.1 200 OK\r\n\r\nhello"


def read(*parts: bytes, max_bytes: int = 1000) -> Response:
    response = Response(max_bytes)
    for part in parts:
        response.feed(part)
    return response


@pytest.mark.parametrize("name", WHOLE)
def test_every_cut_gives_the_same_reply(name: str) -> None:
    data = WHOLE[name]
    for at in range(1, len(data)):
        early = read(data[:at])
        assert not early.whole
        early.feed(data[at:])
        assert (early.status, bytes(early.body), early.whole, early.keeps) == (200, b"hello", True, True)
    singly = read(*(bytes([byte]) for byte in data))
    assert (bytes(singly.body), singly.whole, singly.keeps) == (b"hello", True, True)


def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    response = read(OPEN[:-2], OPEN[-2:])
    assert not response.whole
    response.end()
    assert (bytes(response.body), response.whole, response.keeps) == (b"hello", True, False)


@pytest.mark.parametrize("name", WHOLE)
def test_a_connection_that_ends_too_early_is_noticed(name: str) -> None:
    for at in range(len(WHOLE[name])):
        response = read(WHOLE[name][:at])
        with pytest.raises(Broken):
            response.end()


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0", True),
        (b"HTTP/1.1 204 No Content", True),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\nConnection: Close", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive", True),
    ],
)
def test_which_connection_may_be_used_again(head: bytes, keeps: bool) -> None:
    response = read(head + b"\r\n\r\n")
    assert (response.whole, response.keeps) == (True, keeps)


@pytest.mark.parametrize("name", WHOLE)
def test_after_more_than_was_asked_for_the_connection_is_not_used_again(name: str) -> None:
    assert not read(WHOLE[name] + b"HTTP/1.1 200 OK").keeps
    assert not read(WHOLE[name], b"HTTP/1.1 200 OK").keeps


def test_two_ways_to_tell_the_length_end_the_connection() -> None:
    both = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1)
    response = read(both)
    assert (bytes(response.body), response.keeps) == (b"hello", False)


@pytest.mark.parametrize(
    "data",
    [
        b"<html>",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000,
    ],
)
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(Broken):
        read(data, max_bytes=10**6)


@pytest.mark.parametrize("data", [LENGTH, CHUNKED, OPEN, LENGTH.replace(b": 5", b": " + b"9" * 40)])
def test_reading_stops_at_the_limit(data: bytes) -> None:
    with pytest.raises(TooLarge):
        read(data, max_bytes=4)


def test_a_tunnel_has_no_body() -> None:
    response = Response(1000, tunnel=True)
    response.feed(b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n")
    assert (response.whole, response.keeps) == (True, True)


@given(st.lists(st.binary(max_size=60), max_size=8), st.sampled_from([b"", *WHOLE.values(), OPEN]))
def test_no_bytes_do_anything_else(parts: list[bytes], start: bytes) -> None:
    response = Response(1000)
    try:
        for part in [start[: len(start) // 2], *parts]:
            response.feed(part)
        response.end()
    except (Broken, TooLarge):
        return
    assert response.whole and len(response.body) <= 1000


def test_codings() -> None:
    for coding, data in (
        ("gzip", gzip.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")),
        ("identity", b"hello"),
    ):
        assert unpacked(data, {"content-encoding": coding}, 5) == b"hello"
    with pytest.raises(TooLarge):
        unpacked(gzip.compress(b"hello"), {"content-encoding": "gzip"}, 4)
    for coding, data in (
        ("br", b""),
        ("gzip", gzip.compress(b"hello")[:-9]),
        ("gzip", b"hello"),
        ("deflate", b"\xff\xff"),
    ):
        with pytest.raises(Unreadable):
            unpacked(data, {"content-encoding": coding}, 5)
