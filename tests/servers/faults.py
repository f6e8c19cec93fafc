"""Every fault by name, with what a client must make of it (safety.md 6.1).

again      it may pass: the same body is sent again, not earlier than asked, and the reply after it counts
final      no other question will be answered either: one attempt, then the run stops
case       only this question fails: one attempt, and the run goes on
deadline   no reply: the call ends when its time does
size       reading stops at the cap: one attempt
unfinished a reply that says itself that it is none: the model is asked once more
good       odd, but a reply
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from servers.fault_plays import (
    HTML,
    body,
    bombs,
    breaks_off,
    drips,
    drips_headers,
    echoes_key,
    good_late,
    hangs,
    one_bomb,
    raw,
    redirects,
    redirects_to_itself,
    resets,
    said,
    squeezed,
    stalls,
    status,
    streams,
    wait_until,
)
from servers.fault_server import Play

Promise = Literal["again", "final", "case", "deadline", "size", "unfinished", "good"]


@dataclass(frozen=True)
class Fault:
    """``kind``: of the LLMError where it stays. ``after``: seconds that must pass before the next attempt."""

    play: Play
    promise: Promise
    kind: str = ""
    after: float = 0.0


def again(play: Play, kind: str = "protocol", after: float = 0.0) -> Fault:
    return Fault(play, "again", kind, after)


def choices(*items: Any) -> Play:
    return body({"choices": list(items)})


QUOTA = "You exceeded your current quota"
CHUNK = '{"choices": [{"delta": {"content": "Ly"}}]}'
HEAD = b"HTTP/1.1 200 OK\r\n"
START = b'{"choices": [{"message": {"content": "Ly'

FAULTS: dict[str, Fault] = {
    "429": again(status(429), "rate"),
    "429_after": again(status(429, headers={"Retry-After": "1"}), "rate", 1.0),
    "429_after_ms": again(status(429, headers={"Retry-After-Ms": "300"}), "rate", 0.3),
    "429_after_fraction": again(status(429, headers={"Retry-After": "0.4"}), "rate", 0.4),
    "429_date_clock_ahead": again(wait_until(1, ahead=86_400), "rate", 0.9),
    "429_date_clock_behind": again(wait_until(1, ahead=-86_400), "rate", 0.9),
    "429_after_unreadable": again(status(429, headers={"Retry-After": "soon"}), "rate"),
    "429_after_negative": again(status(429, headers={"Retry-After": "-5"}), "rate"),
    "429_after_zero": again(status(429, headers={"Retry-After": "0"}), "rate"),
    "429_after_tiny": again(status(429, headers={"Retry-After-Ms": "0.001"}), "rate"),
    "429_date_past": again(wait_until(-60, ahead=0), "rate"),
    "503_after_zero": again(status(503, headers={"Retry-After": "0"}), "server"),
    "429_after_nan": again(status(429, headers={"Retry-After": "nan"}), "rate"),
    "503_after": again(status(503, headers={"Retry-After": "0.5"}), "server", 0.5),
    "408": again(status(408), "server"),
    "409": again(status(409), "server"),
    "425": again(status(425), "server"),
    "500": again(status(500), "server"),
    "502_page": again(body(HTML, 502), "server"),
    "503": again(status(503), "server"),
    "504": again(body(b"", 504), "server"),
    "529": again(status(529, "Overloaded", type="overloaded_error"), "server"),
    "reset": again(resets, "connection"),
    "reset_mid_body": again(breaks_off(START, {"Content-Length": "1000"}, abort=True), "connection"),
    "truncated_body": again(breaks_off(START, {"Content-Length": "1000"}), "connection"),
    "truncated_chunk": again(breaks_off(START, {"Transfer-Encoding": "chunked"}), "connection"),
    "no_http": again(raw(b"SSH-2.0-OpenSSH_9.6\r\n"), "connection"),
    "bad_chunk_size": again(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n"), "connection"),
    "huge_header": again(raw(b"HTTP/1.1 200 OK\r\nX-Big: " + b"x" * 2_000_000 + b"\r\n\r\n"), "connection"),
    "two_equal_lengths": again(raw(HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"), "connection"),
    "two_lengths_that_differ": again(raw(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), "connection"),
    "no_number_as_length": again(raw(HEAD + b"Content-Length: two\r\n\r\n{}"), "connection"),
    "another_protocol": again(raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")),
    "304": again(body(b"", 304)),
    "bad_gzip": again(squeezed("gzip", spoil=True)),
    "unknown_encoding": again(body(b"\x0b\x02\x80", headers={"Content-Encoding": "br"})),
    "bad_utf8": again(body(b'{"choices": "\xff\xfe"}')),
    "html_200": again(body(HTML, kind="text/html")),
    "invalid_json": again(body(b'{"choices": [')),
    "empty": again(body(b"")),
    "no_content_204": again(body(b"", 204)),
    "a_list": again(body([1])),
    "a_null": again(body(b"null")),
    "deeply_nested": again(body(b"[" * 100_000)),
    "no_choices": again(body({"id": "x"})),
    "empty_choices": again(choices()),
    "choice_is_no_object": again(choices(7)),
    "choice_without_message": again(choices({"finish_reason": "stop"})),
    "null_content": again(said(None)),
    "number_content": again(said(17)),
    "tool_calls_only": again(said(None, "tool_calls", tool_calls=[{"id": "1"}])),
    "finish_error": again(said("Ly", "error")),
    "200_error": again(body({"error": {"message": "overloaded"}})),
    "200_error_text": again(body({"error": "overloaded"})),
    "200_error_429": again(body({"error": {"message": "slow down", "code": 429}}), "rate"),
    "stream_unasked": again(streams(CHUNK, "[DONE]")),
    "stream_no_done": again(streams(CHUNK)),
    "stream_error_event": again(streams(CHUNK, '{"error": {"message": "overloaded"}}')),
    "stream_bad_chunk": again(streams(CHUNK, "{")),
    "truncated_stream": again(
        breaks_off(f"data: {CHUNK}\n\n".encode(), {"Transfer-Encoding": "chunked"}), "connection"
    ),
    "401": Fault(status(401), "final", "auth"),
    "401_unknown_encoding": Fault(body(b"\x0b\x02", 401, headers={"Content-Encoding": "br"}), "final", "auth"),
    "401_page": Fault(body(HTML, 401, "text/html"), "final", "auth"),
    "401_echoes_key": Fault(echoes_key, "final", "auth"),
    "403": Fault(status(403), "final", "auth"),
    "402": Fault(status(402), "final", "quota"),
    "429_quota": Fault(status(429, QUOTA, code="insufficient_quota"), "final", "quota"),
    "200_quota": Fault(body({"error": {"message": "none left", "code": 402}}), "final", "quota"),
    "404": Fault(status(404), "final", "request"),
    "400": Fault(status(400), "case", "request"),
    "422": Fault(status(422), "case", "request"),
    "501": Fault(status(501), "final", "request"),
    "redirect_other_host": Fault(redirects("http://127.0.0.1:9/v1/chat/completions"), "final", "redirect"),
    "redirect_302": Fault(redirects("/v1/elsewhere", 302), "final", "redirect"),
    "redirect_loop": Fault(redirects_to_itself, "final", "redirect"),
    "400_context": Fault(status(400, "too long", code="context_length_exceeded"), "case", "context"),
    "400_context_words": Fault(status(400, "This model's maximum context length is 8 tokens"), "case", "context"),
    "413": Fault(status(413), "case", "context"),
    "400_content_filter": Fault(status(400, "filtered", code="content_filter"), "case", "content_filter"),
    "hangs": Fault(hangs, "deadline", "timeout"),
    "slow_headers": Fault(drips_headers, "deadline", "timeout"),
    "slow_drip": Fault(drips, "deadline", "timeout"),
    "stalls_mid_body": Fault(stalls, "deadline", "timeout"),
    "429_beyond_deadline": Fault(status(429, headers={"Retry-After": "60"}), "case", "rate"),
    "429_for_an_hour": Fault(status(429, headers={"Retry-After": "3600"}), "final", "rate"),
    "huge": Fault(body(b" " * 3_000_000), "size", "size"),
    "gzip_bomb": Fault(one_bomb, "size", "size"),
    "gzip_bomb_of_many": Fault(bombs, "size", "size"),
    "content_filter": Fault(said("", "content_filter"), "unfinished", "content_filter"),
    "content_filter_null": Fault(said(None, "content_filter"), "unfinished", "content_filter"),
    "content_filter_part": Fault(said("Ly", "content_filter"), "unfinished", "content_filter"),
    "refusal": Fault(said(None, "stop", refusal="I cannot."), "unfinished", "refusal"),
    "length_stop": Fault(said("Ly", "length"), "unfinished", "truncated"),
    "length_stop_null": Fault(said(None, "length"), "unfinished", "truncated"),
    "gzip_unasked": Fault(squeezed("gzip"), "good"),
    "deflate_unasked": Fault(squeezed("deflate"), "good"),
    "deflate_without_a_head": Fault(squeezed("deflate", bare=True), "good"),
    "slow_pieces_as_text": Fault(good_late, "good"),
    "content_in_parts": Fault(said([{"type": "text", "text": "Ly"}, {"type": "text", "text": "on"}]), "good"),
    "no_finish_reason": Fault(said("Lyon", None), "good"),
    "odd_usage": Fault(said("Lyon", "stop", {"prompt_tokens": -5, "completion_tokens": "many"}), "good"),
}
