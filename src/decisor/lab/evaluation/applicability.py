"""Whether a technique applies to a benchmark, found out before anything is paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import SetupError
from decisor.lab.benchmark import Bench, Case
from decisor.runtime.run import Run, Technique
from decisor.types import (
    Action,
    Completion,
    Environment,
    Message,
    Observation,
    Question,
    Sampling,
)

BEGIN_SECONDS = 30.0
"""So long a technique may think before it asks for anything."""


class DoesNotApply(SetupError):
    """An error: a technique cannot work in the environment of a benchmark, or with this LLM."""


@dataclass(frozen=True)
class SilentLLM:
    """An LLM that never answers."""

    request: asyncio.Event
    """Set when the LLM is asked."""
    name: str = "none"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.request.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@dataclass(frozen=True)
class StillEnvironment:
    """An environment that describes its tools and never does an action."""

    environment: Environment
    request: asyncio.Event
    """Set when an action is asked for."""

    def tools(self) -> tuple[str, ...]:
        return self.environment.tools()

    def describe(self) -> str:
        return self.environment.describe()

    async def step(self, action: Action) -> Observation:
        self.request.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    def fork(self) -> StillEnvironment:
        return StillEnvironment(self.environment.fork(), self.request)


async def find_misfits(bench: Bench, case: Case, techniques: Mapping[str, Technique]) -> dict[str, str]:
    """Return, by label, why techniques cannot work on ``bench``, tried on one case.

    Raises:
        SetupError: the benchmark itself lacks something.
    """
    complaints: dict[str, str] = {}
    for exact in (False, True):  # two environments at most: nothing is done in them
        some = {label: one for label, one in techniques.items() if is_exact_label(label) is exact}
        try:
            if some:
                # ``exact`` may need an environment of its own; all others share one.
                async with bench_for_technique(bench, next(iter(some))).environment(case) as env:
                    complaints |= {
                        label: await find_setup_complaint(one, case.question, env) for label, one in some.items()
                    }
        except SetupError:
            raise
        except Exception:  # what fails here fails in the run, where it is kept with its reason
            continue
    return {label: why for label, why in complaints.items() if why}


async def find_setup_complaint(technique: Technique, question: Question, env: Environment) -> str:
    """Return the complaint of a technique before its first call or action, empty if it lacks nothing."""
    request = asyncio.Event()
    began = asyncio.ensure_future(technique(question, Run(SilentLLM(request), StillEnvironment(env, request))))
    asking = asyncio.create_task(request.wait())
    try:
        await asyncio.wait({began, asking}, timeout=BEGIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        done = began.done()
        began.cancel()
        asking.cancel()
        ended, _ = await asyncio.gather(began, asking, return_exceptions=True)
    # Only a complaint of its own: after a cancel the technique may raise anything.
    return str(ended) if done and isinstance(ended, SetupError) else ""


def bench_for_technique(bench: Bench, technique: str) -> Bench:
    """Return the benchmark with the tools that ``exact`` needs for ``exact``, else unchanged."""
    with_tools: Callable[[], Bench] | None = getattr(bench, "for_exact", None)
    return with_tools() if with_tools is not None and is_exact_label(technique) else bench


def is_exact_label(technique: str) -> bool:
    """Return whether a label is that of the technique ``exact``."""
    return technique.split()[0] == "exact"
