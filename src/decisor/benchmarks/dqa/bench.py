"""Decision QA for the runner: which candidate an answer names, whether it is the released one, and what went wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from decisor.benchmarks.dqa import failures
from decisor.benchmarks.dqa.databases import Stores
from decisor.benchmarks.dqa.failures import Facts
from decisor.benchmarks.dqa.opening import form_of
from decisor.benchmarks.dqa.score import any_mention, score
from decisor.benchmarks.dqa.summary import replans
from decisor.benchmarks.dqa.worlds import SCENARIOS, WorldCase, read_cases
from decisor.benchmarks.protocol import Case, Score
from decisor.errors import SetupError
from decisor.secrets import without_password
from decisor.trace.events import Entry, LMCall, events_of
from decisor.types import Decision, Environment, Tool

UNLABELLED = {"unlabelled": True}


@dataclass
class SharedState:
    """What was read and opened, shared by copies of a benchmark."""

    cases: dict[str, WorldCase] = field(default_factory=dict)
    stores: Stores | None = None


@dataclass(frozen=True)
class DqaBench:
    """``data``: a folder in the released layout. ``limit``: only the first questions of each scenario. ``db``: a server
    (mysql://HOST, postgresql://HOST, bolt://HOST) that keeps each question's world in a place of its own, loaded where
    it is not there, or anew where ``fresh``; or one database to ask, which must hold the world of each question.
    ``tools``: the database, or for ``exact`` the decision model behind the questions, or both side by side; or for
    ``model_first`` the database with what runs a model that an LM writes."""

    data: Path
    scenario: Literal["locating", "building", "both"] = "both"
    form: Literal["sql", "graph"] = "sql"
    limit: int | None = field(default=None, metadata=UNLABELLED)
    db: str = field(default="", metadata=UNLABELLED)
    fresh: bool = field(default=False, metadata=UNLABELLED)
    tools: Literal["database", "whatif", "both", "decision_model"] = "database"
    name: str = "dqa"
    shared: SharedState = field(default_factory=SharedState, repr=False, compare=False)

    def cases(self) -> Sequence[Case]:
        """By database, so that each is opened once."""
        if self.fresh and not self.db:
            raise SetupError("--fresh loads worlds anew on a server: name one with --db or --graph, or leave it out.")
        if self.db and self.tools == "whatif":
            self.for_exact()
        if self.db and form_of(self.db) != self.form:
            raise SetupError(f"{self.db} is a database of the form {form_of(self.db)}, not {self.form}.")
        cases = [one for name in self.scenarios() for one in read_cases(self.data, name, self.form, self.limit)]
        self.shared.cases.update({one.case.id: one for one in cases})
        return [one.case for one in sorted(cases, key=lambda one: one.world.key)]

    def scenarios(self) -> Sequence[str]:
        if self.scenario != "both":
            return (self.scenario,)
        return [name for name in SCENARIOS if (self.data / name / "questions").is_dir()] or SCENARIOS

    def for_exact(self) -> DqaBench:
        """Raises SetupError where a database is named, which would not be read."""
        if self.db:
            raise SetupError(f"exact computes from the files of --data and would not read {without_password(self.db)}: "
                             "leave out --db and --graph, or take another technique.")  # fmt: skip
        return replace(self, tools="whatif")

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        from decisor.tools.toolbox import Toolbox

        one = self.shared.cases[case.id]
        if self.tools == "whatif":
            yield Toolbox([what_if(one)])
            return
        self.shared.stores = self.shared.stores or Stores(self.form, self.db, self.fresh)
        async with self.shared.stores.tool(one.world) as tool:
            more = [what_if(one)] if self.tools == "both" else []
            yield Toolbox([tool, *more, *(modelling(tool) if self.tools == "decision_model" else ())])

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        """``right`` is strict; ``ties`` also counts what is as good as the released answer, ``printed`` what is best by
        the rules as they are printed."""
        one = self.shared.cases[case.id]
        reading = score(decision.answer, case.gold[0], one.candidates, one.ties)
        printed = score(decision.answer, case.gold[0], one.candidates, one.printed).tie_right
        answer = reading.answer or (decision.answer if not any_mention(decision.answer, one.candidates) else "")
        changes = replans(events)
        failure = ""
        if not reading.tie_right and printed:
            failure = "RULES"
        elif not reading.answer and in_substance(decision, events, one):
            failure = "FORM"
        elif not reading.tie_right:
            facts = Facts(case.group, case.gold[0], one.able)
            failure = failures.classify(events, facts, answer, decision.stopped)
        return Score(
            reading.right,
            reading.answer,
            metrics={"strict": float(reading.right), "ties": float(reading.tie_right), "printed": float(printed)},
            failure=failure,
            tags=(*(f"missed: {name}" for name in failures.missed(events, case.group)),
                  *(f"replan: {change.change}, {change.kind}" for change in changes)),
            counts={"replans": len(changes), "retrievals": len(failures.retrievals(events))},
        )  # fmt: skip

    async def close(self) -> None:
        if self.shared.stores is not None:
            await self.shared.stores.close()


def in_substance(decision: Decision, events: Sequence[Entry], one: WorldCase) -> bool:
    """Whether the reasons, or the last reply, name the right candidate and no other, where the answer names none."""
    replies = [call.texts[0] for call in events_of(events, LMCall) if call.texts]
    texts = [" ".join(decision.reasons), *replies[-1:]]
    return any(score(text, one.case.gold[0], one.candidates, one.ties).tie_right for text in texts)


def modelling(tool: Tool) -> Sequence[Tool]:
    from decisor.session.modelling import modelling_tools
    from decisor.tools.abilities import is_database

    return modelling_tools([tool] if is_database(tool) else [], None)


def what_if(one: WorldCase) -> Tool:
    from decisor.decision_models.ranking import rank
    from decisor.tools.whatif import WhatIfTool

    return WhatIfTool(one.model, rank)
