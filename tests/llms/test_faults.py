"""Every fault of ``servers/faults.py`` in the first, second and last call of a conversation: what is promised, holds.

All faults of a promise run at once, each against a server of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from decisor.errors import Error, LLMError, ParseError
from decisor.llms.retry import Retries
from decisor.llms.shared import Journal
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import FailedCall, UnreadableReply
from decisor.types import Completion, Message
from servers.fault_server import KEY, Faulty, faulty
from servers.faults import FAULTS, Fault, Promise

CALLS = 3
ATTEMPTS = 3
DEADLINE = 3.0
SLACK = 25.0  # without the deadline each would take more than a minute, and this machine may be busy
"""Seconds for a busy machine: the faults go on for ten."""


@dataclass
class Notebook:
    """A book of replies (``llms.journal.Book``) that tells which would be replayed."""

    usable: dict[str, Completion] = field(default_factory=dict)

    async def reply(self, key: str) -> Completion | None:
        return self.usable.get(key)

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        return self.usable.setdefault(key, reply) if usable else reply


@dataclass(frozen=True)
class Talk:
    """What became of a conversation: the replies that were taken for answers, the error, and what the journal kept."""

    server: Faulty
    answers: list[str]
    error: Error | None
    kept: list[str]
    reasons: list[str]
    seconds: float


async def talk(fault: Fault, before: int, times: int, seconds: float = 20.0, pause: float = 0.01) -> Talk:
    """``CALLS`` calls that each hold all before; the fault is played ``times`` times after ``before`` good replies."""
    async with faulty(*[None] * before, *[fault.play] * times) as server:
        llm = server.llm(seconds, retries=Retries(ATTEMPTS, pause, rate_attempts=ATTEMPTS), max_bytes=2_000_000)
        book = Notebook()
        run = Run(Journal(book).llm(llm), Toolbox([]), Budget())
        messages = [Message("user", "Where?")]
        answers: list[str] = []
        error: Error | None = None
        began = time.monotonic()
        try:
            for number in range(CALLS):
                answers.append(await run.ask(messages, str))
                messages += [Message("assistant", answers[-1]), Message("user", f"And {number}?")]
        except (LLMError, ParseError) as failure:
            error = failure
        took = time.monotonic() - began
        await llm.close()
    entries = run.trace.entries
    kept = [reply.text for reply in book.usable.values()]
    reasons = [entry.event.reason for entry in entries if isinstance(entry.event, FailedCall | UnreadableReply)]
    assert KEY not in f"{error} {entries}"
    return Talk(server, answers, error, kept, reasons, took)


async def all_of(promise: Promise, check: Callable[[Fault, int], Awaitable[None]]) -> None:
    """Check every fault of this promise after 0, 1 and 2 good replies, and name each that breaks it."""
    chosen = [(name, before) for name, fault in FAULTS.items() if fault.promise == promise for before in range(CALLS)]
    checks = (check(FAULTS[name], before) for name, before in chosen)
    results = await asyncio.gather(*checks, return_exceptions=True)
    broken = [f"{at}: {result!r}" for at, result in zip(chosen, results, strict=True) if result is not None]
    assert chosen and not broken, "\n".join(broken)


def test_there_are_at_least_forty_faults() -> None:
    assert len(FAULTS) >= 40


@pytest.mark.slow
async def test_what_may_pass_is_sent_again_unchanged_and_not_too_early() -> None:
    async def check(fault: Fault, before: int) -> None:
        seen = await talk(fault, before, times=1)
        assert (seen.error, seen.answers, seen.kept) == (None, ["Lyon"] * 3, ["Lyon"] * 3)
        assert seen.server.asked == CALLS + 1
        assert seen.server.hashes[before] == seen.server.hashes[before + 1]
        assert seen.server.keys[before] == seen.server.keys[before + 1] != ""
        assert seen.server.gaps[before] >= 0.95 * fault.after

    await all_of("again", check)


@pytest.mark.slow
async def test_what_does_not_pass_ends_as_an_error_and_never_as_an_answer() -> None:
    async def check(fault: Fault, before: int) -> None:
        seen = await talk(fault, before, times=99)
        assert isinstance(seen.error, LLMError)
        assert (seen.error.kind, seen.error.permanent) == (fault.kind, False)
        assert (seen.answers, seen.kept) == (["Lyon"] * before, ["Lyon"] * before)
        assert seen.server.asked == before + ATTEMPTS
        assert len(set(seen.server.hashes[before:])) == 1
        assert all(gap >= 0.95 * fault.after for gap in seen.server.gaps[before:])

    await all_of("again", check)


async def test_what_concerns_every_question_ends_the_run_at_the_first_attempt() -> None:
    async def check(fault: Fault, before: int) -> None:
        seen = await talk(fault, before, times=99)
        assert isinstance(seen.error, LLMError)
        assert (seen.error.kind, seen.error.permanent) == (fault.kind, True)
        assert seen.server.asked == before + 1
        assert seen.kept == ["Lyon"] * before

    await all_of("final", check)


async def test_what_concerns_one_question_ends_that_one_only() -> None:
    async def check(fault: Fault, before: int) -> None:
        seen = await talk(fault, before, times=99)
        assert isinstance(seen.error, LLMError)
        assert (seen.error.kind, seen.error.permanent) == (fault.kind, False)
        assert seen.server.asked == before + 1
        assert seen.reasons == [fault.kind]

    await all_of("case", check)
    await all_of("size", check)


@pytest.mark.slow
async def test_no_reply_ends_with_the_deadline_of_the_whole_call() -> None:
    async def check(fault: Fault, before: int) -> None:
        seen = await talk(fault, before, times=99, seconds=DEADLINE)
        assert isinstance(seen.error, LLMError)
        assert (seen.error.kind, seen.error.permanent) == ("timeout", False)
        assert seen.seconds < DEADLINE + SLACK
        assert seen.kept == ["Lyon"] * before

    await all_of("deadline", check)


@pytest.mark.slow
async def test_retries_stay_within_the_deadline_too() -> None:
    async def check(fault: Fault, before: int) -> None:
        seen = await talk(fault, before, times=99, seconds=DEADLINE, pause=60.0)
        assert isinstance(seen.error, LLMError)
        assert seen.seconds < DEADLINE + SLACK

    await all_of("again", check)


async def test_a_reply_that_is_none_by_its_own_word_is_asked_for_again() -> None:
    """One that was cut off as often as any other that cannot be read; a filter or a refusal is asked once more."""

    async def check(fault: Fault, before: int) -> None:
        once, twice = await talk(fault, before, times=1), await talk(fault, before, times=99)
        assert (once.error, once.answers, once.reasons) == (None, ["Lyon"] * 3, [fault.kind])
        assert once.server.asked == CALLS + 1
        assert isinstance(twice.error, ParseError)
        assert twice.error.reason == fault.kind
        again = 2 if fault.kind == "truncated" else 1
        assert twice.server.asked == before + 1 + again
        assert twice.answers == twice.kept == ["Lyon"] * before
        assert once.kept == ["Lyon"] * CALLS

    await all_of("unfinished", check)


async def test_an_odd_reply_is_a_reply() -> None:
    async def check(fault: Fault, before: int) -> None:
        seen = await talk(fault, before, times=1)
        assert (seen.error, seen.answers, seen.server.asked) == (None, ["Lyon"] * 3, CALLS)

    await all_of("good", check)
