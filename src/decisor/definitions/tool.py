"""Definitions as records of a run, so that a decision cites the one that it used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisor.definitions.format import Definition, Definitions, title
from decisor.definitions.relevant import relevant
from decisor.definitions.show import line
from decisor.types import Observation, Record

NAME = "definitions"


@dataclass(frozen=True)
class DefinitionsTool:
    """Given words it brings the definitions that these name, a record each. Satisfies ``types.Tool``."""

    definitions: Definitions
    name: str = NAME

    def describe(self) -> str:
        return "What words mean in these data: metrics, calendars, entities, values. The input is words."

    async def call(self, text: str) -> Observation:
        return Observation(records_of(relevant(text, self.definitions), self.definitions, self.name))

    async def close(self) -> None:
        """Holds nothing open."""


def records_of(definitions: Sequence[Definition], file: Definitions, source: str = NAME) -> tuple[Record, ...]:
    return tuple(
        Record(f"r{number}", {"definition": title(one), "says": line(one).partition(": ")[2], "by": one.origin.by,
                              "on": one.origin.on, "file": file.path, "line": file.line(one)}, source=source)
        for number, one in enumerate(definitions, 1)
    )  # fmt: skip
