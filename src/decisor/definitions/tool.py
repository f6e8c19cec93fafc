"""Definitions as records of a run, so that a decision cites the one that it used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisor.definitions.format import Definition, Definitions, title
from decisor.definitions.show import line
from decisor.types import Observation, Record

NAME = "definitions"


@dataclass(frozen=True)
class Brought:
    """Definitions of ``files`` that a run brings by itself. Satisfies ``types.Tool``: its input names them, a line
    each."""

    definitions: Sequence[Definition]
    files: Sequence[Definitions]
    name: str = NAME

    def names(self) -> str:
        return "\n".join(title(one) for one in self.definitions)

    def describe(self) -> str:
        return "What words mean in these data. The input is the names of definitions, a line each."

    async def call(self, text: str) -> Observation:
        wanted = text.splitlines()
        return Observation(tuple(
            Record(f"r{number}", {"definition": title(one), "says": line(one).partition(": ")[2], "by": one.origin.by,
                                  "on": one.origin.on, "file": self.file(one)}, source=self.name)
            for number, one in enumerate((one for one in self.definitions if title(one) in wanted), 1)
        ))  # fmt: skip

    def file(self, one: Definition) -> str:
        return next((file.path for file in self.files if one in list(file)), "")

    async def close(self) -> None:
        """Holds nothing open."""
