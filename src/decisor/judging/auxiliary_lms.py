"""LMs that a benchmark asks itself: a judge of answers, a simulator of tools.

What they cost is counted beside the technique's usage and never in it, so that techniques stay comparable. Their calls
go through the run's concurrency limit and journal: a reply is bought once, and the same request always gets the same
reply.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from decisor.calling import Ways, ways_of
from decisor.errors import LMError, SetupError
from decisor.lms import choose
from decisor.lms.closing import close_lm
from decisor.lms.journal import Journal
from decisor.lms.prices import price_of_lm
from decisor.secrets import without_password
from decisor.types import LM, Completion, Environment, Message, Pricing, Sampling, Usage

THIS_CASE = ("context",)
"""Kinds of LMError that say nothing about other cases, whatever else they say."""


@dataclass
class OwnLM:
    """``spec``: MODEL@URL, or "MODEL@URL price=0.4,1.6". ``halt``: how it failed for good."""

    spec: str
    lm: LM | None = None
    journal: Journal | None = None
    halt: LMError | None = None

    def open(self) -> LM:
        """Raises SetupError where ``spec`` names no LM."""
        self.lm = self.lm or choose.lm(self.spec, os.environ)
        if self.lm is None:
            raise SetupError(f"{without_password(self.spec)!r} names no LM: give MODEL@URL.")
        return self.lm

    def use(self, lm: LM, journal: Journal) -> None:
        """From now on ask ``lm``, and keep its replies."""
        self.lm, self.journal = lm, journal

    def for_case(self) -> CaseLM:
        """For one case."""
        return CaseLM(self, self.open())

    async def close(self) -> None:
        lm, self.lm = self.lm, None
        if lm is not None:
            await close_lm(lm)


@dataclass
class CaseLM:
    """The LM for one case. ``usage``: what its replies cost there, bought or replayed."""

    owner: OwnLM
    lm: LM
    usage: Usage = field(default_factory=Usage)

    @property
    def name(self) -> str:
        return self.lm.name

    @property
    def price(self) -> Pricing | None:
        return price_of_lm(self.lm)

    @property
    def ways(self) -> Ways | None:
        return ways_of(self.lm)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        journal = self.owner.journal
        lm: LM = self.lm if journal is None else journal.lm(self.lm)
        try:
            reply = await lm.complete(messages, sampling)
        except LMError as error:
            self.usage = self.usage + error.used
            if error.permanent and error.kind not in THIS_CASE:
                self.owner.halt = error
            raise
        self.usage = self.usage + reply.usage
        return reply


def own_lms(bench: object) -> Sequence[OwnLM]:
    """Those of a benchmark that has any, in its ``own_lms``."""
    lms: Sequence[OwnLM] = getattr(bench, "own_lms", ())
    return lms


def usage_of(env: Environment) -> Usage:
    """What the LM of an environment cost so far, where it has one, in its ``lm_usage``."""
    usage: Usage = getattr(env, "lm_usage", Usage())
    return usage


def beside(judging: Usage, simulating: Usage) -> dict[str, Usage]:
    """By who was asked; without those who were not."""
    usages = {"judge": judging, "simulator": simulating}
    return {name: usage for name, usage in usages.items() if usage.calls or usage.tokens}
