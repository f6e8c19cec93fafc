"""The two verbs. Everything a technique does is ``ask`` the model or ``act`` in the environment, through one Run, so
every call is charged, traced and error-handled here and nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from decisor.budget import Budget
from decisor.errors import BudgetExceeded, LMError, OutageError, ParseError, ToolError
from decisor.trace.events import ActionResult, ActionStart, FailedCall, LMCall, Span, Trace, UnreadableReply
from decisor.trace.graph_events import NodeSpan
from decisor.types import LM, Action, Completion, Environment, Message, Observation, Sampling, Usage

T = TypeVar("T")
UNFINISHED = {
    "length": ("Your reply was cut off at its length limit. Answer more briefly.", "truncated"),
    "content_filter": ("Your reply was held back by a content filter. Say it in other words.", "content_filter"),
    "refusal": ("That is no answer: the question is about the data you were given.", "refusal"),
}
"""Ways to stop that make a reply no answer: what is said to it, once, and the reason that is counted."""
CALL, ACTION = Usage(calls=1), Usage(actions=1)
GAP = "\n[... left out, because the conversation is too long ...]\n"
SHORTEST_CUT = 400


@dataclass(frozen=True)
class Run:
    """One LM, one environment, one budget, one trace.

    ``retries``: how often a reply that cannot be read goes back to the model with the complaint.
    """

    lm: LM
    env: Environment
    budget: Budget = field(default_factory=Budget)
    trace: Trace = field(default_factory=Trace)
    span_id: int = 0
    retries: int = 2

    async def ask(
        self,
        prompt: str | Sequence[Message],
        parse: Callable[[str], T],
        sampling: Sampling = Sampling(),
        final: bool = False,
    ) -> T:
        """Ask the LM and parse its reply; a reply that cannot be read goes back with the complaint.

        ``final`` may use what the budget keeps back: the call that answers.

        Raises:
            ParseError: it still could not be read after ``retries`` more tries.
            BudgetExceeded: a limit is reached.
            LMError: the endpoint failed for good.
        """
        messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
        unfinished = 0
        for left in range(self.retries, -1, -1):
            reply = await self.complete(messages, sampling, final)
            try:
                if reply.finish in UNFINISHED:
                    unfinished += 1
                    raise ParseError(*UNFINISHED[reply.finish])
                return parse(reply.text)
            except ParseError as complaint:
                self.trace.add(UnreadableReply(complaint.reason, str(complaint)), self.span_id)
                if not left or complaint.reason == "limits" or unfinished > 1:
                    raise
                again = f"{complaint}\nAnswer again, in the form asked for."
                messages = [*messages, Message("assistant", reply.text or "(nothing)"), Message("user", again)]
        raise AssertionError("unreachable")

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling = Sampling(), final: bool = False
    ) -> Completion:
        """One charged and traced call, unparsed (for techniques that read several texts of one call).

        A conversation that is too long for the model is shortened once, by rule, and the trace says so.
        """
        try:
            return await self._complete(messages, sampling, final)
        except LMError as error:
            shorter = shortened(messages) if error.kind == "context" else None
            if shorter is None:
                raise
        return await self._complete(shorter, sampling, final)

    async def _complete(self, messages: Sequence[Message], sampling: Sampling, final: bool) -> Completion:
        """``since`` in the trace: the last entry before the call began, so what it may have waited for."""
        want = Usage(calls=1, completion_tokens=sampling.max_tokens) if sampling.max_tokens else CALL
        self.budget.reserve(want, final)
        used = CALL
        since, began = len(self.trace.entries), time.monotonic()
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                reply = await self.lm.complete(messages, sampling)
            used = reply.usage if reply.usage.seconds else replace(reply.usage, seconds=time.monotonic() - began)
        except LMError as error:
            used = replace(used + error.used, seconds=time.monotonic() - began)
            self.trace.add(FailedCall(error.kind, str(error), used), self.span_id)
            raise
        except TimeoutError as error:
            raise BudgetExceeded("seconds", self.budget.limits.seconds or 0.0) from error
        finally:
            self.budget.charge(want, used)
        model = reply.model or self.lm.name
        call = LMCall(model, messages, reply.texts, reply.finish, used, since=since, replayed=reply.replayed)
        self.trace.add(call, self.span_id)
        return reply

    async def act(self, action: Action) -> Observation:
        """Do it. A refused or failed query is an observation, not an exception.

        Raises:
            BudgetExceeded: a limit is reached.
            OutageError: what the tool stands on cannot be reached; asking the LM on would be paid for in vain.
        """
        outage = False
        self.budget.reserve(ACTION)
        start = self.trace.add(ActionStart(action.tool, action.input), self.span_id)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                observation = await self.env.step(action)
        except ToolError as error:
            observation, outage = Observation(note=str(error), error=True), error.outage
        except TimeoutError as error:
            raise BudgetExceeded("seconds", self.budget.limits.seconds or 0.0) from error
        finally:
            self.budget.charge(ACTION, ACTION)
        self.trace.add(ActionResult(start, observation, round(time.monotonic() - began, 6)), self.span_id)
        if outage:
            raise OutageError(observation.note)
        return observation

    @contextmanager
    def span(self, span: str | NodeSpan) -> Iterator[Run]:
        """The same run, one level deeper in the trace: in a span of that name. Safe to open many at once."""
        event = Span(span) if isinstance(span, str) else span
        yield replace(self, span_id=self.trace.add(event, self.span_id))

    def using(self, lm: LM | None = None, env: Environment | None = None, budget: Budget | None = None) -> Run:
        """The same run with a part switched."""
        return replace(self, lm=lm or self.lm, env=env or self.env, budget=budget or self.budget)


def shortened(messages: Sequence[Message]) -> list[Message] | None:
    """Half of it: the longest messages lose their middle first, those of the system stay. None where that is no help.

    >>> [len(m.content) for m in shortened([Message("system", "s" * 50), Message("user", "u" * 10_000)])]
    [50, 4975]
    """
    texts = [message.content for message in messages]
    goal = sum(map(len, texts)) // 2
    able = [i for i, message in enumerate(messages) if message.role != "system" and len(message.content) > SHORTEST_CUT]
    while able and (over := sum(map(len, texts)) - goal) > 0:
        at = max(able, key=lambda i: len(texts[i]))
        text = texts[at]
        keep = max(len(text) - over - len(GAP), len(text) // 4)
        texts[at] = text[: keep * 2 // 5] + GAP + text[len(text) - (keep - keep * 2 // 5) :]
        able.remove(at)
    if sum(map(len, texts)) > goal * 1.5:
        return None
    return [Message(message.role, text) for message, text in zip(messages, texts, strict=True)]
