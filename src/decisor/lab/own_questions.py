"""Questions of one's own over data of one's own: what ``decisor history export`` writes of marked runs, or any JSON
lines with ``question`` and ``answer`` (or ``wrong``, an answer that is not right)."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from decisor.errors import SetupError
from decisor.history.recorder import read_questions
from decisor.lab.benchmark import Case, Score
from decisor.lab.text_match import em
from decisor.session.config import resolve_config
from decisor.session.data import Data, open_data
from decisor.session.open_sources import sources_of_request
from decisor.session.request import AskRequest
from decisor.session.sources import Sources
from decisor.tools.abilities import focus_databases
from decisor.tools.calculator import CalculatorTool
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import TraceEntry
from decisor.types import Decision, Environment, Question, Tool


@dataclass
class SharedData:
    """The data of all cases, opened when the first case needs them."""

    data: Data | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def open(self, sources: Sources) -> Data:
        # Cases run side by side: the first one opens the data, the others wait for it.
        async with self.turn:
            if self.data is None:
                self.data = await self.stack.enter_async_context(open_data(sources))
        return self.data

    async def close(self) -> None:
        await self.stack.aclose()
        self.data = None


@dataclass(frozen=True)
class OwnBench:
    """A benchmark of a user's own questions over own data (``Bench``)."""

    questions: Path
    """The file of questions."""
    db: str = ""
    """Databases, with spaces between them; names of decisor.toml work too, here and in the next two."""
    graph: str = ""
    docs: str = ""
    tables: str = ""
    """As in ``decisor ask``, like ``deny_tables``."""
    deny_tables: str = ""
    definitions: str = ""
    name: str = "own"
    shared: SharedData = field(default_factory=SharedData, repr=False, compare=False)

    def cases(self) -> Sequence[Case]:
        # Answer and note stay outside of the question, which is all that a technique gets.
        return [
            Case(
                own.id,
                Question(own.question, own.rules, own.goal, own.earlier),
                (own.answer,) if own.answer else (),
                facts={"wrong": own.wrong, "note": own.note},
            )
            for own in read_questions(self.questions)
        ]

    @property
    def sources(self) -> Sources:
        """The data sources of all questions; SetupError if no data are named."""
        request = AskRequest(
            db=tuple(shlex.split(self.db)),
            graph=tuple(shlex.split(self.graph)),
            docs=tuple(shlex.split(self.docs)),
            tables=tuple(self.tables.replace(",", " ").split()),
            deny_tables=tuple(self.deny_tables.replace(",", " ").split()),
            definitions=tuple(shlex.split(self.definitions)),
        )
        if not request.names_data:
            raise SetupError("Which data are the questions about? Name them with --db, --graph or --docs.")
        return sources_of_request(request, resolve_config())

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        data = await self.shared.open(self.sources)
        tools: list[Tool] = [
            *await focus_databases(case.question.topic, data.databases),
            *data.tools[len(data.databases) :],
        ]
        yield Toolbox([*tools, CalculatorTool()] if data.databases else tools)

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        """Score a decision. It is unscored if the right answer is unknown and the known wrong answer was not given."""
        wrong = [str(case.facts["wrong"])] if case.facts.get("wrong") else []
        if not decision.answer:
            return Score(False if case.gold else None, "")
        if case.gold:
            return Score(em(decision.answer, case.gold) == 1, decision.answer)
        return Score(False if em(decision.answer, wrong) == 1 else None, decision.answer)

    async def close(self) -> None:
        await self.shared.close()
