"""Which techniques cannot work on a benchmark at all, found before anything is paid for.

Each technique is begun on the benchmark's first case, with an LM and an environment that never answer. What it says it
lacks before it asks for anything (documents, a database, a decision model) holds for every case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from decisor.benchmarks.protocol import Bench, Case
from decisor.errors import SetupError
from decisor.run import Run, Technique
from decisor.types import Action, Completion, Environment, Message, Observation, Question, Sampling

BEGIN_SECONDS = 30.0
"""So long a technique may think before it asks for anything."""


class DoesNotApply(SetupError):
    """A technique cannot work in the environment of a benchmark, or with this LM."""


@dataclass(frozen=True)
class SilentLM:
    """An LM that never answers; ``request`` is set when it is asked."""

    request: asyncio.Event
    name: str = "none"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.request.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@dataclass(frozen=True)
class StillEnvironment:
    """An environment that tells what tools it has; an action is noted, and never done."""

    environment: Environment
    request: asyncio.Event

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


async def misfits(bench: Bench, case: Case, techniques: Mapping[str, Technique]) -> dict[str, str]:
    """Label of a technique -> why it cannot work on ``bench``, tried on one case.

    Raises:
        SetupError: the benchmark itself lacks something.
    """
    complaints: dict[str, str] = {}
    for exact in (False, True):  # two environments at most: nothing is done in them
        some = {label: one for label, one in techniques.items() if is_exact(label) is exact}
        try:
            if some:
                async with fitting(bench, next(iter(some))).environment(case) as env:
                    complaints |= {label: await complaint(one, case.question, env) for label, one in some.items()}
        except SetupError:
            raise
        except Exception:  # what fails here fails in the run, where it is kept with its reason
            continue
    return {label: why for label, why in complaints.items() if why}


async def complaint(technique: Technique, question: Question, env: Environment) -> str:
    """What the technique says it lacks before its first call or action; empty where it lacks nothing."""
    request = asyncio.Event()
    began = asyncio.ensure_future(technique(question, Run(SilentLM(request), StillEnvironment(env, request))))
    asking = asyncio.create_task(request.wait())
    try:
        await asyncio.wait({began, asking}, timeout=BEGIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        done = began.done()
        began.cancel()
        asking.cancel()
        ended, _ = await asyncio.gather(began, asking, return_exceptions=True)
    return str(ended) if done and isinstance(ended, SetupError) else ""


def fitting(bench: Bench, technique: str) -> Bench:
    """The benchmark with the tools that ``exact`` needs, for ``exact``; it is the same benchmark to everything else."""
    with_tools: Callable[[], Bench] | None = getattr(bench, "for_exact", None)
    return with_tools() if with_tools is not None and is_exact(technique) else bench


def is_exact(technique: str) -> bool:
    """Whether that is the label of ``exact``."""
    return technique.split()[0] == "exact"
