"""A person's own Python function as a decision model: it gets the tables, and gives candidates with outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, Goal, Value, WhatIf

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tables: TypeAlias = "Mapping[str, Mapping[str, Sequence[Value]]]"
Function: TypeAlias = "Callable[[Tables], WhatIf | Mapping[str, float]]"
VECTOR = ("candidates", "outcomes")


@dataclass(frozen=True)
class Computed:
    """Candidates with their outcomes, from a function of the tables. ``measure`` and ``goal`` are attributes of the
    function ('outcome' and 'min' without). What varies are the decimals of the tables. Satisfies ``types.WhatIf``."""

    function: Function
    tables: Tables
    measure: str = "outcome"
    goal: Goal = "min"

    def values(self) -> Mapping[str, float]:
        """Raises ToolError where the function fails or gives something else."""
        try:
            values = self.function(self.tables)
        except Exception as error:
            raise ToolError(f"The function of the decision model fails: {type(error).__name__}: {error}") from error
        if not isinstance(values, Mapping):
            raise ToolError(f"The function of the decision model gives {type(values).__name__}, not a mapping.")
        return values

    def candidates(self) -> tuple[str, ...]:
        return tuple(map(str, self.values()))

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Shape (len(candidates),); nan where the function gives None or has no such candidate."""
        values = {str(name): value for name, value in self.values().items()}
        outcomes = [values.get(name) for name in candidates]
        return np.array([np.nan if one is None else one for one in outcomes], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """Every column that holds decimals, each cell times 1 + U(-percent, percent)/100."""
        tables = {
            name: {column: shaken(values, percent, rng) for column, values in columns.items()}
            for name, columns in self.tables.items()
        }
        return replace(self, tables=tables)


def shaken(values: Sequence[Value], percent: float, rng: np.random.Generator) -> Sequence[Value]:
    if not any(isinstance(value, float) for value in values):
        return values
    factors = 1 + rng.uniform(-percent, percent, len(values)) / 100
    pairs = zip(values, factors.tolist(), strict=True)
    return [value * by if type(value) in (int, float) else value for value, by in pairs]


async def model_of(function: Any, source: BulkSource) -> WhatIf:
    """The function on all tables of ``source``, read as they are. Vectorised where it gives a WhatIf itself.

    Raises:
        SetupError: it cannot be called, or gives neither a mapping nor a WhatIf.
    """
    tables = await tables_of(source)
    try:
        first = function(tables)
    except Exception as error:
        raise SetupError(f"The function of the decision model fails: {type(error).__name__}: {error}.") from error
    if all(hasattr(first, name) for name in VECTOR):
        model: WhatIf = first
        return model
    if not isinstance(first, Mapping):
        raise SetupError(f"The function of the decision model gives {type(first).__name__}, not a mapping or a WhatIf.")
    goal: Goal = "max" if getattr(function, "goal", "min") == "max" else "min"
    return Computed(function, tables, str(getattr(function, "measure", "outcome")), goal)


async def tables_of(source: BulkSource) -> Tables:
    """Raises SetupError where the source does not know its tables, or one is too large."""
    from decisor.decision_models.copying import Schema

    if not isinstance(source, Schema):
        raise SetupError("A function as a decision model needs a relational database (--db).")
    tables: dict[str, dict[str, Sequence[Value]]] = {}
    for one in source.tables:
        table = await source.fetch(f"SELECT * FROM {source.quoted(one.name)}")
        if table.truncated:
            raise SetupError(f"{one.name} is too large to read whole.")
        cells = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.columns)
        tables[one.name] = dict(zip(table.columns, cells, strict=True))
    return tables
