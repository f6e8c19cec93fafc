"""One part of each kind that a package can add to Decisor. ``decisor.testing`` checks what each has to hold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from decisor import Decision, Evidence, Record
from decisor.lab.benchmark import Case, Score
from decisor.llms.endpoint import Endpoint, run_within
from decisor.llms.prices import Price
from decisor.llms.providers import Provider
from decisor.llms.retry import RetryableError
from decisor.llms.turns import cut_at_stop_words
from decisor.runtime.run import Run
from decisor.sandbox.engine import Caps, EngineDatabase
from decisor.sandbox.engines import sqlite
from decisor.system.secrets import Secret
from decisor.tools.calculator import CalculatorTool
from decisor.tools.toolbox import Toolbox
from decisor.types import Action, Completion, Message, Question, Sampling, Usage


@dataclass(frozen=True)
class Cheapest:
    """A technique without an LLM: the cheapest row of a table. ``decisor ask ... -t cheapest -o table=site``."""

    table: str = "site"

    async def __call__(self, question: Question, run: Run) -> Decision:
        rows = await run.act(Action("sql", f"SELECT name FROM {self.table} ORDER BY rent LIMIT 1"))
        return Decision(str(rows.records[0].fields["name"]), Evidence((rows.records[0].id,)))


class Notes:
    """Notes on sites: a retriever that counts the words of a query. ``decisor ask ... --docs notes``."""

    texts: Mapping[str, str] = {"n1": "The lease of oak ends in May.", "n2": "Elm has a new roof."}

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        words = set(query.lower().split())
        scores = {id: len(words & set(text.lower().strip(".").split())) for id, text in self.texts.items()}
        ranked = sorted((id for id in scores if scores[id]), key=lambda id: -scores[id])
        return tuple(Record(id, {}, self.texts[id], score=float(scores[id])) for id in ranked[:limit])


def connect(url: str, caps: Caps) -> EngineDatabase:
    return sqlite.connect_sqlite(url.replace("toy:///", "sqlite:///"), caps)


ENGINE = replace(sqlite.ENGINE, name="toy", title="Toybase", schemes=("toy",), endings=(), connect=connect)
"""An engine for toy:///PATH, which here is SQLite."""


class SayLLM:
    """An LLM behind ``POST {base_url}/say`` with the last message, answered by ``{"said": TEXT}``."""

    def __init__(self, model: str, *, base_url: str, key: str | None, price: Price | None) -> None:
        self.name, self.price = model, price
        self.endpoint = Endpoint(f"{base_url}/say", {"X-Key": Secret(key or "")})

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        async def ask(ends: float, bill: list[Usage]) -> Completion:
            reply = await self.endpoint.post({"text": messages[-1].content}, self.read, ends, bill)
            return replace(reply, texts=(cut_at_stop_words(reply.text, sampling.stop),))

        return await run_within(60.0, ask, self.endpoint.where, self.price)

    def read(self, reply: Any) -> Completion:
        if not isinstance(reply, Mapping) or "said" not in reply:
            raise RetryableError(f"{self.endpoint.where} said nothing.")
        return Completion((str(reply["said"]),), model=self.name)

    async def close(self) -> None:
        await self.endpoint.close()


PROVIDER = Provider("SAY", "decisor_example:SayLLM", "https://say.example", "")
"""``--llm say/MODEL``, with the key of $SAY_API_KEY; $SAY_BASE_URL is another address."""


class Sums:
    """A benchmark of two sums. ``decisor eval -b sums -t cot``."""

    name = "sums"

    def cases(self) -> Sequence[Case]:
        return [Case(f"{n}+{n}", Question(f"How much is {n}+{n}?"), gold=(str(2 * n),)) for n in (1, 2)]

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Toolbox]:
        yield Toolbox([CalculatorTool()])

    async def score(self, case: Case, decision: Decision, events: Sequence[object]) -> Score:
        return Score(decision.answer in case.gold, decision.answer)

    async def close(self) -> None:
        """Hold nothing open."""
