"""Outages in a run: a database or an endpoint that went away. Who waits, which message is shown, when the run stops.

An action that meets a server which cannot be reached waits and tries again, and nothing is paid meanwhile; when the
server is back the case goes on as if nothing had been. An endpoint that fails call after call crashes its cases. What
is away for longer than ``patience`` stops the run; where others still reach it, only the case that does not crashes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from decisor.errors import LLMError, OutageError, ToolError
from decisor.lab.judges import THIS_CASE
from decisor.llms.retry import Retries
from decisor.llms.shared import SharedLLM, share_llm
from decisor.runtime.run import explain_wrong_form
from decisor.techniques.shared.analyst import list_tool_languages
from decisor.types import LLM, Action, Completion, Environment, Observation

PATIENCE_SECONDS = 600.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
NEWS_SECONDS = 60.0
IDLE_SECONDS = 30.0
"""An outage that nobody has met for so long is not waited for."""
AWAY = frozenset({"connection", "server", "timeout", "protocol"})
"""Kinds of LLMError that say nothing about the request: another would have failed too."""
REFUSED_CASES, REFUSED_LATER = 3, 20
"""So many different cases in a row that an endpoint refuses are about the endpoint, not about them; more of one that
has answered in this store."""


@dataclass(slots=True)
class Outage:
    """An outage of a server. Times are those of ``time.monotonic``."""

    why: str
    since: float
    """Time when it began."""
    met: float
    """Time when it was last met."""
    told_at: float = 0.0
    """Time when it was last reported; 0 if not yet."""


@dataclass
class Outages:
    """The servers that cannot be reached now, for all cases of one process."""

    patience: float = PATIENCE_SECONDS
    say: Callable[[str], None] = lambda line: None
    """Gets a line for the person when an outage begins, each minute, and when it ends."""
    breakers: Mapping[str, Retries] = field(default_factory=dict)
    """Retry layers of endpoints, by name."""
    away: dict[str, Outage] = field(default_factory=dict)
    waiting: Counter[str] = field(default_factory=Counter)
    """Number of calls and actions under way, by server."""
    refusals: dict[str, set[str]] = field(default_factory=dict)
    """Cases that an endpoint refused in a row."""
    proven: set[str] = field(default_factory=set)
    """Names of LLMs and servers that answered in this store."""

    @property
    def look_seconds(self) -> float:
        return min(1.0, self.patience / 4)

    @contextmanager
    def trying(self, place: str) -> Iterator[None]:
        """Mark a server as in use while a call or an action is under way."""
        self.waiting[place] += 1
        try:
            yield
        finally:
            self.waiting[place] -= 1

    def failed(self, place: str, why: str) -> None:
        now = time.monotonic()
        outage = self.away.setdefault(place, Outage(why, now, now))
        outage.why, outage.met = why, now

    def answered(self, place: str, replayed: bool = False) -> None:
        self.proven.add(place)
        # A reply from the store says nothing about the server now.
        if not replayed:
            self.refusals.pop(place, None)
            self.back(place)

    def back(self, place: str) -> None:
        outage = self.away.pop(place, None)
        if outage is not None and outage.told_at:
            self.say(f"{place} answers again, after {time.monotonic() - outage.since:.0f} s")

    def refused(self, place: str, case: str) -> bool:
        """Return whether an endpoint refused too many different cases.

        Then the endpoint is at fault, not a single question.
        """
        cases = self.refusals.setdefault(place, set())
        cases.add(case)
        return len(cases) >= (REFUSED_LATER if place in self.proven else REFUSED_CASES)

    async def watch(self) -> None:
        """Wait until an outage lasts longer than ``patience``.

        Raises:
            OutageError: that, with what to do.
        """
        while True:
            await asyncio.sleep(self.look_seconds)
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Check all outages once and report them. Raise OutageError if one lasts too long."""
        for place, retries in self.breakers.items():
            if retries.faults >= retries.breaks_at:
                self.failed(place, retries.why)
            elif not retries.faults:
                self.back(place)
        # A copy: an outage that is over is removed on the way.
        for place, outage in list(self.away.items()):
            # A call under way is still meeting the outage, although it reports nothing yet.
            if self.waiting[place]:
                outage.met = now
            elif now - outage.met > IDLE_SECONDS:
                del self.away[place]
                continue
            if now - outage.since >= self.patience:
                raise OutageError(
                    f"{place} has not answered for {now - outage.since:.0f} s, so the run stops ({outage.why}). What "
                    "is finished or paid for is kept: the same command goes on from here, --again crashed also runs "
                    "what crashed meanwhile, and --patience says how long to wait."
                )
            self.tell(place, outage, now)

    def tell(self, place: str, outage: Outage, now: float) -> None:
        if not outage.told_at:
            self.say(f"{place} does not answer; the run waits for it, {self.patience:.0f} s at most: {outage.why}")
        elif now - outage.told_at >= NEWS_SECONDS:
            self.say(f"{place} has not answered for {now - outage.since:.0f} s: {outage.why}")
        else:
            return
        outage.told_at = now


@dataclass
class LLMWatch:
    """A watch for the failures of one LLM in one case; the technique may continue after either."""

    place: str
    case: str
    outages: Outages
    failure: LLMError | None = None
    """Error of the latest call; None if it was answered."""
    halt: LLMError | None = None
    """An error that holds for every case."""

    def attach(self, llm: LLM) -> SharedLLM:
        """Return the LLM as this watch listens to it."""
        return replace(share_llm(llm), observer=self)

    def watch(self) -> AbstractContextManager[None]:
        return self.outages.trying(self.place)

    def failed(self, error: LLMError) -> None:
        self.failure = error
        if self.holds_for_all(error):
            self.halt = error

    def answered(self, reply: Completion) -> None:
        self.failure = None
        self.outages.answered(self.place, reply.replayed)

    def holds_for_all(self, error: LLMError) -> bool:
        if error.kind == "request" and not error.permanent:
            return self.outages.refused(self.place, self.case)
        if error.kind in AWAY:
            self.outages.failed(self.place, str(error))
        return error.permanent and error.kind not in THIS_CASE


@dataclass(frozen=True)
class EnvironmentWatch:
    """An environment whose actions wait for a lost server and are repeated when it is back."""

    environment: Environment
    place: str
    outages: Outages
    lost: dict[str, str] = field(default_factory=dict)
    """By tool, what is away and why."""

    @property
    def counter(self) -> Iterator[int]:
        """Numbers of observations, for records that are added to the run."""
        counter: Iterator[int] = cast(Any, self.environment).counter
        return counter

    def tools(self) -> tuple[str, ...]:
        return self.environment.tools()

    def describe(self) -> str:
        return self.environment.describe()

    async def step(self, action: Action) -> Observation:
        """Run an action. Raise OutageError if the server is away for longer than the run's patience."""
        place, pause, began = f"{action.tool} of {self.place}", FIRST_PAUSE, 0.0
        with self.outages.trying(place):
            while True:
                try:
                    observation = await self.environment.step(action)
                except ToolError as error:
                    if not error.outage:
                        if not error.refused:
                            self.clear(action.tool, place)
                        raise
                    self.lost[action.tool] = str(error)
                    self.outages.failed(place, str(error))
                    began = began or time.monotonic()
                    # Longer than the watch waits: it stops the whole run, which says more than a crashed case.
                    if time.monotonic() - began >= self.outages.patience + 2 * self.outages.look_seconds:
                        raise OutageError(str(error)) from error
                else:
                    self.clear(action.tool, place)
                    return observation
                # The action is repeated: it only reads, so doing it twice changes nothing.
                await asyncio.sleep(pause)
                # Double the pause, but look at least four times within a short patience.
                pause = min(2 * pause, LONGEST_PAUSE, max(self.outages.patience / 4, 0.01))

    def forms(self) -> Mapping[str, str]:
        return list_tool_languages(self.environment)

    def wrong_form(self, answer: str) -> str:
        return explain_wrong_form(self.environment, answer)

    def clear(self, tool: str, place: str) -> None:
        self.lost.pop(tool, None)
        self.outages.answered(place)

    def fork(self) -> EnvironmentWatch:
        return EnvironmentWatch(self.environment.fork(), self.place, self.outages, self.lost)
