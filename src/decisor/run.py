"""The two verbs. Everything a technique does is ``ask`` the model or ``act`` in the environment, through one Run, so
every call is charged, traced and error-handled here and nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from decisor.budget import Budget
from decisor.errors import BudgetExceeded, ParseError, ToolError
from decisor.trace import Trace
from decisor.types import LM, Action, Completion, Environment, Message, Observation, Sampling, Usage

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """One LM, one environment, one budget, one trace.

    ``asks_again``: how often a reply that cannot be read goes back to the model with the complaint.
    """

    lm: LM
    env: Environment
    budget: Budget = field(default_factory=Budget)
    trace: Trace = field(default_factory=Trace)
    span_id: int = 0
    asks_again: int = 2

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
            ParseError: it still could not be read after ``asks_again`` more tries.
            BudgetExceeded: a limit is reached.
            LMError: the endpoint failed for good.
        """
        messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
        for left in range(self.asks_again, -1, -1):
            reply = await self.complete(messages, sampling, final)
            try:
                if reply.finish == "length":
                    raise ParseError("Your reply was cut off at its length limit. Answer more briefly.", "truncated")
                return parse(reply.text)
            except ParseError as complaint:
                self.trace.add("note", self.span_id, problem="reply", reason=complaint.reason, text=str(complaint))
                if not left or complaint.reason == "limits":
                    raise
                again = f"{complaint}\nAnswer again, in the form asked for."
                messages = [*messages, Message("assistant", reply.text), Message("user", again)]
        raise AssertionError("unreachable")

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling = Sampling(), final: bool = False
    ) -> Completion:
        """One charged and traced call, unparsed (for techniques that read several texts of one call).

        ``since`` in the trace: the last event before the call began, so what it may have waited for.
        """
        want = Usage(calls=1, completion_tokens=sampling.max_tokens or 0)
        self.budget.reserve(want, final)
        used = Usage(calls=1)
        since, began = len(self.trace.events), time.monotonic()
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                reply = await self.lm.complete(messages, sampling)
            used = replace(reply.usage, seconds=reply.usage.seconds or time.monotonic() - began)
        except TimeoutError as error:
            raise BudgetExceeded("seconds", self.budget.limits.seconds or 0.0) from error
        finally:
            self.budget.charge(want, used)
        self.trace.add("lm", self.span_id, model=reply.model or self.lm.name, messages=list(messages),
                       texts=reply.texts, finish=reply.finish, usage=used, since=since,
                       replayed=reply.replayed)  # fmt: skip
        return reply

    async def act(self, action: Action) -> Observation:
        """Do it. A refused or failed query is an observation, not an exception."""
        want = Usage(actions=1)
        self.budget.reserve(want)
        at = self.trace.add("action", self.span_id, tool=action.tool, input=action.input)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                observation = await self.env.step(action)
        except ToolError as error:
            observation = Observation(note=str(error), error=True)
        except TimeoutError as error:
            raise BudgetExceeded("seconds", self.budget.limits.seconds or 0.0) from error
        finally:
            self.budget.charge(want, want)
        self.trace.add("observation", self.span_id, action=at, seconds=round(time.monotonic() - began, 6),
                       observation=observation)  # fmt: skip
        return observation

    @contextmanager
    def span(self, name: str, **data: Any) -> Iterator[Run]:
        """The same run, one level deeper in the trace. Safe to open many at once."""
        yield replace(self, span_id=self.trace.add("span", self.span_id, name=name, **data))

    def using(self, lm: LM | None = None, env: Environment | None = None, budget: Budget | None = None) -> Run:
        """The same run with a part switched."""
        return replace(self, lm=lm or self.lm, env=env or self.env, budget=budget or self.budget)
