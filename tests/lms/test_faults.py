"""Each fault of an endpoint, against a server that really commits it."""

from __future__ import annotations

import asyncio
import resource
import time
import traceback
from typing import Any

import pytest

from decisor.errors import LMError, SetupError
from decisor.lms.http import OpenAICompatible
from decisor.lms.retry import Retries
from lms.faulty import (
    ASK,
    KEY,
    Fault,
    body,
    bombs,
    drips,
    echoes_key,
    faulty,
    hangs,
    redirects,
    resets,
    status,
    truncated,
    wait_until,
    zips,
)

HTML = b"<!doctype html><html><title>Welcome</title></html>"
CHOICE: dict[str, Any] = {"message": {"role": "assistant", "content": None}, "finish_reason": "stop"}
PASSING = {
    "429": status(429),
    "408": status(408),
    "409": status(409),
    "500": status(500),
    "502 with a page": body(HTML, 502),
    "503": status(503),
    "529": status(529),
    "a web page with 200": body(HTML),
    "no JSON": body(b'{"choices": ['),
    "bad UTF-8": body(b'{"choices": "\xff\xfe"}'),
    "empty": body(b""),
    "a list": body([1]),
    "deeply nested": body(b"[" * 100_000),
    "no choices": body({"choices": []}),
    "an error with 200": body({"error": {"message": "overloaded"}}),
    "null content": body({"choices": [CHOICE]}),
    "a choice that is none": body({"choices": [7]}),
    "cut body": truncated,
    "reset": resets,
}
FINAL = {
    "401": (status(401), "auth"),
    "403": (status(403), "auth"),
    "quota": (status(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
    "402": (status(402), "quota"),
    "quota with 200": (body({"error": {"message": "none left", "code": 402}}), "quota"),
    "404": (status(404), "request"),
    "400": (status(400), "request"),
    "context": (status(400, "too long", code="context_length_exceeded"), "context"),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_passing_fault_is_tried_again_with_the_same_body(fault: Fault) -> None:
    async with faulty(fault, fault) as server:
        lm = server.lm()
        reply = await lm.complete(ASK)
        await lm.close()
    assert reply.text == "Lyon"
    assert server.asked == 3
    assert len(set(server.sent)) == 1


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_fault_that_stays_ends_as_an_error_that_may_pass(fault: Fault) -> None:
    async with faulty(*[fault] * 9) as server:
        lm = server.lm(retries=Retries(attempts=3, first_seconds=0.01))
        with pytest.raises(LMError, match="3 attempts") as caught:
            await lm.complete(ASK)
        await lm.close()
    assert not caught.value.permanent
    assert server.asked == 3


@pytest.mark.parametrize(("fault", "kind"), FINAL.values(), ids=FINAL.keys())
async def test_a_final_fault_ends_at_once(fault: Fault, kind: str) -> None:
    async with faulty(fault) as server:
        lm = server.lm()
        with pytest.raises(LMError) as caught:
            await lm.complete(ASK)
        await lm.close()
    assert caught.value.permanent
    assert caught.value.kind == kind
    assert server.asked == 1


async def test_retry_after_in_seconds_is_waited_for_by_all_calls() -> None:
    async with faulty(status(429, headers={"Retry-After": "1"})) as server:
        lm = server.lm()
        first = asyncio.create_task(lm.complete(ASK))
        await asyncio.sleep(0.2)
        await asyncio.gather(first, lm.complete(ASK))
        await lm.close()
    assert server.asked == 3
    assert all(at - server.at[0] >= 0.95 for at in server.at[1:])


async def test_retry_after_as_a_date_is_read_by_the_clock_of_the_server() -> None:
    async with faulty(wait_until(1, ahead=86_400)) as server:
        lm = server.lm()
        await lm.complete(ASK)
        await lm.close()
    assert 0.95 <= server.at[1] - server.at[0] < 4


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    began = time.monotonic()
    async with faulty(status(429, headers={"Retry-After": "3600"})) as server:
        lm = server.lm()
        with pytest.raises(LMError, match="3600 s") as caught:
            await lm.complete(ASK)
        await lm.close()
    assert caught.value.kind == "rate"
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("fault", [drips, hangs])
async def test_the_deadline_holds_over_the_whole_call(fault: Fault) -> None:
    async with faulty(fault) as server:
        lm = server.lm(seconds=0.5)
        began = time.monotonic()
        with pytest.raises(LMError, match="no reply within") as caught:
            await lm.complete(ASK)
        took = time.monotonic() - began
        await lm.close()
    assert caught.value.kind == "timeout"
    assert took < 1.0


async def test_a_gzip_bomb_is_not_unpacked() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with faulty(bombs) as server:
        lm = server.lm()
        with pytest.raises(LMError, match="reading stopped"):
            await lm.complete(ASK)
        await lm.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KB; the server makes 20 MB of it


async def test_a_huge_reply_is_not_read() -> None:
    async with faulty(body(b" " * 3_000_000)) as server:
        lm = server.lm(max_bytes=1_000_000)
        with pytest.raises(LMError, match="1000000 bytes") as caught:
            await lm.complete(ASK)
        await lm.close()
    assert caught.value.kind == "size"
    assert server.asked == 1


async def test_a_zipped_reply_is_read() -> None:
    async with faulty(zips) as server:
        lm = server.lm()
        assert (await lm.complete(ASK)).text == "Lyon"
        await lm.close()


async def test_a_redirect_is_not_followed() -> None:
    async with faulty() as canary, faulty(redirects(f"{canary.origin}/v1/chat/completions")) as server:
        lm = server.lm()
        with pytest.raises(LMError, match="redirect") as caught:
            await lm.complete(ASK)
        await lm.close()
    assert caught.value.permanent
    assert canary.asked == 0


async def test_an_echoed_key_is_in_no_error_and_no_traceback() -> None:
    async with faulty(echoes_key) as server:
        lm = server.lm()
        with pytest.raises(LMError) as caught:
            await lm.complete(ASK)
        await lm.close()
    assert "Incorrect API key" in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert KEY not in f"{lm!r} {lm.endpoint!r} {vars(lm.endpoint)}"


async def test_a_key_echoed_in_a_reply_is_hidden_there_too() -> None:
    said = {"choices": [{"message": {"content": f"Your key is {KEY}."}, "finish_reason": "stop"}]}
    async with faulty(body(said)) as server:
        lm = server.lm()
        assert (await lm.complete(ASK)).text == "Your key is [hidden]."
        await lm.close()


async def test_retries_end_when_the_allowance_is_used_up() -> None:
    async with faulty(*[status(500)] * 50) as server:
        lm = server.lm(retries=Retries(first_seconds=0.01, allowance=3))
        results = await asyncio.gather(*(lm.complete(ASK) for _ in range(5)), return_exceptions=True)
        await lm.close()
    assert all(isinstance(result, LMError) for result in results)
    assert server.asked == 5 + 3


async def test_a_server_that_is_not_there_is_named() -> None:
    lm = OpenAICompatible("m", "http://127.0.0.1:9/v1", retries=Retries(attempts=2, first_seconds=0.01))
    with pytest.raises(LMError, match=r"127\.0\.0\.1:9 cannot be reached") as caught:
        await lm.complete(ASK)
    await lm.close()
    assert caught.value.kind == "connection"


@pytest.mark.parametrize("url", ["ftp://h/v1", "localhost", f"https://user:{KEY}@example.com/v1", ""])
def test_an_address_that_is_none_is_the_persons_mistake(url: str) -> None:
    with pytest.raises(SetupError) as caught:
        OpenAICompatible("m", url)
    assert KEY not in str(caught.value)


def test_a_key_with_a_line_break_is_the_persons_mistake() -> None:
    with pytest.raises(SetupError, match="copied whole"):
        OpenAICompatible("m", "http://localhost/v1", "abc\r\ndef: x")


async def test_many_calls_at_once_all_come_through_a_server_that_fails_at_every_fifth() -> None:
    kinds = [status(500), status(429), body(HTML), resets, truncated]
    faults = [kinds[i // 5 % 5] if i % 5 == 0 else zips for i in range(200)]
    async with faulty(*faults) as server:
        lm = server.lm(seconds=60.0)
        replies = await asyncio.gather(*(lm.complete(ASK) for _ in range(150)))
        await lm.close()
    assert {reply.text for reply in replies} == {"Lyon"}
    assert server.asked <= 200
