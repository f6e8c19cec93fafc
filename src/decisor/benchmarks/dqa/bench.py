"""Decision QA for the runner: which candidate an answer names, whether it is the released one, and what went wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from decisor.benchmarks.case import Case
from decisor.benchmarks.dqa import failures
from decisor.benchmarks.dqa.databases import Stores, form_of
from decisor.benchmarks.dqa.failures import Facts
from decisor.benchmarks.dqa.score import any_mention, score
from decisor.benchmarks.dqa.summary import replans
from decisor.benchmarks.dqa.worlds import SCENARIOS, Asked, read_cases
from decisor.benchmarks.protocol import Score
from decisor.errors import SetupError
from decisor.trace.events import Entry
from decisor.types import Decision, Environment, Tool

UNLABELLED = {"unlabelled": True}


@dataclass
class Held:
    """What was read and opened, shared by copies of a benchmark."""

    asked: dict[str, Asked] = field(default_factory=dict)
    stores: Stores | None = None


@dataclass(frozen=True)
class DqaBench:
    """``data``: a folder in the released layout. ``limit``: only the first questions of each scenario. ``db``: a loaded
    database to ask, instead of loading those of the questions. ``tools``: the database, or for ``exact`` the decision
    model behind the questions."""

    data: Path
    scenario: Literal["locating", "building", "both"] = "both"
    form: Literal["sql", "graph"] = "sql"
    limit: int | None = field(default=None, metadata=UNLABELLED)
    db: str = field(default="", metadata=UNLABELLED)
    tools: Literal["database", "whatif"] = "database"
    name: str = "dqa"
    held: Held = field(default_factory=Held, repr=False, compare=False)

    def cases(self) -> Sequence[Case]:
        """By database, so that each is opened once."""
        if self.db and form_of(self.db) != self.form:
            raise SetupError(f"{self.db} is a database of the form {form_of(self.db)}, not {self.form}.")
        found = [asked for name in self.scenarios() for asked in read_cases(self.data, name, self.form, self.limit)]
        self.held.asked.update({asked.case.id: asked for asked in found})
        return [asked.case for asked in sorted(found, key=lambda asked: asked.world.key)]

    def scenarios(self) -> Sequence[str]:
        if self.scenario != "both":
            return (self.scenario,)
        return [name for name in SCENARIOS if (self.data / name / "questions").is_dir()] or SCENARIOS

    def for_exact(self) -> DqaBench:
        return replace(self, tools="whatif")

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        from decisor.tools.toolbox import Toolbox

        asked = self.held.asked[case.id]
        if self.tools == "whatif":
            yield Toolbox([what_if(asked)])
            return
        self.held.stores = self.held.stores or Stores(self.form, self.db)
        async with self.held.stores.tool(asked.world) as tool:
            yield Toolbox([tool])

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        """``right`` is strict; ``ties`` also counts what is as good as the released answer."""
        asked = self.held.asked[case.id]
        held = score(decision.answer, case.gold[0], asked.candidates, asked.ties)
        facts = Facts(case.group, case.gold[0], asked.able)
        named = held.answer or (decision.answer if not any_mention(decision.answer, asked.candidates) else "")
        failure = "" if held.tie_right else failures.classify(events, facts, named, decision.stopped)
        changes = replans(events)
        missed = failures.missed(events, case.group)
        return Score(
            held.right,
            held.answer,
            {"strict": float(held.right), "ties": float(held.tie_right)},
            failure,
            (failures.retrieved_by(events), *(f"missed: {name}" for name in missed),
             *(f"replan: {one.change}, {one.kind}" for one in changes)),
            {"replans": len(changes), "retrievals": len(failures.retrievals(events))},
        )  # fmt: skip

    async def close(self) -> None:
        if self.held.stores is not None:
            await self.held.stores.close()


def what_if(asked: Asked) -> Tool:
    from decisor.decision_models.ranking import rank
    from decisor.tools.whatif import WhatIfTool

    return WhatIfTool(asked.model, rank)
