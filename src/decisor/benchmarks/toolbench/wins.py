"""Win rate, as ToolBench counts it: of two runs of a task the one that passed wins; where both or neither did, a judge
prefers one. Agreement with people is reported as 80 % (Qin et al., "ToolLLM", ICLR 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from decisor.aio import each
from decisor.judging.preference import TOOL_CRITERIA, Preference, by_passing
from decisor.run import Run


@dataclass(frozen=True, slots=True)
class TaskRun:
    """``answer``: the final answer, with the steps where the judge is to weigh them. ``passed`` by the pass judge."""

    task: str
    answer: str
    passed: bool


@dataclass(frozen=True, slots=True)
class Wins:
    """Tasks by what came out; ``unread``: the judge could not be read."""

    wins: int
    losses: int
    ties: int
    unread: int

    @property
    def rate(self) -> float | None:
        """Share of the tasks with a winner; None where there is none."""
        decided = self.wins + self.losses
        return self.wins / decided if decided else None


async def wins(
    ones: Mapping[str, TaskRun],
    others: Mapping[str, TaskRun],
    run: Run,
    judge: Preference | None = None,
    at_once: int = 8,
) -> Wins:
    """Of ``ones`` over ``others``, on the tasks (by id) that both ran. The default judge asks three times, in both
    orders; ToolBench's own asks in one order: ``Preference(TOOL_CRITERIA, one_order=True, votes=...)``."""
    prefer = judge or Preference(TOOL_CRITERIA, votes=3, temperature=0.2)

    async def compare(name: str) -> float | None:
        one, other = ones[name], others[name]
        settled = by_passing(one.passed, other.passed)
        if settled is not None:
            return settled
        if one.answer == other.answer:
            return 0.5
        return await prefer(one.task, one.answer, other.answer, run)

    results = await each(compare, sorted(ones.keys() & others.keys()), at_once)
    return Wins(results.count(1.0), results.count(0.0), results.count(0.5), results.count(None))
