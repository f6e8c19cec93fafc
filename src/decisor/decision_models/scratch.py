"""A decision model in SQL on a scratch copy: each candidate's changes run, are measured, and are rolled back.

The statements come from a file, so they run in the process of whoever computes the ``jobs``, never in this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from decisor.errors import SetupError, ToolError
from decisor.types import Goal, Table, Value, WhatIf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALL_TOGETHER_SECONDS = 5.0


class Jobs(Protocol):
    """A scratch copy in a process of its own. ``run`` raises ToolError; its jobs are in
    ``tools.databases.sandbox.scratch_copy``."""

    def run(self, statement: str, parameters: Mapping[str, Value], seconds: float) -> Table: ...

    def close(self) -> None: ...


OpenScratch: TypeAlias = Callable[[str], Awaitable[Jobs]]


def content(
    tables: Mapping[str, Table],
    candidates: str,
    change: Sequence[str],
    outcome: str,
    vary: Sequence[str],
    seconds: float,
    types: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> str:
    """What a scratch copy opens on, as JSON. ``types``: table -> column (lower case) -> type at the source."""
    copies = {
        name: {
            "columns": table.columns,
            "rows": table.rows,
            "types": [affinity(types.get(name, {}).get(column.lower(), "")) for column in table.columns],
        }
        for name, table in tables.items()
    }
    text = json.dumps({"tables": copies, "candidates": candidates, "change": change, "outcome": outcome,
                       "vary": vary, "seconds": seconds}, ensure_ascii=False)  # fmt: skip
    return text.encode("utf-8", "replace").decode()  # lone surrogates, which no database takes


def affinity(kind: str) -> str:
    """What SQLite compares a column as; '' where the source does not say.

    >>> affinity("VARCHAR(9)"), affinity("bigint"), affinity("DECIMAL(9, 2)"), affinity("date"), affinity("")
    ('TEXT', 'INTEGER', 'REAL', '', '')
    """
    words = (("TEXT", "char|text|clob|string|uuid|enum"), ("INTEGER", "int|serial"), ("REAL", "real|doub|flo|dec|num"))
    return next((name for name, pattern in words if re.search(pattern, kind, re.I)), "")


@dataclass(frozen=True)
class Scratch:
    """Satisfies ``types.WhatIf``. ``longest``: seconds that all statements of one candidate may take.

    ``spread``: percent and seed where the inputs vary.
    """

    measure: str
    goal: Goal
    jobs: Jobs
    longest: float
    spread: Mapping[str, Value] | None = None

    def candidates(self) -> tuple[str, ...]:
        """Raises SetupError where the query fails, gives none, or gives one twice."""
        return tuple(str(row[0]) for row in self._rows("candidates", {}))

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Shape (len(candidates),); nan where the outcome is NULL. Many candidates go in one request."""
        import numpy as np

        values: list[Value] = []
        while len(values) < len(candidates):
            left = list(candidates[len(values) :])
            values += [row[0] for row in self._rows("outcomes", {"names": left, **(self.spread or {})})]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """The same copy, whose varied numbers are multiplied by 1 + U(-percent, percent)/100 for each request."""
        return replace(self, spread={"percent": percent, "seed": int(rng.integers(2**53))})

    def close(self) -> None:
        self.jobs.close()

    def _rows(self, job: str, parameters: Mapping[str, Value]) -> tuple[tuple[Value, ...], ...]:
        try:
            return self.jobs.run(job, parameters, self.longest + ALL_TOGETHER_SECONDS).rows
        except ToolError as error:
            raise SetupError(f"The decision model cannot be computed: {error}") from error
