"""What others bring, as the methods that are called: an LM, a tool, an environment. ``types`` has these names too; a
technique is ``run.Technique``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from decisor.nouns import Action, Completion, Message, Observation, Record, Sampling, Table
    from decisor.ranking import Goal


class Pricing(Protocol):
    """What tokens cost."""

    def dollars(self, prompt_tokens: int, completion_tokens: int) -> float: ...


class LM(Protocol):
    """Something that completes messages.

    It may have a ``price``, a Pricing, or None where it is not known: without one it cannot be asked under a limit of
    dollars.
    """

    @property
    def name(self) -> str: ...

    async def complete(self, messages: Sequence[Message], sampling: Sampling = ...) -> Completion:
        """One to ``sampling.n`` texts: a run asks for those that an endpoint did not give."""
        ...


class Tool(Protocol):
    """One named thing an action can use. Records carry provisional ids r1, r2, ...; the environment completes them."""

    @property
    def name(self) -> str: ...

    def describe(self) -> str: ...

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the model's input is refused or fails."""
        ...

    async def close(self) -> None: ...


class Environment(Protocol):
    """Where actions happen. ``fork`` is an independent copy of what changes; read-only parts may be shared.

    It may have ``forms()``, what each tool speaks (sql, cypher, passages), and ``wrong_form(answer)``: why a text can
    be no answer here, '' where it can. That is its form alone, never whether it is right.
    """

    def tools(self) -> tuple[str, ...]: ...

    def describe(self) -> str: ...

    async def step(self, action: Action) -> Observation: ...

    def fork(self) -> Environment: ...


class BulkSource(Protocol):
    """A database that is read in bulk, in the same sandbox. ``trusted``: the query is our own, so it skips the check
    that a model's query meets; one from a file never is."""

    @property
    def form(self) -> Literal["sql", "cypher"]: ...

    async def fetch(self, query: str, max_rows: int = 2_000_000, trusted: bool = False) -> Table: ...


class Retriever(Protocol):
    """Finds records for a query, best first."""

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]: ...


class WhatIf(Protocol):
    """A decision model for one question: what may be chosen, and the outcome of choosing it."""

    @property
    def measure(self) -> str: ...

    @property
    def goal(self) -> Goal: ...

    def candidates(self) -> tuple[str, ...]:
        """In data order."""
        ...

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """One float per candidate, shape (len(candidates),); nan where a candidate is not allowed."""
        ...

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """The same model with each input multiplied by 1 + U(-percent, percent)/100."""
        ...
